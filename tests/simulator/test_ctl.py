"""Scripted situations, through the command."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator import hardware
from simulator.cluster import SimulatedCluster
from simulator.faults.situations import Situation
from tests.simulator.support import Api, condition, wait_for
from tests.simulator.test_nodes import report, resources

ROOT = Path(__file__).parents[2]
GPU = "nvidia.com/gpu"


def ctl(cluster: SimulatedCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "simulator.ctl", "--kubeconfig", str(cluster.kubeconfig)]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.fixture
def cluster(two_nodes: SimulatedCluster) -> Iterator[SimulatedCluster]:
    yield two_nodes
    assert ctl(two_nodes, "clear").stdout == "nothing scripted\n"


def apply(cluster: SimulatedCluster, text: str) -> Api:
    file = cluster.run_dir / "situation.yaml"
    file.write_text(text)
    done = ctl(cluster, "apply", str(file))
    assert done.returncode == 0, done.stderr
    return Api(cluster.kubeconfig)


def test_a_lost_card_is_lost_to_nvml_and_to_the_scheduler_until_cleared(
    cluster: SimulatedCluster,
) -> None:
    api = Api(cluster.kubeconfig)
    uuid = report(api, "h100-02").gpus[2].uuid
    apply(cluster, "- {kind: lost-card, node: h100-02, gpu: 2}")
    wait_for(lambda: resources(api, "h100-02", GPU) == (5, 4))
    wait_for(lambda: report(api, "h100-02").gpus[2].state == "lost")
    assert report(api, "h100-02").gpus[2].uuid == uuid
    wait_for(lambda: [(e.code, e.gpu_uuid) for e in report(api, "h100-02").xids] == [(79, uuid)])
    assert "kind: lost-card" in ctl(cluster, "list").stdout
    ctl(cluster, "clear")
    wait_for(lambda: resources(api, "h100-02", GPU) == (5, 5))
    wait_for(lambda: report(api, "h100-02").gpus[2].state == "ok")


def test_an_unhealthy_card_answers_but_cannot_be_had(cluster: SimulatedCluster) -> None:
    api = apply(cluster, "- {kind: unhealthy-card, node: h100-02, gpu: 0, xid: 48}")
    wait_for(lambda: resources(api, "h100-02", GPU) == (5, 4))
    assert report(api, "h100-02").gpus[0].state == "ok"


def test_one_slot_of_a_sick_shared_card_goes(cluster: SimulatedCluster) -> None:
    """Contracts.md 1.9: the plugin remembers one device per card."""
    api = apply(cluster, "- {kind: unhealthy-card, node: l40s-02, gpu: 1}")
    wait_for(lambda: resources(api, "l40s-02", f"{GPU}.shared") == (16, 15))


def test_a_silent_agent_takes_the_request_and_never_answers(cluster: SimulatedCluster) -> None:
    api = apply(cluster, "- {kind: silent-agent, node: l40s-02}")
    file = cluster.run_dir / "hw" / "l40s-02.json"
    wait_for(lambda: "silent" in hardware.read(file).lie)

    def silent() -> bool:
        try:
            report(api, "l40s-02")
        except TimeoutError:
            return True
        return False

    wait_for(silent)


def test_an_agent_that_speaks_for_another_node(cluster: SimulatedCluster) -> None:
    situation = "- {kind: lying-agent, node: l40s-02, how: as-node, as_node: h100-02}"
    api = apply(cluster, situation)
    wait_for(lambda: report(api, "l40s-02").node_name == "h100-02")


def test_garbage_is_no_report(cluster: SimulatedCluster) -> None:
    api = apply(cluster, "- {kind: lying-agent, node: l40s-02, how: garbage}")

    def garbage() -> bool:
        try:
            report(api, "l40s-02")
        except ValueError:  # msgspec's errors are, and so is bad UTF-8
            return True
        return False

    wait_for(garbage)


def test_a_pending_pod_waits_and_goes(cluster: SimulatedCluster) -> None:
    path = "/api/v1/namespaces/default/pods/big"
    api = apply(cluster, "- {kind: pending-pod, name: big, count: 99}")
    wait_for(lambda: condition(api.get(path), "PodScheduled").get("reason") == "Unschedulable")
    ctl(cluster, "clear")
    assert api.call("GET", path).code == 404


def test_c20_another_writers_taint_stands_beside_those_that_are_there(
    cluster: SimulatedCluster,
) -> None:
    def taints() -> set[str]:
        return {each["key"] for each in api.get("/api/v1/nodes/h100-02")["spec"].get("taints", [])}

    api = apply(cluster, "- {kind: foreign-taint, node: h100-02, key: lab.example/fan}")
    assert taints() == {"nvidia.com/gpu", "lab.example/fan"}
    ctl(cluster, "clear")
    assert taints() == {"nvidia.com/gpu"}


def test_what_is_denied_is_403_and_no_to_a_review_and_ctl_can_still_clear_it(
    cluster: SimulatedCluster,
) -> None:
    review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    api = apply(cluster, "- {kind: denied, verb: list, resource: pods}")
    refused = api.call("GET", "/api/v1/pods?limit=500")
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    assert 'cannot list resource "pods"' in refused.body["message"]
    assert api.create(reviews, review)["status"]["allowed"] is False
    assert api.call("GET", "/api/v1/nodes").code == 200
    ctl(cluster, "clear")
    assert api.create(reviews, review)["status"]["allowed"] is True


def answer(api: Api, path: str) -> tuple[int, str | None, float]:
    """Status, Retry-After and seconds of one GET."""
    begun = time.monotonic()
    request = urllib.request.Request(api.server + path)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310
            status, after = response.status, response.headers["Retry-After"]
    except urllib.error.HTTPError as error:
        with error:
            status, after = error.code, error.headers["Retry-After"]
    return status, after, time.monotonic() - begun


def test_an_api_that_fails_does_so_for_what_was_named_and_ctl_can_end_it(
    cluster: SimulatedCluster,
) -> None:
    text = "- {kind: failing-api, code: 429, retry_after_seconds: 3, verb: list, resource: pods}"
    api = apply(cluster, text)
    assert answer(api, "/api/v1/pods")[:2] == (429, "3")
    assert api.call("GET", "/api/v1/pods").body["details"]["retryAfterSeconds"] == 3
    assert answer(api, "/api/v1/nodes")[:2] == (200, None)
    apply(cluster, "- {kind: failing-api}")
    assert answer(api, "/api/v1/nodes")[0] == 500
    assert ctl(cluster, "clear").stdout == "nothing scripted\n"
    assert answer(api, "/api/v1/pods")[0] == 200


def test_an_api_that_is_slow_or_cuts_the_line(cluster: SimulatedCluster) -> None:
    api = apply(cluster, "- {kind: slow-api, resource: nodes, seconds: 0.5}")
    assert answer(api, "/api/v1/nodes")[2] > 0.5
    apply(cluster, "- {kind: dropped-connections, resource: pods}")
    with pytest.raises(OSError, match=r"reset|closed"):
        answer(api, "/api/v1/pods")
    assert answer(api, "/api/v1/namespaces")[0] == 200


def test_a_silent_watch_says_nothing_and_does_not_end(cluster: SimulatedCluster) -> None:
    api = apply(cluster, "- {kind: silent-watches, resource: nodes}")
    path = "/api/v1/nodes?watch=1&timeoutSeconds=1"
    request = urllib.request.Request(api.server + path)  # noqa: S310
    with (
        urllib.request.urlopen(request, timeout=2) as response,  # noqa: S310
        pytest.raises(TimeoutError),
    ):
        response.read(1)
    with api.watch("/api/v1/pods?watch=1&timeoutSeconds=1") as events:
        assert [each["type"] for each in events]


def test_a_kubelet_whose_runtime_is_down_makes_its_node_not_ready(
    cluster: SimulatedCluster,
) -> None:
    def ready() -> str:
        return str(condition(api.get("/api/v1/nodes/l40s-02"), "Ready")["status"])

    api = apply(cluster, "- {kind: not-ready-node, node: l40s-02}")
    wait_for(lambda: ready() == "False")
    ctl(cluster, "clear")
    wait_for(lambda: ready() == "True")


def test_a_wrong_token_is_401(cluster: SimulatedCluster) -> None:
    assert Api(cluster.kubeconfig, token="nobody's").call("GET", "/api/v1/nodes").code == 401


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("- {kind: lost-card, node: n}", "gpu"),
        ("- {kind: flood}", "flood"),
        ("- {kind: lost-crad, node: h100-02, gpu: 0}", "Did you mean lost-card? There are: denied"),
        ("- {kind: silent-agent, node: h100-2}", "'h100-2'. There are: h100-02, l40s-02"),
        ("- {kind: silent-agent, node: n, loud: true}", "loud"),
        ("kind: [", "situation"),
    ],
)
def test_a_situation_that_cannot_be_read_is_one_sentence(
    cluster: SimulatedCluster, text: str, word: str
) -> None:
    file = cluster.run_dir / "situation.yaml"
    file.write_text(text)
    done = ctl(cluster, "apply", str(file))
    assert done.returncode == 2
    assert done.stderr.startswith("simulator.ctl: ")
    assert "Traceback" not in done.stderr
    assert word in done.stderr or word == "situation"


def test_clear_leaves_the_demos_own_trouble_and_all_takes_it(tmp_path: Path) -> None:
    with SimulatedCluster(tmp_path / "sim", nodes=["h100-02"]) as cluster:
        cluster.wait_ready()
        api = apply(cluster, "- {kind: lost-card, node: h100-02, gpu: 1}")
        wait_for(lambda: resources(api, "h100-02", GPU) == (5, 3))
        listed = ctl(cluster, "clear").stdout.splitlines()
        assert listed[:2] == ["nothing scripted", "# the demo's own, which only clear --all ends:"]
        wait_for(lambda: resources(api, "h100-02", GPU) == (5, 4))
        assert ctl(cluster, "clear", "--all").stdout == "nothing scripted\n"
        wait_for(lambda: resources(api, "h100-02", GPU) == (5, 5))


def test_an_api_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with SimulatedCluster(tmp_path / "sim", nodes=[]) as gone:
        pass
    done = ctl(gone, "list")
    assert done.returncode == 2
    assert "Cannot connect to host 127.0.0.1" in done.stderr


def test_every_situation_is_in_the_readme() -> None:
    text = (ROOT / "simulator" / "README.md").read_text()
    for situation in Situation.__args__:
        assert f"`{situation.__struct_config__.tag}`" in text
