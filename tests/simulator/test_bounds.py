"""The simulator stays small: its allow-list is what is used, its parts keep their size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from simulator import sizes
from simulator.api.allowlist import AllowList, load
from simulator.cluster import SimulatedCluster
from tests.simulator.support import Api, kubectl, node

BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "keep"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "notebook-lena"}}},
}
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        ("GET", "/apis/apps/v1/deployments", "list deployments.apps"),
        ("PATCH", "/api/v1/namespaces/default/configmaps/x", "patch configmaps"),
        ("DELETE", "/api/v1/nodes", "deletecollection nodes"),
        ("POST", "/api/v1/namespaces/default/pods/x/portforward", "create pods/portforward"),
        ("POST", "/apis/example.com/v1/namespaces/default/things", "create things.example.com"),
    ],
)
def test_anything_that_is_not_listed_is_501_with_a_sentence(
    api: Api, method: str, path: str, what: str
) -> None:
    answer = api.call(method, path, {})
    assert (answer.code, answer.body["reason"]) == (501, "NotImplemented")
    assert answer.body["message"].startswith(f"The simulator does not do this: {what} is not on")


def test_a_dry_run_is_refused_rather_than_done(api: Api) -> None:
    assert api.call("POST", "/api/v1/nodes?dryRun=All", node("dry")).code == 501
    assert api.call("GET", "/api/v1/nodes/dry").code == 404


@pytest.mark.parametrize("path", ["/", "/openapi/v2", "/api/v2", "/apis/example.com/v1"])
def test_a_path_that_no_resource_has_is_404(api: Api, path: str) -> None:
    assert api.call("GET", path).code == 404


def test_a_row_needs_a_reason() -> None:
    text = "| `get` | `nodes` | | kubectl |\n| `list` | `nodes` | | |\n"
    assert [row.verb for row in AllowList(text).rows] == ["get"]


def test_every_row_of_the_allow_list_is_used_by_somebody(tmp_path: Path) -> None:
    """By the simulated cluster itself, ctl, kubectl, and what gpuadmin asks for."""
    with SimulatedCluster(tmp_path / "sim", nodes=["h100-02"]) as cluster:
        cluster.wait_ready()
        use_ctl(cluster)
        use_kubectl(cluster)
        use_as_gpuadmin(Api(cluster.kubeconfig))
        cluster.restart_nodes()
        cluster.wait_ready()
        used = {tuple(row) for row in Api(cluster.kubeconfig).call("GET", "/simulator/used").body}
    listed = {(row.verb, row.resource, row.subresource) for row in load().rows}
    assert listed - used == set()


def use_ctl(cluster: SimulatedCluster) -> None:
    file = cluster.run_dir / "taint.yaml"
    file.write_text("- {kind: foreign-taint, node: h100-02, key: a}")
    command = [sys.executable, "-m", "simulator.ctl", "--kubeconfig", str(cluster.kubeconfig)]
    for arguments in (["apply", str(file)], ["clear"]):
        subprocess.run([*command, *arguments], cwd=ROOT, check=True, timeout=30)


def use_kubectl(cluster: SimulatedCluster) -> None:
    written = {"apiVersion": "v1", "kind": "Node", **node("written")}
    for verb in ("create", "replace"):
        arguments = (verb, "--validate=false", "-f", "-")
        kubectl(cluster.kubeconfig, *arguments, stdin=json.dumps(written))
    kubectl(cluster.kubeconfig, "delete", "node", "written", "--wait=false")
    for resource in ("namespaces", "nodes", "pods", "events", "daemonsets"):
        kubectl(cluster.kubeconfig, "get", resource, "-A")
    kubectl(cluster.kubeconfig, "get", "namespace", "vision")
    kubectl(cluster.kubeconfig, "taint", "node", "h100-02", "b:NoSchedule")
    pod = ("pod", "notebook-lena-0", "-n", "sandbox")
    kubectl(cluster.kubeconfig, "annotate", *pod, "sim.gpuadmin.io/load=50", "--overwrite")
    kubectl(cluster.kubeconfig, "get", *pod)
    kubectl(cluster.kubeconfig, "logs", "notebook-lena-0", "-n", "sandbox", "--tail=1")
    kubectl(cluster.kubeconfig, "exec", "notebook-lena-0", "-n", "sandbox", "--", "true")
    kubectl(cluster.kubeconfig, "create", "--validate=false", "-f", "-", stdin=json.dumps(BUDGET))
    kubectl(cluster.kubeconfig, "get", "pdb", "keep")
    kubectl(cluster.kubeconfig, "get", "pdb", "-A")
    kubectl(cluster.kubeconfig, "delete", "pdb", "keep")
    kubectl(cluster.kubeconfig, "delete", *pod, "--wait=false")


def use_as_gpuadmin(api: Api) -> None:
    for resource in ("nodes", "pods"):
        version = api.get(f"/api/v1/{resource}?limit=500")["metadata"]["resourceVersion"]
        query = f"?watch=true&resourceVersion={version}&timeoutSeconds=1&allowWatchBookmarks=true"
        with api.watch(f"/api/v1/{resource}{query}") as events:
            list(events)
    api.get("/apis/apps/v1/namespaces/gpuadmin/daemonsets/gpuadmin-agent")
    assert "spec" in api.merge("/api/v1/nodes/h100-02", {"spec": {"taints": []}}).body
    api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    [agent, *_] = api.get("/api/v1/namespaces/gpuadmin/pods")["items"]
    proxy = f"/api/v1/namespaces/gpuadmin/pods/{agent['metadata']['name']}/proxy"
    assert api.get(f"{proxy}/healthz")["status"] == "ok"
    assert api.call("POST", f"{proxy}/v1/release", {}).code == 401
    evicted = api.call("POST", "/api/v1/namespaces/default/pods/nobody/eviction", {})
    assert evicted.code == 404
    review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "nodes"}}}
    api.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)


def test_no_part_is_larger_than_its_bound() -> None:
    found = sizes.sizes()
    assert {part for part, (lines, bound) in found.items() if lines > bound} == set()


def test_blank_lines_comments_and_docstrings_are_no_code() -> None:
    function = 'def f():\n    """Doc\n    more."""\n    return 1\n'
    source = f'"""Doc."""\n\n# why\nX = """a\nb"""\n\n\n{function}'
    assert sizes.code_lines(source) == 4
