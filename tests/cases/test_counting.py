"""What pods request and what nodes have: C06, C08, C13, from the API server to API and pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from gpuadmin.collect.findings import refresh_findings
from gpuadmin.fleet.models import Cluster
from tests.support.console import Console
from tests.support.scripted_api import Json, node, pod
from tests.support.watching import Watch

pytestmark = pytest.mark.django_db(transaction=True)
GPU, SLICE, SHARED = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared"


def container(requests: dict[str, str], **more: Any) -> Json:
    return {"name": "c", "resources": {"requests": requests}, **more}


def n(amount: int, **more: Any) -> Json:
    return container({GPU: str(amount)}, **more)


def sidecar(amount: int) -> Json:
    return n(amount, restartPolicy="Always")


def asking(name: str, node_name: str, *apps: Json, init: tuple[Json, ...] = ()) -> Json:
    made = pod(name, node_name)
    made["spec"] |= {"containers": list(apps), "initContainers": list(init)}
    return made


SEVEN = [
    asking("p1", "n1", n(1), init=(n(1), sidecar(1), n(2))),
    asking("p2", "n2", n(1), n(1), init=(n(4),)),
    asking("p3", "n3", n(1), init=(sidecar(1),)),
    asking("p4", "n4", n(0), n(2), {"name": "c", "resources": {"limits": {GPU: "1"}}}),
    asking("p5", "n5", n(0)),
    asking("p6", "n6", init=(n(1),)),
    asking("p7", "n7", n(1), container({SLICE: "2"})),
]


def test_c06_what_one_pod_requests_is_what_nodes_and_pods_show(
    watch: Watch, console: Console
) -> None:
    watch([node(f"n{i}") for i in range(1, 8)], SEVEN)

    assert {name: p["requests"] for name, p in console.by("pods").items()} == {
        "p1": {GPU: 3},
        "p2": {GPU: 4},
        "p3": {GPU: 2},
        "p4": {GPU: 3},
        "p6": {GPU: 1},
        "p7": {GPU: 1, SLICE: 2},
    }
    nodes = console.by("nodes")
    requested = [_row(nodes[f"n{i}"], GPU)["requested"] for i in range(1, 8)]
    assert requested == [3, 4, 2, 3, 0, 1, 1]
    assert [_row(nodes[f"n{i}"], GPU)["free"] for i in range(1, 8)] == [5, 4, 6, 5, 8, 7, 7]
    assert _row(nodes["n7"], SLICE)["requested"] == 2
    assert "p5" not in console.page("/nodes/n5").text


def test_c06_after_init_has_finished_the_schedulers_figure_is_still_charged(
    watch: Watch, console: Console
) -> None:
    ended = {"name": "c", "state": {"terminated": {"exitCode": 0}}}
    running = SEVEN[1] | {"status": {"phase": "Running", "initContainerStatuses": [ended]}}
    watch([node("n2")], [running])

    assert console.resource("n2")["requested"] == 4


def test_c08_every_name_has_its_own_row_and_other_vendors_are_apart(
    watch: Watch, console: Console
) -> None:
    sliced = ("nvidia.com/mig-1g.12gb", "nvidia.com/mig-2g.24gb", "nvidia.com/mig-3g.47gb")
    names = [
        {GPU: "0", sliced[0]: "2", sliced[1]: "1", sliced[2]: "1"},
        {GPU: "0", SHARED: "8"},
        {"nvidia.com/mig-1g.5gb.me": "1"},
        {"example.com/gpu-count": "2", "example.com/gpu-mem": "0"},
    ]
    nodes = [_advertising(f"n{i}", amounts) for i, amounts in enumerate(names, start=1)]
    p = asking("p", "n2", container({SHARED: "1"}))
    other = asking("other", "n4", container({"example.com/gpu-count": "1"}))
    watch(nodes, [p, other])

    found = console.by("nodes")
    assert all(found[name]["is_gpu_node"] for name in ("n1", "n2", "n3"))
    for i, amounts in enumerate(names, start=1):
        rows = {r["name"]: r["allocatable"] for r in found[f"n{i}"]["resources"]["items"]}
        assert rows == {name: int(amount) for name, amount in amounts.items()}
        words = console.page(f"/nodes/n{i}").text
        assert all(name.removeprefix("nvidia.com/") in words for name in amounts)
    units = {r["name"]: r["unit"] for node in found.values() for r in node["resources"]["items"]}
    assert [units[name] for name in sliced] == ["slice"] * 3
    assert (units[SHARED], units["nvidia.com/mig-1g.5gb.me"]) == ("slot", "slice")
    assert units["example.com/gpu-count"] == units["example.com/gpu-mem"] == "other"
    assert (_row(found["n2"], SHARED)["requested"], _row(found["n2"], SHARED)["free"]) == (1, 7)
    assert "p team 1 × gpu.shared" in console.page("/nodes/n2").text
    # Other vendors' devices: known on the pod's side as on the node's, but in no NVIDIA total.
    assert _row(found["n4"], "example.com/gpu-count")["requested"] == 1
    assert console.one("pods", "other")["requests"] == {"example.com/gpu-count": 1}
    overview = console.page("/").text
    assert "Counted apart: 5 of 5 MIG slices and 7 of 8 time slots are free." in overview
    assert "Owned 0" in overview
    assert "other accelerator resources" in console.page("/nodes/n4").text
    refresh_findings(Cluster.objects.get(), timezone.now())  # the watch does it every 30 s
    about = {f["node_name"] for f in console.all("findings") if f["code"] == "agent"}
    assert about == {"n1", "n2", "n3"}  # of n4 no agent of ours could tell anything


def test_c08_a_profile_that_nobody_has_seen_yet_is_recognised_by_its_pattern(
    watch: Watch, console: Console
) -> None:
    name = "nvidia.com/mig-9g.999gb.next"
    watch([_advertising("n1", {name: "3"})], [asking("p", "n1", container({name: "2"}))])

    row = console.resource("n1", name)
    assert (row["unit"], row["requested"], row["free"]) == ("slice", 2, 1)


def test_c13_nodes_that_are_down_or_cordoned_are_owned_and_not_free(
    watch: Watch, console: Console
) -> None:
    down = node("n2")
    down["status"]["conditions"] = [
        {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "lastTransitionTime": "2026-11-30T09:14:00Z",
        }
    ]
    watch(
        [node("n1"), down, node("n3", spec={"unschedulable": True})],
        [pod("four", "n1", gpus=4), pod("two", "n2", gpus=2)],
    )

    rows = [console.resource(f"n{i}") for i in (1, 2, 3)]
    assert [r["free_now"] for r in rows] == [4, 0, 0]
    assert [(r["unavailable"], r["why_unavailable"]) for r in rows] == [
        (0, ""),
        (8, "not ready"),
        (8, "cordoned"),
    ]
    assert [r["requested"] for r in rows] == [4, 2, 0]  # the two on n2 are not dropped
    cards = [n["cards"] for n in console.all("nodes")]
    assert sum(c["owned"] for c in cards) == 24
    assert sum(c["free"] for c in cards) == 4
    assert [c["unmeasured"] for c in cards] == [4, 2, 0]
    overview = console.page("/")
    assert "Owned 24" in overview.text
    assert "Allocated 6" in overview.text
    assert "4 free now" in overview.text
    assert "14 not schedulable" in overview.text  # 6 of n2 and 8 of n3, each with its reason:
    assert overview.html.count("n2 GPU ") == 8
    nobody_knows_which = "of 8 cards: 6 not schedulable, 2 held, not measurable"
    assert overview.html.count(nobody_knows_which) == 8
    assert overview.html.count("not schedulable (cordoned)") == 8
    assert "2 in use at last contact, 30 Nov 09:14 UTC" in console.page("/nodes/n2").text


def _advertising(name: str, amounts: dict[str, str]) -> Json:
    made = node(name)
    made["status"] |= {"capacity": amounts, "allocatable": amounts}
    return made


def _row(found: Json, name: str) -> Json:
    row: Json = next(r for r in found["resources"]["items"] if r["name"] == name)
    return row
