# Everything needs nothing but Python 3.11 or later and make: the targets make .venv and install what they use.
PYTHON ?= $(firstword $(foreach name,python3.11 python3 python,$(shell command -v $(name))))
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test check lint types cover bench mutate clean
help:
	@echo "make demo   show what zarrlite does"
	@echo "make test   run all tests, peers included"
	@echo "make check  lint, types and tests"
	@echo "make cover  tests with branch coverage"
	@echo "make mutate plant bugs in a copy of the package and see which the fixtures catch"
	@echo "make bench  zarrlite against its peers and a hand-written limit; ARGS=--quick takes about two minutes"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# pip 25.1 is the first to read dependency groups
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

cover: $(VENV)/.tools
	$(BIN)/python -m pytest -q -n auto --dist loadfile --cov --cov-report=term-missing:skip-covered --cov-fail-under=95

bench: $(VENV)/.tools
	$(BIN)/python -m benchmarks $(ARGS)

mutate: $(VENV)/.tools
	$(BIN)/python -m tests.mutations $(ARGS)

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.tools
	$(BIN)/mypy

check: lint types test

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
