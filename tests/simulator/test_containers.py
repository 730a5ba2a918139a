"""Logs, commands and the proxy of pods on simulated nodes."""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request

import pytest

from agent.contract.report import TOKEN_HEADER, decode_report
from agent.contract.token import make_token
from simulator import hardware
from simulator.cluster import SimulatedCluster
from simulator.kubeconfig import load
from simulator.nodes import logs
from simulator.nvml import smi
from tests.simulator.conftest import SECRET
from tests.simulator.support import KUBECTL, Api, Value, wait_for
from tests.simulator.test_nodes import PODS, asking, in_phase

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
NODE = "h100-02"


@pytest.fixture
def api(two_nodes: SimulatedCluster) -> Api:
    """No pods of other tests."""
    found = Api(two_nodes.kubeconfig)
    for each in found.get(PODS)["items"]:
        found.call("DELETE", f"{PODS}/{each['metadata']['name']}", {"gracePeriodSeconds": 0})
    wait_for(lambda: not found.get(PODS)["items"])
    return found


def run(cluster: SimulatedCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(KUBECTL), "--kubeconfig", str(cluster.kubeconfig), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def text_of(cluster: SimulatedCluster, path: str) -> tuple[int, str]:
    request = urllib.request.Request(load(cluster.kubeconfig).server + path)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_followed_log_ends_with_its_pod(two_nodes: SimulatedCluster, api: Api) -> None:
    api.create(PODS, asking("short", NODE, GPU, 1, runs_for="2s", log="hello"))
    in_phase(api, "short", "Running")
    followed = run(two_nodes, "logs", "-f", "short")
    assert (followed.returncode, followed.stderr) == (0, "")
    lines = followed.stdout.splitlines()
    assert (lines[:2], lines[-1]) == (["starting x", "hello"], "done")
    assert api.get(f"{PODS}/short")["status"]["phase"] == "Succeeded"


def test_a_log_has_a_start_a_tail_and_a_beginning_in_time(
    two_nodes: SimulatedCluster, api: Api
) -> None:
    api.create(PODS, asking("old", NODE, GPU, 1, age="2m", log="hello"))
    in_phase(api, "old", "Running")
    code, text = text_of(two_nodes, f"{PODS}/old/log")
    assert (code, text.splitlines()[:3]) == (200, ["starting x", "hello", "at work for 10 s"])
    assert len(text_of(two_nodes, f"{PODS}/old/log?tailLines=2")[1].splitlines()) == 2
    assert text_of(two_nodes, f"{PODS}/old/log?tailLines=0")[1] == ""
    recent = text_of(two_nodes, f"{PODS}/old/log?sinceSeconds=30")[1].splitlines()
    assert 2 <= len(recent) <= 4
    assert text_of(two_nodes, f"{PODS}/old/log?limitBytes=8")[1] == "starting"
    assert text_of(two_nodes, f"{PODS}/old/log?tailLines=many")[0] == 400


def test_a_log_that_is_not_there_is_refused_in_words(two_nodes: SimulatedCluster, api: Api) -> None:
    api.create(PODS, asking("p", NODE, GPU, 1))
    in_phase(api, "p", "Running")
    code, text = text_of(two_nodes, f"{PODS}/p/log?container=other")
    assert (code, "container other is not valid for pod p" in text) == (400, True)
    code, text = text_of(two_nodes, f"{PODS}/p/log?previous=true")
    assert (code, "previous terminated container" in text) == (400, True)
    assert text_of(two_nodes, f"{PODS}/nobody/log")[0] == 404


def test_a_pod_that_no_node_has_taken_has_an_empty_log(
    two_nodes: SimulatedCluster, api: Api
) -> None:
    api.create(PODS, asking("big", NODE, GPU, 99))
    assert text_of(two_nodes, f"{PODS}/big/log") == (200, "")


def test_nvidia_smi_shows_the_cards_of_its_own_pod_only(
    two_nodes: SimulatedCluster, api: Api
) -> None:
    api.create(PODS, asking("whole", NODE, GPU, 1, cards="2"))
    api.create(PODS, asking("slice", NODE, MIG, 1))
    for name in ("whole", "slice"):
        in_phase(api, name, "Running")
    cards = hardware.read(two_nodes.run_dir / "hw" / f"{NODE}.json").cards
    [line] = run(two_nodes, "exec", "whole", "--", "nvidia-smi", "-L").stdout.splitlines()
    assert line == f"GPU 0: {cards[2].name} (UUID: {cards[2].uuid})"
    card, part = run(two_nodes, "exec", "slice", "--", "nvidia-smi", "-L").stdout.splitlines()
    assert card.startswith("GPU 0: ")
    assert part.startswith("  MIG 1g.10gb")
    query = ("--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits")
    asked = run(two_nodes, "exec", "whole", "--", "nvidia-smi", *query).stdout
    assert asked == f"{cards[2].uuid}, {cards[2].memory_total_bytes // 2**20}\n"


def test_a_lost_card_ends_nvidia_smi_with_nvmls_code(two_nodes: SimulatedCluster) -> None:
    present = hardware.read(two_nodes.run_dir / "hw" / f"{NODE}.json")
    card = present.cards[0]
    card.lost = True
    code, text = smi.run(["-L"], present, [(card.index, card.uuid)])
    assert (code, "GPU is lost" in text) == (15, True)


def test_a_container_without_devices_has_no_nvidia_smi(
    two_nodes: SimulatedCluster, api: Api
) -> None:
    plain = asking("plain", NODE, GPU, 1)
    plain["spec"]["containers"][0]["resources"] = {}
    api.create(PODS, plain)
    in_phase(api, "plain", "Running")
    assert run(two_nodes, "exec", "plain", "--", "nvidia-smi").returncode == 127


def test_exec_needs_a_pod_that_runs_and_no_terminal(two_nodes: SimulatedCluster, api: Api) -> None:
    api.create(PODS, asking("p", NODE, GPU, 1))
    api.create(PODS, asking("ended", NODE, GPU, 1, runs_for="1s"))
    in_phase(api, "p", "Running")
    in_phase(api, "ended", "Succeeded")
    assert text_of(two_nodes, f"{PODS}/p/exec?command=true&stdin=true")[0] == 501
    assert text_of(two_nodes, f"{PODS}/p/exec")[0] == 400
    code, text = text_of(two_nodes, f"{PODS}/ended/exec?command=true")
    assert (code, "container not found" in text) == (500, True)


def test_an_agent_answers_by_way_of_the_pods_proxy(two_nodes: SimulatedCluster, api: Api) -> None:
    pods: list[Value] = api.get("/api/v1/namespaces/gpuadmin/pods")["items"]
    found = next(each for each in pods if each["spec"]["nodeName"] == NODE)
    [port] = [each["containerPort"] for each in found["spec"]["containers"][0]["ports"]]
    uid, name = found["metadata"]["uid"], found["metadata"]["name"]
    server = load(two_nodes.kubeconfig).server
    token = make_token(SECRET.encode(), uid, NODE, time.time())
    path = f"/api/v1/namespaces/gpuadmin/pods/{name}:{port}/proxy/v1/report"
    request = urllib.request.Request(server + path, headers={TOKEN_HEADER: token})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
        assert decode_report(response.read()).node_name == NODE
    wrong = f"/api/v1/namespaces/gpuadmin/pods/{name}:1/proxy/v1/report"
    code, text = text_of(two_nodes, wrong)
    assert (code, "error trying to reach service" in text) == (503, True)


def test_only_the_last_lines_of_a_long_log_are_kept() -> None:
    started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    status = {"name": "main", "image": "x", "restartCount": 0, "state": started}
    pod = {"metadata": {"name": "p"}, "status": {"containerStatuses": [status]}}
    lines = logs.written(pod, "main", logs.now())
    assert logs.KEPT_LINES <= len(lines) <= logs.KEPT_LINES + 2
