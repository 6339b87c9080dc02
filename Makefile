# Each target sets up what it needs in a fresh clone: nothing but Python (3.11 or later) and make is needed before.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 0

.DEFAULT_GOAL := help
.PHONY: help demo test lint types bench house clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## the main job on real data: a table and demo/arrival-delays.png
	@$(BIN)/sottovoce demo --plot demo/arrival-delays.png

test: $(VENV)/.test ## the tests, without the slow statistical ones (WORKERS=2 for two at a time)
	@$(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/.all ## ruff and the import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@PATH="$(CURDIR)/$(BIN):$$PATH" lint-imports

types: $(VENV)/.all ## mypy, strict
	@$(BIN)/mypy

bench: $(VENV)/.all ## the statistical promises and the speeds, measured (minutes)
	@$(BIN)/python -m benchmarks

house: $(VENV)/.test ## the package at a glance: who imports whom, cycles, longest files, what a call loads
	@$(BIN)/python scripts/house.py

clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis src/*.egg-info papers/src/*.egg-info papers/build
	find src tests papers benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Python 3.11 or later is needed, and '$(PYTHON)' is not: install it, or say make PYTHON=/path/to/python3"; exit 1; }
	@echo "Making $(VENV)"
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "'$(PYTHON)' cannot make an environment: install its venv module"; exit 1; }

# One stamp an extra, made again when what is to be installed changes.
$(VENV)/.%: pyproject.toml papers/pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing sottovoce[$*] (once)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[$*]' $(if $(filter demo,$*),,-e ./papers)
	@touch $@
