"""C25: one of four cards is lost, by NVML, agent, poll, API and pages; and C18's pause as shown."""

from __future__ import annotations

import time
from datetime import datetime

import pytest
from django.utils import timezone

from gpuadmin.collect.findings import refresh_findings
from gpuadmin.fleet.models import Cluster
from tests.agent.world import card, gpu_uuid
from tests.cases.line import StartLine
from tests.support.console import Console
from tests.support.scripted_api import Json, node, pod
from tests.support.watching import Watch

pytestmark = pytest.mark.django_db(transaction=True)
LOST = gpu_uuid(0xA2)


def four() -> list[object]:
    return [card(index, utilization_percent=50) for index in range(4)]


def test_c25_three_cards_keep_reporting_and_the_fourth_is_lost_since_a_time(
    line: StartLine, console: Console
) -> None:
    n = line(*four())
    before = n.gpus[2]["reading"]["observed_at"]
    n.door.change(2, lost=True)
    n.poll()

    gpus = n.gpus
    assert {i: g["state"] for i, g in gpus.items()} == {0: "ok", 1: "ok", 2: "lost", 3: "ok"}
    assert [gpus[i]["reading"]["utilization_percent"] for i in (0, 1, 3)] == [50, 50, 50]
    assert all(gpus[i]["reading"]["observed_at"] > before for i in (0, 1, 3))
    assert (gpus[2]["uuid"], gpus[2]["reading"]["observed_at"]) == (LOST, before)
    since = f"{datetime.fromisoformat(gpus[2]['state_since']):%H:%M}"
    assert f"lost since {since} UTC" in n.page()
    cards = n.node["cards"]
    assert (cards["owned"], cards["working"], cards["failed"]) == (4, 3, 1)


def test_c25_when_the_count_falls_the_card_is_missing_and_still_owned(
    line: StartLine, console: Console
) -> None:
    n = line(*four())
    n.door.change(2, lost=True)
    n.poll()
    n.door.change(2, absent=True)
    n.poll()

    gpu = next(g for g in console.all("gpus") if g["uuid"] == LOST)
    assert gpu["state"] == "missing"
    assert (n.node["cards"]["owned"], n.node["cards"]["working"]) == (4, 3)
    overview = console.page("/").text
    assert "Owned 4" in overview
    assert "Working 3 1 failed" in overview
    assert "missing since" in n.page()


def test_c25_one_finding_for_the_card_says_what_to_do(line: StartLine, console: Console) -> None:
    n = line(*four())
    n.door.change(2, lost=True)
    n.poll()
    n.poll()

    [found] = n.finding("card_lost")
    assert (found["object_uid"], found["severity"], found["count"]) == (LOST, "critical", 1)
    assert "reboot it" in found["advice"]
    assert "tell the vendor" in found["advice"]
    assert found["advice"] in console.page("/").text
    n.door.change(2, absent=True)
    n.poll()
    assert not n.finding("card_lost")
    assert len(n.finding("card_missing")) == 1


def test_c25_c18_paused_is_neither_down_nor_zero_and_a_dead_driver_keeps_the_last_readings(
    line: StartLine,
) -> None:
    n = line(*four())
    before = {i: g["reading"] for i, g in n.gpus.items()}
    n.door.release(1, "a MIG change is pending")
    n.poll("paused")
    assert n.node["agent"]["reason"] == "a MIG change is pending"
    assert {i: g["reading"] for i, g in n.gpus.items()} == before
    assert not n.finding("agent")
    assert "Agent paused." in n.page()

    n.door.write(init_error=999)
    time.sleep(1.1)  # the window ends, and NVML is opened anew
    n.poll("nvml_error")
    assert {i: g["reading"] for i, g in n.gpus.items()} == before
    assert n.node["cards"]["owned"] == 4
    [found] = n.finding("agent")
    assert found["sentence"] == "h100-01 has a driver that does not answer"
    n.door.write(init_error=None)
    n.poll()


def test_c25_12000_failed_pods_are_one_finding_and_do_not_slow_the_page(
    watch: Watch, console: Console
) -> None:
    message = "Allocate failed: GetPreferredAllocation: GPU is lost, which is unexpected"
    failed = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message}
    owner = {"kind": "ReplicaSet", "name": "serve-7d9f", "uid": "rs", "controller": True}
    pods = [_failed(f"serve-{i}", owner, failed) for i in range(12_000)]
    watch([node("n1")], pods)
    refresh_findings(Cluster.objects.get(), timezone.now())

    [found] = [f for f in console.all("findings") if f["code"] == "pods_failed"]
    assert found["sentence"] == "12000 pods of team/serve-7d9f failed: 1 × nvidia.com/gpu"
    assert message in found["advice"]
    for address in ("/", "/nodes", "/nodes/n1", "/findings"):
        assert min(_seconds(console, address) for _ in range(3)) < 1, address
    assert console.resource("n1")["requested"] == 0


def _seconds(console: Console, address: str) -> float:
    """How long one page takes; the best of several, since the machine may be busy."""
    began = time.monotonic()
    console.page(address)
    return time.monotonic() - began


def _failed(name: str, owner: Json, status: Json) -> Json:
    made = pod(name, "n1", **status)
    made["metadata"]["ownerReferences"] = [owner]
    return made
