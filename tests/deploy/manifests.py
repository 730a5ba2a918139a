"""Folders of ``deploy/`` as kustomize renders them, and docker-compose.yml as data."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import yaml

from tests.controlplane.client import Document
from tests.deploy.written import ROOT

DEPLOY = ROOT / "deploy"
OVERLAYS = ("runtimeclass", "default-runtime", "mig", "processes")


@cache
def rendered(folder: str) -> list[Document]:
    """What ``kubectl apply -k deploy/FOLDER`` would send. Raises CalledProcessError."""
    kubectl = Path(sys.executable).with_name("kubectl")
    printed = subprocess.run(
        [kubectl, "kustomize", DEPLOY / folder], check=True, capture_output=True, text=True
    ).stdout
    return list(yaml.safe_load_all(printed))


def named(folder: str, kind: str) -> dict[str, Document]:
    """The objects of one kind in a rendered folder, by name."""
    return {one["metadata"]["name"]: one for one in rendered(folder) if one["kind"] == kind}


def pod_spec(workload: Document) -> Document:
    """The pod that a Deployment or DaemonSet makes."""
    spec: Document = workload["spec"]["template"]["spec"]
    return spec


def agent(overlay: str) -> Document:
    """The agent's pod of one overlay."""
    return pod_spec(named(f"agent/{overlay}", "DaemonSet")["gpuadmin-agent"])


def console() -> dict[str, Document]:
    """The console's pods by process: web, worker, beat, watcher."""
    found = named("server", "Deployment")
    return {name.removeprefix("gpuadmin-"): pod_spec(one) for name, one in found.items()}


@cache
def compose() -> Document:
    """docker-compose.yml with its anchors resolved."""
    found: Document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found
