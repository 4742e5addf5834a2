"""The settings of a session: measure or replay, the budget, and the study.

The command line makes these settings and passes them on. A notebook's kernel gets them as
environment variables, which only `read` reads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gccost import paths
from gccost.cases.cases import BUDGETS, Budget, one_of

Mode = Literal["measure", "replay"]
MODES: Mapping[str, Mode] = {"measure": "measure", "replay": "replay"}


@dataclass(frozen=True)
class Settings:
    """A session's settings; `only` names the one study to measure and show, or is empty for all."""

    mode: Mode = "measure"
    budget: Budget = BUDGETS["quick"]
    only: str = ""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read the settings of a notebook's kernel; on Binder the mode is replay.

        Raises GccostError for an unknown mode or budget.
        """
        on_binder = any(name.startswith("BINDER_") for name in environment)
        mode = environment.get("GCCOST_MODE") or ("replay" if on_binder else "measure")
        return cls(
            one_of(MODES, mode, "mode"),
            one_of(BUDGETS, environment.get("GCCOST_BUDGET") or "quick", "budget"),
            environment.get("GCCOST_ONLY", ""),
        )

    def variables(self) -> dict[str, str]:
        """The environment variables from which `read` gets the same settings.

        They also name the folder for the pictures of the main charts.
        """
        return {
            "GCCOST_MODE": self.mode,
            "GCCOST_BUDGET": self.budget.name,
            "GCCOST_ONLY": self.only,
            "GCCOST_PICTURES": str(paths.report() / "figures"),
        }
