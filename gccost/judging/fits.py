"""Models of throughput: the cost of a GC cycle and a page fault, and scaling with cores.

Charts show them with the measured points and residuals; no verdict depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from gccost.stats import Estimate


@dataclass(frozen=True)
class Plane:
    """A least-squares fit of y to a constant plus a linear combination of the xs.

    `coefficients` (the constant first) have 95 % Student's t intervals from HC3, the jackknife's
    standard errors, which allow for residuals of unequal variance. `fitted` and `residuals`
    (y - fitted) have an entry per point.
    """

    coefficients: tuple[Estimate, ...]
    fitted: tuple[float, ...]
    residuals: tuple[float, ...]
    r2: float


def plane(xs: Sequence[ArrayLike], y: ArrayLike) -> Plane | None:
    """Fit a plane to points; None if they are too few, collinear, or one fixes a coefficient."""
    ys = np.asarray(y, dtype=float)
    design = np.column_stack([np.ones_like(ys), *(np.asarray(x, dtype=float) for x in xs)])
    freedom = len(ys) - design.shape[1]
    if freedom < 1:
        return None
    # Scale the columns so that the collinearity test does not depend on units.
    scale = np.abs(design).max(axis=0)
    if not scale.all():
        return None
    scaled = design / scale
    if np.linalg.matrix_rank(scaled, tol=1e-6) < design.shape[1]:
        return None
    found = np.linalg.lstsq(scaled, ys, rcond=None)[0]
    fitted = scaled @ found
    left, total = float(((ys - fitted) ** 2).sum()), float(((ys - ys.mean()) ** 2).sum())
    weights = np.linalg.pinv(scaled)  # of the points in each coefficient
    free = 1 - (scaled * weights.T).sum(axis=1)  # 1 - leverage
    if free.min() < 1e-9:
        return None
    errors = np.sqrt(((weights * (ys - fitted) / free) ** 2).sum(axis=1))
    half = float(special.stdtrit(freedom, 0.975)) * errors
    coefficients = tuple(
        Estimate(float(c), float(c - h), float(c + h), len(ys), len(ys), 0.95)
        for c, h in zip(found / scale, half / scale, strict=True)
    )
    r2 = 1 - left / total if total else math.nan
    return Plane(coefficients, tuple(fitted.tolist()), tuple((ys - fitted).tolist()), r2)


@dataclass(frozen=True)
class Scaling:
    """The Universal Scalability Law: X(N) = one N / (1 + contention (N - 1) + coherence N (N - 1)).

    `one` is the throughput at N = 1; the other two parameters are dimensionless.
    """

    one: float
    contention: float
    coherence: float

    def at(self, n: float) -> float:
        """The throughput at N = n."""
        return self.one * n / (1 + self.contention * (n - 1) + self.coherence * n * (n - 1))


def scaling(n: ArrayLike, throughput: ArrayLike) -> Scaling | None:
    """Fit the law to points, minimizing relative errors; None for fewer than three points.

    n / X(n) is linear in the parameters, so the fit is unique.
    """
    ns, found = np.asarray(n, dtype=float), np.asarray(throughput, dtype=float)
    if len(set(ns.tolist())) < 3:
        return None
    each = ns / found
    design = np.column_stack([np.ones_like(ns), ns - 1, ns * (ns - 1)]) / each[:, None]
    alone, contention, coherence = np.linalg.lstsq(design, np.ones_like(ns), rcond=None)[0]
    if alone <= 0:
        return None
    return Scaling(1 / float(alone), float(contention / alone), float(coherence / alone))
