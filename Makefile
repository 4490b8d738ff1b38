# Every target sets up what it needs: a virtual environment in .venv, installed through constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/pytest --numprocesses 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test check peers format speed bench bench-table clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY) ## fit, forecast and trace the bundled weather data
	$(BIN)/leapts demo

test: $(READY) ## run the whole test suite
	$(PYTEST)

check: $(READY) ## lint, format check, types, layers, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST)

# Some of the tools we adapt to want an older pandas than we develop with, so they live in an environment of their own.
PEERS := .venv-peers
PEERS_READY := $(PEERS)/.ready

$(PEERS_READY): pyproject.toml constraints.txt constraints-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade pip
	$(PEERS)/bin/python -m pip install --quiet --constraint constraints.txt --constraint constraints-peers.txt \
		--editable '.[neural,darts,sktime,stats]' beartype hypothesis polars pytest pytest-xdist
	@touch $@

peers: $(PEERS_READY) ## test the adapters with neuralforecast, Darts, sktime and statsforecast
	$(PEERS)/bin/pytest --numprocesses 2 --dist worksteal tests/adapters tests/test_baselines.py

format: $(READY) ## format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

speed: $(READY) ## measure the model against its own matrix products (ratios, one thread)
	$(BIN)/python benchmarks/core_speed.py

SUITE ?= main
bench: $(READY) ## do the runs of a suite that are not done: make bench SUITE=main, with LEAPTS_DATA set
	$(BIN)/python -m leapts_bench run $(SUITE)

bench-table: $(READY) ## render docs/benchmarks.md from the results, without training
	$(BIN)/python -m leapts_bench table

clean: ## remove the virtual environments and the caches
	rm -rf $(VENV) $(PEERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
