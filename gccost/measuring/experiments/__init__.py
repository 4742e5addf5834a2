"""The experiments: each stands in a module of its own, named for what it tests.

To add one, declare it there and list it here; nothing else branches on their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gccost.measuring.experiments import (
    addcleanup,
    cloudflare,
    lemire,
    precision,
    remedies,
    runtime,
    siebenmann,
    weimer,
    why,
)
from gccost.measuring.experiments.base import Experiment, named

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        each.name: each
        for each in (
            lemire.EXPERIMENT,
            siebenmann.EXPERIMENT,
            addcleanup.EXPERIMENT,
            cloudflare.EXPERIMENT,
            weimer.EXPERIMENT,
            weimer.JMH,
            why.EXPERIMENT,
            runtime.EXPERIMENT,
            remedies.EXPERIMENT,
            precision.EXPERIMENT,
        )
    }
)


def experiment(name: str) -> Experiment:
    """The experiment of that name; GccostError with the valid ones if there is none."""
    return named(EXPERIMENTS, name, "experiment")
