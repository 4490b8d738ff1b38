# Every target creates the virtual environment it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The packages of the site share the environment of development: its pages import LeapTS.
DOCS_READY := $(VENV)/.ready-docs
# Release tools have an environment of their own.
RELEASE := .venv-release
RELEASE_READY := $(RELEASE)/.ready
PYTEST := -m pytest --numprocesses 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow public-api coverage lint check peers clusters format docs wheel wheel-test lock licences sbom audit speed bench bench-speed bench-table clean stress mutation nightly

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

# make LOCKED=1 ... installs the versions of requirements-dev.lock, checked by their hashes (Linux, x86-64, Python 3.11).
LOCKED ?=
install = $(if $(LOCKED),\
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-dev.lock && \
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .,\
	$(BIN)/python -m pip install --quiet --upgrade pip && \
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(1)]')

$(READY): pyproject.toml constraints.txt $(if $(LOCKED),requirements-dev.lock)
	$(PYTHON) -m venv $(VENV)
	$(call install,dev)
	@touch $@

$(DOCS_READY): $(READY)
	$(if $(LOCKED),,$(call install,docs))
	@touch $@

$(RELEASE_READY): pyproject.toml
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --upgrade pip
	$(RELEASE)/bin/python -m pip install --quiet --group release
	@touch $@

demo: $(READY) ## fit, forecast and report the bundled sales of four shops
	$(BIN)/leapts demo

test: $(READY) ## run every test that is not slow by design
	$(BIN)/python $(PYTEST) -m "not slow"

test-slow: $(READY) ## run the slow tests: every export, killed processes, training to convergence, browsers under load
	$(BIN)/python $(PYTEST) -m slow

public-api: $(READY) ## rewrite tests/public_api.toml from the code, after a change of the public interface on purpose
	$(BIN)/python tools/public_api.py

coverage: $(READY) ## run all tests and measure branch coverage of src/leapts; fails below the floor in pyproject.toml
	$(BIN)/coverage erase
	$(BIN)/coverage run $(PYTEST)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --show-missing

lint: $(READY) ## lint, format check, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test ## lint and test: must pass before a change lands

# Some of the tools we adapt to want an older pandas than we develop with, so they live in an environment of their own,
# which takes from that of development what it does not have itself: torch need not be there twice.
PEERS := .venv-peers
PEERS_READY := $(PEERS)/.ready
PACKAGES := import sysconfig; print(sysconfig.get_path("purelib"))

$(PEERS_READY): $(READY) constraints-peers.txt
	$(PYTHON) -m venv --clear $(PEERS)
	$(BIN)/python -c '$(PACKAGES)' >"$$($(PEERS)/bin/python -c '$(PACKAGES)')/development.pth"
	$(PEERS)/bin/python -m pip install --quiet --constraint constraints.txt \
		--constraint constraints-peers.txt --editable '.[neural,darts,sktime,gluonts,fev,stats]'
	@touch $@

peers: $(PEERS_READY) ## test the adapters and the benchmark's peers with neuralforecast, Darts, sktime, GluonTS, fev and statsforecast, and the frames of pandas 2
	$(PEERS)/bin/python $(PYTEST) --ignore tests/integrations/ray tests/integrations tests/forecasting/test_baselines.py tests/data \
		tests/forecasting/test_kinds.py tests/bench/test_baselines.py

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
	$(CLUSTERS)/bin/pytest tests/integrations/ray tests/bench/test_scale.py

nightly: lint coverage peers clusters docs wheel-test ## run everything there is, hours of it: lint, all tests, peers, clusters, site, wheel

format: $(READY) ## format the code and apply the linter's fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DOCS_READY) ## build the site in site/; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The lock has the build backend too, with its hashes; else it is downloaded by its version.
wheel: $(if $(LOCKED),$(READY),$(RELEASE_READY)) ## build the wheel and the source archive in dist/
	rm -rf dist
	$(if $(LOCKED),$(BIN)/python -m hatchling build,$(RELEASE)/bin/python -m build --quiet)

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
	$(BIN)/python -m leapts_bench.speed.matrix_products

SUITE ?= main
bench: $(READY) ## do the runs of a suite that are not done: make bench SUITE=main, with LEAPTS_DATA set
	$(BIN)/python -m leapts_bench run $(SUITE)

bench-speed: $(PEERS_READY) ## measure speed beside the peers; on a quiet machine, with LEAPTS_DATA set
	$(PEERS)/bin/python -m leapts_bench speed

bench-table: $(READY) ## render the benchmark pages and charts from the results, without training
	$(BIN)/python -m leapts_bench table

SECONDS_AT_MOST ?= 36000
stress: $(READY) ## run the stress suites that are not done (since a commit: SINCE=...), and render docs/reliability.md; needs strace and root
	$(BIN)/python -m leapts_qa run --seconds $(SECONDS_AT_MOST) $(addprefix --since ,$(SINCE))

mutation: $(READY) ## change the modules of [tool.mutmut] in small ways, and count the changes that the tests notice
	rm -rf mutants
	$(BIN)/mutmut run --max-children 2
	$(BIN)/mutmut export-cicd-stats
	$(BIN)/python -m leapts_qa mutation

clean: ## remove the virtual environments and the caches
	rm -rf $(VENV) $(PEERS) $(CLUSTERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache mutants dist site $(RELEASE)
