"""What a session does: measure or replay, with which budget, for which study.

The command line makes these settings and passes them on. A notebook cannot be
passed an object: its kernel gets them as environment variables, and `read` is
the one place that reads these.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gccost.measuring.experiments.base import BUDGETS, Budget, named

Mode = Literal["measure", "replay"]
MODES: Mapping[str, Mode] = {"measure": "measure", "replay": "replay"}


@dataclass(frozen=True)
class Settings:
    """`only` names the one study that is measured and shown; if empty, all are."""

    mode: Mode = "measure"
    budget: Budget = BUDGETS["quick"]
    only: str = ""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """The settings of a notebook's kernel; a Binder machine replays.

        Raises GccostError for a mode or a budget that does not exist.
        """
        on_binder = any(name.startswith("BINDER_") for name in environment)
        mode = environment.get("GCCOST_MODE") or ("replay" if on_binder else "measure")
        return cls(
            named(MODES, mode, "mode"),
            named(BUDGETS, environment.get("GCCOST_BUDGET") or "quick", "budget"),
            environment.get("GCCOST_ONLY", ""),
        )

    def variables(self) -> dict[str, str]:
        """The environment variables that `read` gets the same settings from."""
        return {
            "GCCOST_MODE": self.mode,
            "GCCOST_BUDGET": self.budget.name,
            "GCCOST_ONLY": self.only,
        }
