# gpuadmin: `make help` lists what there is. Everything sets itself up; nothing needs a service.
PYTHON3 := $(or $(shell command -v python3.11),$(shell command -v python3),python3)
PYTHON := .venv/bin/python
MANAGE := $(PYTHON) -W error manage.py

.DEFAULT_GOAL := help
.PHONY: help demo test check test-cluster controlplane lock protos openapi screens clean setup-demo setup-tests

help:  ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*##  *\(.*\)/  make \1|\2/p' Makefile | column -t -s '|'

demo: setup-demo  ## the console on a simulated cluster, at 127.0.0.1:8000 (PORT=… moves it)
	@$(PYTHON) -m dev.demo

test: setup-tests  ## every test but those of the real control plane
	$(PYTHON) -m pytest -n auto

check: setup-tests  ## lint, types, import rules, migrations, OpenAPI, size of the simulator
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy .
	.venv/bin/lint-imports --no-logo
	$(PYTHON) -m dev.database $(MANAGE) makemigrations --check --dry-run
	$(PYTHON) -m dev.openapi --check
	$(PYTHON) -m dev.sizes

test-cluster: setup-tests  ## the tests that run on a real Kubernetes control plane
	$(PYTHON) -m pytest tests/cluster -m cluster

controlplane: setup-tests  ## builds that control plane into the cache (minutes, once)
	$(PYTHON) tests/controlplane/build.py

lock: setup-tests  ## resolves requirements*.in and package.json into their lock files
	$(PYTHON) -m dev.lock

protos: setup-tests  ## generates the kubelet's gRPC modules from our .proto files
	$(PYTHON) -m dev.protos

openapi: setup-tests  ## writes docs/openapi.yaml and docs/settings.md from the code
	$(PYTHON) -m dev.openapi

screens: setup-tests  ## pictures of every page of a running demo, in var/screens
	$(PYTHON) -m dev.screens

clean:  ## removes what make made in this checkout, the demo's data included
	rm -rf .venv node_modules var .static .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

setup-demo:
	@$(PYTHON3) dev/setup.py demo

setup-tests:
	@$(PYTHON3) dev/setup.py tests
