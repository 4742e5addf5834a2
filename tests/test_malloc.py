"""The experiment that separates Go 1.27's allocators, and toolchains that do not know it."""

from __future__ import annotations

import pytest

from gccost import processes
from gccost.cases import jobs
from gccost.cases.versions import ISSUE_GO
from gccost.errors import GccostError
from gccost.measuring import languages, toolchains, tools
from gccost.studies import malloc


@pytest.mark.slow
def test_a_release_without_the_experiment_says_so(tmp_path):
    go = toolchains.find(ISSUE_GO)
    if go is None:
        pytest.skip(f"needs Go {ISSUE_GO}")
    what = jobs.build(jobs.job("AllocateAuto/runtime=nosizespecializedmalloc", ISSUE_GO))
    compiler = tools.c_compiler(lambda _: None)
    build = languages.of(malloc.STUDY).build
    with pytest.raises(GccostError, match="unknown GOEXPERIMENT") as failure:
        build(what, go, compiler, 1, tmp_path, processes.run)
    assert "needs a release that has this experiment" in failure.value.hint


def test_the_table_names_the_experiment_in_words():
    keys = [job["runtime"] for job in malloc.STUDY.jobs.values()]
    assert set(keys) == {"stock", "one malloc"}
    assert "overlay" not in malloc.STUDY.packages
