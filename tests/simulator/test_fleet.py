"""The demo's world is the one that the mockups show."""

from __future__ import annotations

from collections import Counter

import pytest

from simulator.cluster import SimulatedCluster
from simulator.fleet.inventory import INVENTORY, hardware
from tests.simulator.support import Api, Value, condition, wait_for
from tests.simulator.test_nodes import report

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"

# Node → resource → (allocatable, requested), as on the mockup's Nodes page.
NODES_PAGE = {
    "a100-01": {"gpu": (8, 6)},
    "a100-02": {"gpu": (0, 0)},
    "a100-03": {"gpu": (0, 0), "mig-1g.10gb": (56, 38), "mig-3g.40gb": (2, 0)},
    "gb10-01": {"gpu": (1, 1)},
    "h100-01": {"gpu": (8, 8)},
    "h100-02": {
        "gpu": (4, 4),
        "mig-1g.10gb": (7, 5),
        "mig-2g.20gb": (2, 2),
        "mig-3g.40gb": (1, 1),
        "mig-7g.80gb.shared": (4, 2),
    },
    "h100-03": {"gpu": (8, 7)},
    "h100-04": {"gpu": (8, 4)},
    "h200-01": {"gpu": (8, 8)},
    "l40s-01": {"gpu": (4, 3)},
    "l40s-02": {"gpu.shared": (16, 18)},
    "t4-01": {"gpu": (4, 3)},
}


@pytest.fixture(scope="module")
def api(fleet: SimulatedCluster) -> Api:
    """The fleet after its trouble has begun."""
    found = Api(fleet.kubeconfig)
    wait_for(lambda: resources(found.get(f"{NODES}/h100-02")).get("gpu") == 4)
    return found


def resources(node: Value) -> dict[str, int]:
    return {
        name.removeprefix("nvidia.com/"): int(text)
        for name, text in node["status"]["allocatable"].items()
        if name.startswith("nvidia.com/")
    }


def requested(pods: list[Value], node_name: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for pod in pods:
        if pod["spec"].get("nodeName") == node_name:
            for container in pod["spec"]["containers"]:
                limits = (container.get("resources") or {}).get("limits") or {}
                for name, text in limits.items():
                    if name.startswith("nvidia.com/"):
                        total[name.removeprefix("nvidia.com/")] += int(text)
    return total


def test_twelve_nodes_of_six_models_have_73_cards() -> None:
    assert len(INVENTORY) == 12
    assert len({spec.model.name for spec in INVENTORY}) == 6
    assert sum(spec.cards for spec in INVENTORY) == 73


def test_no_two_cards_or_slices_bear_the_same_id() -> None:
    cards = [card for spec in INVENTORY for card in hardware(spec).cards]
    ids = [c.uuid for c in cards] + [each.uuid for c in cards for each in c.instances]
    assert len(set(ids)) == len(ids) == 73 + 67


def test_every_node_advertises_and_serves_what_the_nodes_page_shows(api: Api) -> None:
    pods = api.get(PODS)["items"]
    found = {}
    for node in api.get(NODES)["items"]:
        name = node["metadata"]["name"]
        taken = requested(pods, name)
        found[name] = {key: (n, taken[key]) for key, n in resources(node).items()}
    assert found == NODES_PAGE


def test_eleven_nodes_have_an_agent_and_eleven_a_plugin(api: Api) -> None:
    def where(app: str) -> set[str]:
        pods = api.get(f"{PODS}?labelSelector=app%3D{app}")["items"]
        return {pod["spec"]["nodeName"] for pod in pods}

    everywhere = set(NODES_PAGE)
    assert where("gpuadmin-agent") == everywhere - {"t4-01"}
    assert where("nvidia-device-plugin-daemonset") == everywhere - {"a100-02"}


def test_the_lost_card_keeps_its_uuid_and_left_an_xid(api: Api) -> None:
    def told() -> bool:
        return bool(report(api, "h100-02").xids)

    wait_for(told)
    answer = report(api, "h100-02")
    [lost] = [gpu for gpu in answer.gpus if gpu.state != "ok"]
    assert (lost.index, lost.state) == (7, "lost")
    assert lost.uuid == hardware(INVENTORY[4]).cards[7].uuid
    assert [(xid.code, xid.gpu_uuid) for xid in answer.xids] == [(79, lost.uuid)]
    assert "llm-train/eval-harness-3" in {
        f"{each.namespace}/{each.pod}"
        for each in answer.pods or ()
        if lost.uuid in {device.gpu_uuid for device in each.devices}
    }


def test_pods_wait_for_several_reasons(api: Api) -> None:
    waiting = {
        pod["metadata"]["name"]: condition(pod, "PodScheduled").get("message", "")
        for pod in api.get(f"{PODS}?fieldSelector=status.phase%3DPending")["items"]
    }
    assert sorted(waiting) == [
        "embed-next-0",
        "ocr-batch-6c9d-m4tr",
        "ocr-batch-6c9d-p7vd",
        "pretrain-13b-0",
        "segment-eval-0",
        "sft-llama-2",
    ]
    assert "10 Insufficient nvidia.com/mig-1g.5gb" in waiting["embed-next-0"]
    assert "2 node(s) were unschedulable" in waiting["pretrain-13b-0"]
    assert "didn't match Pod's node affinity/selector" in waiting["segment-eval-0"]
    assert waiting["sft-llama-2"] == ""  # another scheduler's affair


def test_pods_and_nodes_are_as_old_as_they_say(api: Api) -> None:
    pod = api.get("/api/v1/namespaces/sandbox/pods/notebook-lena-0")
    started = pod["status"]["startTime"]
    assert pod["metadata"]["creationTimestamp"] < started < condition_time(api, "h100-02")


def condition_time(api: Api, node_name: str) -> str:
    return str(condition(api.get(f"{NODES}/{node_name}"), "Ready")["lastHeartbeatTime"])
