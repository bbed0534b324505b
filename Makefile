# make demo | test | test-fast | check | check-pythons | audit | bench: each sets up .venv by itself, with pip, from constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-fast check check-pythons audit bench setup clean
.DELETE_ON_ERROR:

setup: $(READY)

$(READY): setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("driftscale needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/driftscale run experiments/configs/digits.toml --jobs auto

test: $(READY)
	$(BIN)/python -m pytest --durations=10 --numprocesses=auto --maxprocesses=4 --dist=loadscope

test-fast: $(READY)
	$(BIN)/python -m pytest --fast --numprocesses=auto --maxprocesses=4 --dist=loadscope

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test
	$(BIN)/python tests/check_wheel.py

check-pythons: $(READY)
	$(BIN)/python tests/check_wheel.py --pythons

audit: $(READY)
	$(BIN)/python tests/audit.py

bench: $(READY)
	$(BIN)/driftscale bench

clean:
	rm -rf .venv build dist *.egg-info
