# Everything runs inside .venv; the stamps make a second run do no set-up work.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --constraint constraints.txt

.PHONY: setup demo test check soak bench bench-log mutants docs clean

setup: .venv/.installed

.venv/bin/uv: constraints.txt
	@echo "headwater: creating .venv"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "headwater: $(PYTHON) is older than 3.11; run make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@touch $@

.venv/.installed: pyproject.toml constraints.txt .venv/bin/uv
	@echo "headwater: installing (pyspark, pyarrow and a Java runtime; about half a minute)"
	@$(INSTALL) --editable .
	@$(BIN)/python -m compileall -q src
	@touch $@

.venv/.tested: .venv/.installed
	@echo "headwater: installing what the tests need"
	@$(INSTALL) --editable '.[test]'
	@touch $@

demo: .venv/.installed
	@$(BIN)/headwater demo

test: .venv/.tested
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest

check: .venv/.tested
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -m "not slow and not spark and not service"
