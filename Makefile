# make demo   watch a transformer absorb its chain of thought
# make test   run the tests
# make lint   style, types, import rules
# Each sets up its own environment in .venv first.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint clean

demo: $(VENV)/.ready
	$(BIN)/internalize demo

test: $(VENV)/.ready
	$(BIN)/pytest -n auto --dist loadgroup

lint: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "internalize needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist
