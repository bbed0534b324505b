# make demo | test | test-fast | check | check-pythons | docs | docs-test | reference | pictures | budgets | evidence | audit
# | bench | reality: each sets up .venv by itself, with pip, from constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DOCS_READY := .venv/.docs-ready
# compat: the checkout itself is on the path. Setuptools' own finder comes behind the path, on which any folder
# called `traces` beside a notebook, such as the tutorial's, would stand for our package of that name.
EDITABLE := --config-settings editable_mode=compat --editable

.PHONY: demo test test-fast check lint check-wheel check-pythons docs docs-test reference pictures budgets evidence audit bench reality setup setup-docs clean
.DELETE_ON_ERROR:

setup: $(READY)

setup-docs: $(DOCS_READY)

$(READY): setup.cfg pyproject.toml constraints.txt Makefile
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("driftscale needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $(EDITABLE) '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/driftscale run digits --jobs auto

# A worker reads the compiled tests of the run before: to compile them takes it 13 s.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadscope \
	--no-loadscope-reorder

test: $(READY)
	$(PYTEST) --durations=10

test-fast: $(READY)
	$(PYTEST) --fast

check: $(READY)
	$(PYTHON) .ci/steps.py "test | lint check-wheel"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check-wheel: $(READY)
	$(BIN)/python tests/check_wheel.py

check-pythons: $(READY)
	$(BIN)/python tests/check_pythons.py

# What Sphinx read is kept between builds, but not after a warning: a page that is not read again would not repeat it.
docs: $(DOCS_READY)
	rm -rf build/site
	$(BIN)/sphinx-build -n -W --keep-going -q -j auto -c docs -d build/doctrees . build/site || { rm -rf build/doctrees; exit 1; }
	$(BIN)/python tests/docs/check_site.py build/site

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $(EDITABLE) '.[dev,docs]'
	touch $(DOCS_READY)

docs-test: $(READY)
	$(BIN)/python tests/docs/play_blocks.py

reference: $(READY)
	$(BIN)/python -m docs.writing

pictures: $(READY)
	$(BIN)/python -m docs.writing.pictures

budgets: $(READY)
	$(BIN)/python -m docs.writing.budgets

evidence: $(READY)
	$(BIN)/python -m docs.writing.evidence $(PLAYED)

audit: $(READY)
	$(BIN)/python tests/audit.py

bench: $(READY)
	$(BIN)/python -m benchmarks

# Beside a server and clients of Flower, in ten minutes on a quiet machine. They have a venv of their own.
FLOWER := build/reality-venv
reality: $(READY) $(FLOWER)/.ready
	$(BIN)/python -m benchmarks.reality

$(FLOWER)/.ready: benchmarks/reality/requirements.txt
	test -x $(FLOWER)/bin/python || $(PYTHON) -m venv $(FLOWER)
	$(FLOWER)/bin/python -m pip install --quiet --requirement $<
	touch $@

clean:
	rm -rf .venv build dist *.egg-info
