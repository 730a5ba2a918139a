# gpuadmin: `make help` lists what there is. Everything sets itself up; nothing needs a service.
PYTHON3 := $(or $(shell command -v python3.11),$(shell command -v python3),python3)
PYTHON := .venv/bin/python
COMPILE := .venv/bin/uv pip compile --quiet --system-certs --generate-hashes --no-header --python-version 3.11

.DEFAULT_GOAL := help
.PHONY: help demo test check test-cluster test-faults controlplane documents lock protos screens bench clean \
        setup-demo setup-tests

help:  ## this list
	@awk -F ':.*## +' '/^[a-z-]+:.*## /{printf "  make %-14s%s\n", $$1, $$2}' Makefile

demo: setup-demo  ## the console on a simulated cluster, at 127.0.0.1:8000 (PORT=… moves it)
	@$(PYTHON) -m dev.demo

test: setup-tests  ## every test but those of the real control plane (most wait for processes: 3 at once on 2 cores)
	$(PYTHON) -m pytest -n 3

check: setup-tests  ## lint, types, import rules, migrations, documents, size of the simulator
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy .
	.venv/bin/lint-imports --no-logo
	$(PYTHON) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(PYTHON) -m dev.documents --check
	$(PYTHON) -m simulator.sizes

test-cluster: setup-tests  ## the tests that need a real Kubernetes control plane
	$(PYTHON) -m pytest -m cluster

test-faults: setup-tests  ## the tests that kill our own processes, database and queue
	$(PYTHON) -m pytest -m faults tests/faults

controlplane: setup-tests  ## builds that control plane into the cache (minutes, once)
	$(PYTHON) tests/controlplane/build.py

documents: setup-tests  ## writes docs/settings.md and docs/openapi.yaml from the code
	$(PYTHON) -m dev.documents

lock: setup-tests  ## resolves requirements*.in and package.json into their lock files
	$(COMPILE) requirements.in -o requirements.txt
	$(COMPILE) requirements-server.in -c requirements.txt -o requirements-server.txt
	$(COMPILE) requirements-agent.in -c requirements.txt -o requirements-agent.txt
	$(COMPILE) requirements-dev.in -c requirements.txt -o requirements-dev.txt
	$(COMPILE) requirements-node.in -o requirements-node.txt
	npm install --package-lock-only --ignore-scripts --no-audit --no-fund

protos: setup-tests  ## generates the kubelet's gRPC module from our .proto file
	$(PYTHON) -m grpc_tools.protoc -I. --python_out=. --pyi_out=. agent/protos/podresources.proto

screens: setup-tests  ## pictures of every page in var/screens, light and dark, wide and narrow
	SCREENS=1 $(PYTHON) -m pytest tests/e2e/test_screens.py tests/e2e/test_taint.py

bench: setup-demo  ## start time, idle CPU and memory of the whole demo
	$(PYTHON) -m dev.bench

clean:  ## removes what make made in this checkout, the demo's data included
	rm -rf .venv node_modules var .static .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

setup-demo:
	@$(PYTHON3) dev/setup.py demo

setup-tests:
	@$(PYTHON3) dev/setup.py tests
