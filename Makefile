# Each target sets up what it needs in a fresh clone: nothing but Python (3.11 or later) and make is needed before.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
WORKERS ?= $(shell nproc 2>/dev/null || echo auto)
PIP := -m pip install -qq --disable-pip-version-check

# A worker is one process a core already: linear algebra that took all cores as well would wait for itself.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# Modules are compiled once, and not again in each of the hundreds of processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo demo-federation demo-collector test test-lowest test-install release release-dry lint types docs docs-serve tutorials bench bench-peers house clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/.plot ## put sottovoce and its pictures into .venv
	@echo "Installed. From here on, in this shell:  . $(BIN)/activate"
	@echo "Then, on a CSV of your own:  sottovoce quantile FILE.csv --value COLUMN --site COLUMN --tau 0.9 --epsilon 1"

demo: $(VENV)/.demo ## the main job on real data: a table and demo/arrival-delays.png
	@$(BIN)/sottovoce demo --plot demo/arrival-delays.png
	@echo "To go on:  . $(BIN)/activate  and then  sottovoce --help"

demo-federation: $(VENV)/.demo $(VENV)/.federation ## three sites and a coordinator over TLS; one site is killed and starts again
	@$(BIN)/python scripts/demo_federation.py

demo-collector: $(VENV)/.collector ## a collector, 20,000 simulated devices, a live page and its picture (STAY=--stay: the page stays)
	@$(BIN)/python scripts/demo_collector.py $(STAY)

flights.csv: $(VENV)/.demo scripts/write_flights.py ## a file to try the commands on: 327,346 flights of 16 carriers
	@$(BIN)/python scripts/write_flights.py $@

test: $(VENV)/.test ## the tests, without the slow statistical ones, on all cores (WORKERS=1: on one)
	@start=$$(date +%s); $(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS); status=$$?; took=$$(($$(date +%s) - start)); \
		echo "make test took $$((took / 60)) min $$((took % 60)) s with $(WORKERS) workers"; exit $$status

test-lowest: $(LOWEST)/.installed ## the tests of commands, the public API and reading, with the lowest versions stated
	@start=$$(date +%s); $(ONE_THREAD) $(LOWEST)/bin/python -m pytest -n $(WORKERS) tests/cli tests/install tests/client tests/api; \
		status=$$?; echo "make test-lowest took $$(($$(date +%s) - start)) s"; exit $$status

test-install: $(BIN)/python ## build wheels and sdists, install each into an environment of its own, and use it
	@$(BIN)/python scripts/check_install.py

release: $(BIN)/python ## wheels, sdists and SHA256SUMS into dist/, from the last commit, built twice and compared
	@$(BIN)/python scripts/release.py

release-dry: $(BIN)/python ## the same from what the working tree holds, whatever the changelog says
	@$(BIN)/python scripts/release.py --dry

lint: $(VENV)/.all ## ruff and the import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@PATH="$(CURDIR)/$(BIN):$$PATH" lint-imports

types: $(VENV)/.all ## mypy, strict
	@$(BIN)/mypy

docs: $(VENV)/.docs ## the documentation site into build/site; a warning stops it
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Built: build/site/index.html"

docs-serve: $(VENV)/.docs ## the site on this machine, built again whenever a page changes
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --strict --watch src

tutorials: $(VENV)/.test ## run the tutorials again: what their pages show, their notebooks and pictures
	@$(ONE_THREAD) $(BIN)/python scripts/write_tutorials.py

bench: $(VENV)/.all ## the statistical promises and the speeds, measured (minutes)
	@$(BIN)/python -m benchmarks

bench-peers: $(VENV)/.bench ## other libraries side by side with this one (WRITE="--write docs/peers.md": the page; minutes)
	@$(ONE_THREAD) $(BIN)/python -m benchmarks.peers $(WRITE)

house: $(VENV)/.test ## the package at a glance: who imports whom, cycles, longest files, what a call loads
	@$(BIN)/python scripts/house.py

clean: ## remove the environments and everything built
	rm -rf $(VENV) $(LOWEST) build dist demo flights.csv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -rf src/*.egg-info papers/src/*.egg-info papers/build client/build
	find src tests papers benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python $(LOWEST)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Python 3.11 or later is needed, and '$(PYTHON)' is not: install it, or say make PYTHON=/path/to/python3"; exit 1; }
	@echo "Making $(@D:/bin=)"
	@$(PYTHON) -m venv $(@D:/bin=) || \
		{ rm -rf $(@D:/bin=); echo "'$(PYTHON)' cannot make an environment: install its venv module"; exit 1; }

$(LOWEST)/.installed: pyproject.toml scripts/floors.py | $(LOWEST)/bin/python
	@echo "Installing the lowest versions stated (once)"
	@$(LOWEST)/bin/python scripts/floors.py > $(LOWEST)/floors.txt
	@$(LOWEST)/bin/python $(PIP) -c $(LOWEST)/floors.txt -e '.[demo,fast,learn,pandas,polars]' -e ./papers pytest pytest-xdist hypothesis
	@touch $@

# One stamp an extra, made again when what is to be installed changes.
$(VENV)/.%: pyproject.toml papers/pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing sottovoce[$*] (once)"
	@$(BIN)/python $(PIP) -c constraints.txt -e '.[$*]' $(if $(filter demo plot federation collector,$*),,-e ./papers)
	@touch $@
