# Everything is reached from here; `make` alone lists it.
#
#   BUDGET=tiny|quick|standard|thorough   how long `report` and `measure` measure, in all
#   ONLY=<study>                          one study instead of all
#   FIXED=1                               `measure` gives each case the same rounds
#   GCCOST_RUNS=<folder>                  where the runs are kept (data/runs)
#   OPEN=1                                open the report in a browser
#   PYTHON=<command>                      the Python to make .venv with

python := .venv/bin/python
gccost := $(python) -m gccost
export GCCOST_BEGAN := $(shell date +%s)

opened = $(if $(OPEN),--open)

# Or JupyterLab refuses, in a container or a machine where everyone is root.
as_root = $(if $(filter 0,$(shell id -u)),--allow-root)
# A browser is sent to the notebook; the link that is printed for want of one is not.
linked := --LabApp.default_url=/lab/tree/00-results.ipynb

# The notebooks that are as git has them. The output of others may hold scripts.
unchanged = git ls-files 'notebooks/*.ipynb' 2>/dev/null | while read -r notebook; do \
	git diff --quiet HEAD -- "$$notebook" && echo "$$notebook"; done

ifdef BUDGET
export GCCOST_BUDGET := $(BUDGET)
endif
ifdef ONLY
export GCCOST_ONLY := $(ONLY)
endif

.PHONY: help
help: # this list
	@sed -n 's/^\([a-z-]*\):[^#]*# \(.*\)/  make \1|\2/p' Makefile | \
		awk -F '|' '{ printf "%-21s %s\n", $$1, $$2 }'

.PHONY: report
report: setup # measure (each call adds a sitting), and write report/index.html
	$(gccost) report $(opened)

.PHONY: replay
replay: setup # the same from the recorded runs: no compiler, no measuring
	$(gccost) replay $(opened)

.PHONY: measure
measure: setup # measure only: add a sitting to the run in data/runs, or begin a run
	$(gccost) measure $(if $(FIXED),--fixed)

.PHONY: lab
lab: setup # the notebooks in JupyterLab
	@$(unchanged) | xargs -r $(python) -m jupyter trust >/dev/null # or it hides the charts
	@echo "The Go kernel, which the go-* notebooks need, is built meanwhile if it is not there." >&2
	@$(gccost) kernel & kernel=$$!; trap 'kill $$kernel 2>/dev/null' EXIT INT TERM; \
	$(python) -m jupyterlab --ip=127.0.0.1 $(as_root) $(linked) notebooks/00-results.ipynb

.PHONY: kernel
kernel: setup # the Go kernel for JupyterLab: built and registered in .venv
	$(gccost) kernel

.PHONY: doctor
doctor: setup # what was found, what is missing, how it affects the report, how to fix it
	@$(gccost) doctor

.PHONY: test
test: setup-for-tests # style, types, and the tests that run in this process
	$(python) -m ruff check
	$(python) -m ruff format --check
	$(python) -m mypy
	$(python) -m pytest --numprocesses=logical -m "not slow"

.PHONY: test-all
test-all: setup-for-tests # the other tests: builds, JVMs, JupyterLab, a browser, signals, disks
	$(python) -m pytest --numprocesses=logical -m slow

.PHONY: words
words: # count the words of the report's pages
	@scripts/words

.PHONY: runtime-tests
runtime-tests: setup # Go's own tests and a stress under the changed runtimes: two hours
	scripts/runtime-tests $(RELEASE) $(VARIANT)

.PHONY: versions
versions: setup # what is pinned: packages, compilers
	@grep -h == locks/*.lock | sed 's/ *[;\\].*//' | sort -u
	@$(python) -c 'from gccost.cases.versions import GO_RELEASES; \
		print(*(f"go=={release}" for release in GO_RELEASES), sep="\n")'

.PHONY: docker
docker: # build the image that Binder would
	docker build --tag gccost .

.PHONY: docker-lab
docker-lab: docker # the notebooks in JupyterLab, in a container
	docker run --rm --interactive --tty --publish 127.0.0.1:8888:8888 gccost

.PHONY: docker-report
docker-report: docker # the report, measured in a container; it lands in report/
	scripts/docker-report $(BUDGET)

.PHONY: docker-test
docker-test: # prove the image with a real daemon: build, lab, replay, measuring offline
	scripts/docker-test

.PHONY: bare-machine
bare-machine: # prove that python3, make and a network are enough: needs root and debootstrap
	scripts/bare-machine $(RELEASE)

.PHONY: pack-test
pack-test: setup # prove that a pack measures without tools: needs root and debootstrap
	scripts/pack-test $(RELEASE)

.PHONY: clean
clean: # remove what was made: .venv, caches, report/; never data/runs
	rm -rf .venv .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis report
	find . -path ./data -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) \
		-prune -exec rm -rf {} +

.PHONY: setup
setup:
	@scripts/setup

.PHONY: setup-for-tests
setup-for-tests:
	@scripts/setup test
