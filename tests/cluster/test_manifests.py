"""Every folder of ``deploy/`` on a real API server, and what Pod Security says of its pods."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuadmin.kube.connection import from_kubeconfig
from gpuadmin.kube.inline import read
from tests.cluster.grants import DEPLOY, held_names
from tests.cluster.objects import SETTLE_SECONDS
from tests.controlplane.client import Client, Document
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.deploy.manifests import OVERLAYS, agent, console, rendered
from tests.deploy.written import exceptions

pytestmark = [pytest.mark.cluster, pytest.mark.real_only]

RESTRICTED = "restricted-here"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


@pytest.fixture(scope="module")
def restricted(plane: ControlPlane) -> Iterator[str]:
    """Where pods of a namespace that enforces "restricted" are made; our accounts are there."""
    admin = plane.admin
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    admin.ok("POST", "/api/v1/namespaces", {"metadata": {"name": RESTRICTED, "labels": label}})
    admin.ok("POST", CLASSES, {"metadata": {"name": "nvidia"}, "handler": "nvidia"})
    for account in ("gpuadmin", "gpuadmin-agent"):
        accounts = f"/api/v1/namespaces/{RESTRICTED}/serviceaccounts"
        admin.ok("POST", accounts, {"metadata": {"name": account}})
    yield f"/api/v1/namespaces/{RESTRICTED}/pods?dryRun=All"
    admin.ok("DELETE", f"/api/v1/namespaces/{RESTRICTED}")
    admin.ok("DELETE", f"{CLASSES}/nvidia")


def refused(admin: Client, pods: str, spec: Document) -> set[str]:
    """The controls of "restricted" that the API server finds broken; none in a pod it takes."""
    answer = admin.call("POST", pods, {"metadata": {"name": "tried"}, "spec": spec})
    if answer.status == 201:
        return set()
    found = re.search(r'violates PodSecurity "restricted:latest": (.*)', answer.body["message"])
    assert found, answer.body["message"]
    return {control.split(" (")[0] for control in found[1].split("), ")}


@pytest.mark.parametrize("process", ["web", "worker", "beat", "watcher"])
def test_the_consoles_pods_keep_to_pod_security_restricted(
    plane: ControlPlane, restricted: str, process: str
) -> None:
    assert refused(plane.admin, restricted, console()[process]) == set()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_agent_breaks_no_control_but_those_that_are_written_down(
    plane: ControlPlane, restricted: str, overlay: str
) -> None:
    assert refused(plane.admin, restricted, agent(overlay)) == exceptions(overlay)


@pytest.mark.parametrize("folder", ["server", *(f"agent/{name}" for name in OVERLAYS)])
def test_kubectl_applies_it_and_takes_it_away(
    plane: ControlPlane, reader: Path, folder: str
) -> None:
    printed = plane.kubectl("apply", "-k", str(DEPLOY / folder))
    assert printed.count(" created\n") == len(rendered(folder))
    again = plane.kubectl("apply", "-k", str(DEPLOY / folder))
    assert again.count(" unchanged\n") + again.count(" configured\n") == len(rendered(folder))
    plane.kubectl("delete", "-k", str(DEPLOY / folder), "--cascade=foreground")


def test_an_agent_goes_to_labelled_nodes_and_leaves_one_that_is_paused(
    plane: ControlPlane, reader: Path
) -> None:
    admin, path = plane.admin, "/apis/apps/v1/namespaces/gpuadmin/daemonsets/gpuadmin-agent"
    nodes: dict[str, dict[str, str]] = {
        "by-gfd": {"nvidia.com/gpu.present": "true"},
        "by-nfd": {"feature.node.kubernetes.io/pci-10de.present": "true"},
        "running": {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.deploy.client": "true"},
        "paused": {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.deploy.client": "paused-for-mig-change",
        },
        "without-gpu": {},
    }
    for name, labels in nodes.items():
        admin.ok("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    plane.kubectl("apply", "-k", str(DEPLOY / "agent" / "default-runtime"))
    try:
        until(
            lambda: admin.get(path)["status"].get("desiredNumberScheduled") == 3,
            SETTLE_SECONDS,
            "an agent to be wanted on three nodes",
        )
    finally:
        plane.kubectl("delete", "-k", str(DEPLOY / "agent" / "default-runtime"))
        for name in nodes:
            admin.ok("DELETE", f"/api/v1/nodes/{name}")


def test_the_printed_kubeconfig_signs_in_as_our_account_and_may_be_given_in_the_browser(
    plane: ControlPlane, reader: Path, tmp_path: Path
) -> None:
    printed = subprocess.run(
        [DEPLOY / "kubeconfig.sh", "2"],
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "KUBECONFIG": str(plane.kubeconfig("admin")),
        },
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    file = tmp_path / "kubeconfig"
    file.write_text(printed)
    assert from_kubeconfig(file).server == plane.url
    assert held_names(file) == {"read"}
    assert read(printed).server == plane.url
