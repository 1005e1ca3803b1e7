# All targets need only make and Python 3.11 or later: they create .venv and install the tools that they use.
PYTHON ?= $(firstword $(foreach name,python3.11 python3 python,$(shell command -v $(name))))
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-newest check lint types cover bench mutate torture docs package clean
help:
	@echo "make demo   create, write, read and show arrays"
	@echo "make test   run all tests, peers included"
	@echo "make test-newest  the same with the newest Python and zarr-python, in a Debian system that it creates (as root)"
	@echo "make check  lint, types and tests"
	@echo "make cover  run all tests with branch coverage"
	@echo "make mutate plant bugs in a copy of the package and report which of them the fixtures catch"
	@echo "make torture crash, interrupt and damage everything that is written, in full, and plant faults that this must catch"
	@echo "make docs    build the documentation site in build/site, and check it"
	@echo "make package build the packages in dist, check them, and install them in clean environments"
	@echo "make bench  measure zarrlite, its peers and a hand-written limit; ARGS=--quick takes about two minutes, ARGS=--remote has data in S3"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# pip 25.1 is the first release that reads dependency groups
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.tools: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group test --group peers --group check
	touch $@

demo: $(VENV)/.installed
	@$(BIN)/python -m zarrlite.tools.demo

test: $(VENV)/.tools
	$(BIN)/python -m pytest -q -n auto --dist loadfile

test-newest:
	tests/newest.sh $(ARGS)

cover: $(VENV)/.tools
	$(BIN)/python -m pytest -q -n auto --dist loadfile --cov --cov-report=term-missing:skip-covered --cov-fail-under=95

bench: $(VENV)/.tools
	$(BIN)/python -m benchmarks $(ARGS)

mutate: $(VENV)/.tools
	$(BIN)/python -m tests.mutations $(ARGS)

torture: $(VENV)/.tools
	$(BIN)/python -m tests.reliability --full $(ARGS)
	$(BIN)/python -m tests.reliability --planted
	ZARRLITE_TORTURE=1 $(BIN)/python -m pytest -q tests/remote/test_writers.py

# tools that only these two targets need
docs: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	$(BIN)/python -m tests.site

package: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group package
	tests/packages.sh

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tests.words

types: $(VENV)/.tools
	$(BIN)/mypy

check: lint types test

clean:
	rm -rf $(VENV) build dist spec_fixtures/dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
