"""The experiment that separates Go 1.27's allocators, and toolchains that do not know it."""

from __future__ import annotations

import pytest

from gccost import processes
from gccost.errors import GccostError
from gccost.measuring import ccompilers, jobs, languages, toolchains
from gccost.measuring.cases import AUTO, Case
from gccost.measuring.toolchains import ISSUE_GO
from gccost.studies import malloc


@pytest.mark.slow
def test_a_release_without_the_experiment_says_so(tmp_path):
    go = toolchains.find(ISSUE_GO)
    if go is None:
        pytest.skip(f"needs Go {ISSUE_GO}")
    case = Case("cstr", malloc.without(AUTO), ISSUE_GO, 1000)
    compiler = ccompilers.fetch(lambda _: None)
    build = languages.of(malloc.STUDY).build
    with pytest.raises(GccostError, match="unknown GOEXPERIMENT") as failure:
        build(case.build, go, compiler, 1, tmp_path, processes.run)
    assert "needs a release that has this experiment" in failure.value.hint


def test_the_table_names_the_experiment_in_words():
    keys = [jobs.job(case)["runtime"] for case in malloc.STUDY.cases]
    assert set(keys) == {"stock", "one malloc"}
    assert "overlay" not in malloc.STUDY.packages
