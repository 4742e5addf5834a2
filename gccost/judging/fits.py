"""Models of throughput: the cost of a GC cycle and a page fault, and scaling with cores.

Charts show them with the measured points and residuals; no verdict depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

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
    from statsmodels.regression.linear_model import OLS  # takes long to load

    ys = np.asarray(y, dtype=float)
    design = np.column_stack([np.ones_like(ys), *(np.asarray(x, dtype=float) for x in xs)])
    points, terms = design.shape
    if points <= terms or np.linalg.matrix_rank(design, rtol=1e-12) < terms:
        return None
    fit = OLS(ys, design).fit()
    if fit.get_influence().hat_matrix_diag.max() > 1 - 1e-9:
        return None
    fit = fit.get_robustcov_results("HC3", use_t=True)
    coefficients = tuple(
        Estimate(float(value), float(low), float(high), points, points, 0.95)
        for value, (low, high) in zip(fit.params, fit.conf_int(), strict=True)
    )
    fitted, residuals = tuple(fit.fittedvalues.tolist()), tuple(fit.resid.tolist())
    return Plane(coefficients, fitted, residuals, float(fit.rsquared))


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
