"""The real kubectl on the simulated API."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from simulator.api.tables import human_duration
from simulator.cluster import SimulatedCluster
from tests.simulator.support import KUBECTL, Api, kubectl, node, pod, wait_for

NODES = "/api/v1/nodes"
SCRIPT = Path(__file__).parents[1] / "kubectl.sh"


@pytest.fixture
def name(api: Api) -> str:
    made = node("")
    made["metadata"] = {"generateName": "node-"}
    return str(api.create(NODES, made)["metadata"]["name"])


def taints(api: Api, name: str) -> list[tuple[str, str, str]]:
    found = api.get(f"{NODES}/{name}")["spec"].get("taints") or []
    return [(each["key"], each.get("value", ""), each["effect"]) for each in found]


def test_get_prints_yaml_and_json_and_names(bare: SimulatedCluster, name: str) -> None:
    printed = kubectl(bare.kubeconfig, "get", "node", name, "-o", "yaml")
    assert f"name: {name}" in printed
    assert 'nvidia.com/gpu: "2"' in printed
    listed = json.loads(kubectl(bare.kubeconfig, "get", "nodes", "-o", "json"))
    assert name in [each["metadata"]["name"] for each in listed["items"]]
    assert f"node/{name}" in kubectl(bare.kubeconfig, "get", "no", "-o", "name")


def test_get_prints_the_columns_that_kubectl_prints(
    bare: SimulatedCluster, api: Api, name: str, namespace: str
) -> None:
    kubectl(bare.kubeconfig, "cordon", name)
    head, row = kubectl(bare.kubeconfig, "get", "node", name).splitlines()
    assert head.split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert row.split()[:3] == [name, "Ready,SchedulingDisabled", "<none>"]
    api.create(f"/api/v1/namespaces/{namespace}/pods", pod("p"))
    head, row = kubectl(bare.kubeconfig, "get", "pods", "-n", namespace).splitlines()
    assert head.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["p", "0/1", "Pending", "0"]
    assert "NODE" in kubectl(bare.kubeconfig, "get", "pods", "-A", "-o", "wide").split()
    labelled = kubectl(bare.kubeconfig, "get", "nodes", "-L", "kubernetes.io/hostname")
    assert "HOSTNAME" in labelled.splitlines()[0]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (10799, "179m"),
        (3 * 3600 + 60, "3h1m"),
        (47 * 3600, "47h"),
        (2 * 86400, "2d"),
        (102 * 3600, "4d6h"),
        (118 * 86400, "118d"),
        (800 * 86400, "2y70d"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


def test_taint_adds_overwrites_and_removes(bare: SimulatedCluster, api: Api, name: str) -> None:
    kubectl(bare.kubeconfig, "taint", "node", name, "gpu=a:NoSchedule")
    kubectl(bare.kubeconfig, "taint", "node", name, "gpu=a:NoExecute", "other:NoSchedule")
    kubectl(bare.kubeconfig, "taint", "--overwrite", "node", name, "gpu=b:NoSchedule")
    assert sorted(taints(api, name)) == [
        ("gpu", "a", "NoExecute"),
        ("gpu", "b", "NoSchedule"),
        ("other", "", "NoSchedule"),
    ]
    kubectl(bare.kubeconfig, "taint", "node", name, "gpu:NoExecute-")
    assert sorted(taints(api, name)) == [("gpu", "b", "NoSchedule"), ("other", "", "NoSchedule")]


def test_cordon_uncordon_label_and_annotate(bare: SimulatedCluster, api: Api, name: str) -> None:
    kubectl(bare.kubeconfig, "cordon", name)
    wait_for(lambda: taints(api, name))
    kubectl(bare.kubeconfig, "uncordon", name)
    wait_for(lambda: not taints(api, name))
    kubectl(bare.kubeconfig, "label", "node", name, "rack=7")
    kubectl(bare.kubeconfig, "annotate", "node", name, "note=two words")
    metadata = api.get(f"{NODES}/{name}")["metadata"]
    assert (metadata["labels"]["rack"], metadata["annotations"]["note"]) == ("7", "two words")


def test_create_replace_and_delete_from_files(bare: SimulatedCluster, api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "Node", **node("written")}
    create = ("create", "--validate=false", "-f", "-")
    kubectl(bare.kubeconfig, *create, stdin=json.dumps(body))
    body["spec"] = {"unschedulable": True}
    kubectl(bare.kubeconfig, "replace", "--validate=false", "-f", "-", stdin=json.dumps(body))
    assert api.get(f"{NODES}/written")["spec"]["unschedulable"] is True
    kubectl(bare.kubeconfig, "delete", "node", "written", "--wait=false")
    assert api.call("GET", f"{NODES}/written").code == 404


def test_version_says_that_it_is_simulated(bare: SimulatedCluster) -> None:
    printed = json.loads(kubectl(bare.kubeconfig, "version", "-o", "json"))
    assert printed["serverVersion"]["gitVersion"] == "v1.36.1-gpuadmin-sim"


def test_what_an_administrator_does_with_kubectl_works(tmp_path: Path) -> None:
    """get, describe, label, taint, logs, exec, cordon, drain, delete: tests/kubectl.sh."""
    nodes = ["h100-02", "l40s-01"]
    with SimulatedCluster(tmp_path / "sim", nodes, tenants=False) as cluster:
        cluster.wait_ready()
        command = ["sh", str(SCRIPT), str(KUBECTL), str(cluster.kubeconfig), "h100-02"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all steps done\n")
