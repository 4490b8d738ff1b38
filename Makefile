# Every target sets up what it needs: a virtual environment in .venv, installed through constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The site's packages are light beside torch, and its pages need LeapTS, so they share the environment.
DOCS_READY := $(VENV)/.ready-docs
# What makes a release has nothing to do with LeapTS, and stays apart.
RELEASE := .venv-release
RELEASE_READY := $(RELEASE)/.ready
PYTEST := -m pytest --numprocesses 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test coverage mutation lint check peers clusters format docs wheel wheel-test lock licences sbom audit speed bench bench-speed bench-table clean resilience

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

$(RELEASE_READY): pyproject.toml
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --upgrade pip
	$(RELEASE)/bin/python -m pip install --quiet --group release
	@touch $@

demo: $(READY) ## fit, forecast and trace the bundled weather data
	$(BIN)/leapts demo

test: $(READY) ## run the whole test suite
	$(BIN)/python $(PYTEST)

coverage: $(READY) ## run it and measure which branches of src/leapts it takes; fails below the floor in pyproject.toml
	$(BIN)/coverage erase
	$(BIN)/coverage run $(PYTEST)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --show-missing

lint: $(READY) ## lint, format check, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test ## all that must pass before a change lands

# Some of the tools we adapt to want an older pandas than we develop with, so they live in an environment of their own,
# which takes from that of development what it does not have itself: torch need not be there twice.
PEERS := .venv-peers
PEERS_READY := $(PEERS)/.ready
PACKAGES := import sysconfig; print(sysconfig.get_path("purelib"))

$(PEERS_READY): $(READY) constraints-peers.txt
	$(PYTHON) -m venv --clear $(PEERS)
	$(BIN)/python -c '$(PACKAGES)' >"$$($(PEERS)/bin/python -c '$(PACKAGES)')/development.pth"
	$(PEERS)/bin/python -m pip install --quiet --constraint constraints.txt \
		--constraint constraints-peers.txt --editable '.[neural,darts,sktime,stats]'
	@touch $@

peers: $(PEERS_READY) ## test the adapters and the benchmark's peers with neuralforecast, Darts, sktime and statsforecast, and the frames of pandas 2
	$(PEERS)/bin/python $(PYTEST) tests/adapters tests/test_baselines.py tests/data \
		tests/forecaster/test_kinds.py tests/bench/test_peers.py

# Ray and Spark are heavy beside what everybody needs, and their tests bring up a cluster: apart, and one after the other.
CLUSTERS := .venv-clusters
CLUSTERS_READY := $(CLUSTERS)/.ready

$(CLUSTERS_READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(CLUSTERS)
	$(CLUSTERS)/bin/python -m pip install --quiet --upgrade pip
	$(CLUSTERS)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[ray,spark,tune]' \
		beartype hypothesis pytest
	@touch $@

clusters: $(CLUSTERS_READY) ## test forecasts, training, searches and suites on Ray and Spark
	$(CLUSTERS)/bin/pytest tests/scaleout tests/bench/test_scale.py

format: $(READY) ## format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DOCS_READY) ## build the site in site/; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(RELEASE_READY) ## build the wheel and the source archive in dist/
	rm -rf dist
	$(RELEASE)/bin/python -m build --quiet

wheel-test: wheel ## install the wheel into an empty environment and run the demo there
	./tools/wheel_test.sh $(PYTHON)

lock: $(RELEASE_READY) ## pin development again in requirements-dev.lock (needs the network)
	./tools/lock.sh $(RELEASE)/bin/uv

licences: $(DOCS_READY) ## write docs/licences.md from the installed packages
	$(BIN)/python tools/licences.py

sbom: $(RELEASE_READY) ## write what development is made of to dist/sbom.cdx.json (CycloneDX)
	mkdir -p dist
	$(RELEASE)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible -o dist/sbom.cdx.json \
	  requirements-dev.lock

audit: $(RELEASE_READY) ## ask the public database about known vulnerabilities (needs the network)
	./tools/audit.sh $(RELEASE)/bin/pip-audit

speed: $(READY) ## measure the model against its own matrix products (ratios, one thread)
	$(BIN)/python benchmarks/core_speed.py

SUITE ?= main
bench: $(READY) ## do the runs of a suite that are not done: make bench SUITE=main, with LEAPTS_DATA set
	$(BIN)/python -m leapts_bench run $(SUITE)

bench-speed: $(PEERS_READY) ## measure speed beside the peers; on a quiet machine, with LEAPTS_DATA set
	$(PEERS)/bin/python -m leapts_bench speed

bench-table: $(READY) ## render docs/benchmarks.md from the results, without training
	$(BIN)/python -m leapts_bench table

SECONDS_AT_MOST ?= 36000
resilience: $(READY) ## try to break it: what is not done of the long campaigns, then docs/reliability.md; needs strace and root
	$(BIN)/python -m leapts_bench resilience --seconds $(SECONDS_AT_MOST)

mutation: $(READY) ## put faults into the code, one at a time, and see whether the tests notice; then docs/reliability.md
	$(BIN)/python -m leapts_bench.mutation --seconds $(SECONDS_AT_MOST)
	$(BIN)/python -m leapts_bench resilience --seconds 0

clean: ## remove the virtual environments and the caches
	rm -rf $(VENV) $(PEERS) $(CLUSTERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist site $(RELEASE)
