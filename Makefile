# make demo   watch a transformer absorb its chain of thought
# make test   run the tests
# make lint   style, types, import rules
# make docs   build the documentation in site/, and run every block of code in it
# make dist   build wheel and source distribution in dist/, and try the wheel in an environment of its own
# Each sets up its own environment in .venv first.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint docs dist clean

demo: $(VENV)/.ready
	$(BIN)/internalize demo

test: $(VENV)/.ready
	$(BIN)/pytest -n auto --dist loadgroup

lint: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	$(BIN)/python docs/run_code.py

dist: $(VENV)/.ready
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(PYTHON) -m venv --clear $(VENV)-wheel
	$(VENV)-wheel/bin/pip install --quiet -c constraints.txt dist/*.whl
	cd $(VENV)-wheel && bin/internalize --version && bin/internalize construct C3 --steps 6 --via count --out runs
	cd $(VENV)-wheel && bin/python -m internalize run --task C2 --steps 8 --schedule.budget 40 --out runs
	rm -rf $(VENV)-wheel

$(VENV)/.ready-docs: $(VENV)/.ready
	$(BIN)/pip install --quiet -c constraints.txt -e '.[docs]'
	@touch $@

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "internalize needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-wheel build dist site
