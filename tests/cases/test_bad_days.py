"""Numbers that do not fit: C01, C02, C09, C11, from NVML and the API server to REST and pages."""

from __future__ import annotations

import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.conf import LazySettings
from django.utils import timezone

from gpuadmin.collect.findings import refresh_findings
from gpuadmin.fleet.models import Cluster
from simulator.hardware import Card, Instance
from tests.agent.kubelet import pod as holding
from tests.agent.world import GIB, card, cut_card, gpu_uuid, mig_uuid
from tests.cases.line import StartLine, pod_here
from tests.support.console import Console
from tests.support.scripted_api import Json, node, pod
from tests.support.watching import Watch

pytestmark = pytest.mark.django_db(transaction=True)
GPU, SMALL, WHOLE = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-7g.40gb"
MIG = "nvidia.com/mig.config"


def advertising(name: str, capacity: dict[str, str], allocatable: dict[str, str]) -> Json:
    made = node(name)
    made["status"] |= {"capacity": capacity, "allocatable": allocatable}
    return made


def found(console: Console, code: str, *, minutes: int = 0) -> list[Json]:
    """Open findings of one code, looked for now or some minutes from now."""
    refresh_findings(Cluster.objects.get(), timezone.now() + timedelta(minutes=minutes))
    return [each for each in console.all("findings") if each["code"] == code]


def test_c01_more_is_requested_than_can_be_allocated_and_nothing_is_negative(
    watch: Watch, console: Console
) -> None:
    watch([advertising("n1", {GPU: "8"}, {GPU: "6"})], [pod(f"p{i}", "n1") for i in range(8)])

    row = console.resource("n1")
    assert (row["capacity"], row["allocatable"], row["requested"]) == (8, 6, 8)
    assert (row["free"], row["free_now"], row["over_committed"]) == (0, 0, 2)
    [over] = found(console, "over_committed")
    assert over["sentence"] == "n1 is over-committed: its pods ask for 8 gpu of 6"
    [withdrawn] = found(console, "withdrawn")
    assert withdrawn["sentence"].startswith("n1 has 2 of 8 gpu withdrawn")
    assert "not known which card" in withdrawn["advice"]
    page = console.page("/nodes/n1").text
    assert "2 withdrawn by the device plugin as unhealthy" in page
    assert "Over-committed 2" in page
    for address in ("/", "/nodes", "/nodes/n1", "/findings"):
        assert "-2" not in console.page(address).text
        assert "18446744" not in console.page(address).text


def test_c01_a_healthy_card_is_out_of_reach_until_the_pod_leaves_the_sick_one(
    line: StartLine,
) -> None:
    n = line(
        card(0),
        card(1),
        pods=[pod_here("p1")],
        held=[holding("p1", main=[(GPU, [gpu_uuid(0xA0)])])],
        capacity={GPU: "2"},
        allocatable={GPU: "1"},
    )
    [told] = n.finding("withdrawn")
    assert "one that is held" in told["advice"]  # NVML reads both: an XID doesn't say more

    n.door.change(0, lost=True)
    n.poll()
    cards = n.node["cards"]
    assert (cards["free"], cards["blocked"], cards["failed"]) == (0, 1, 1)
    why = "out of reach until llm/p1 leaves the failed GPU 0"
    assert why in n.console.page(f"/nodes/{n.door.hardware.node_name}").html
    [told] = n.finding("withdrawn")
    assert told["advice"].startswith(f"GPU 0 is lost. GPU 1 is not held, but {why}")


@pytest.mark.parametrize(
    ("capacity", "allocatable"),
    [("8", "-2"), ("8", "9"), ("8", "18446744073709551615"), ("many", "8")],
)
def test_c01_a_value_that_can_not_be_is_a_data_fault_and_in_no_total(
    watch: Watch, console: Console, capacity: str, allocatable: str
) -> None:
    watch([advertising("n1", {GPU: capacity}, {GPU: allocatable}), node("n2", gpus=4)])

    [fault] = found(console, "data_fault")
    assert fault["node_name"] == "n1"
    assert console.resource("n1")["note"] == "fault"
    assert not console.resource("n1")["free"]
    assert "4 free now" in console.page("/").text


def test_c02_stale_names_are_marked_named_once_and_in_no_total(
    line: StartLine, console: Console
) -> None:
    amounts = {GPU: "8", SMALL: "56", WHOLE: "8"}
    n = line(*(cut_seven(i) for i in range(8)), capacity=amounts, allocatable=amounts)

    rows = {row["name"]: row for row in n.node["resources"]["items"]}
    assert {name: row["note"] for name, row in rows.items()} == {
        GPU: "stale",
        SMALL: None,
        WHOLE: "stale",
    }
    assert {name: row["free"] for name, row in rows.items()} == {GPU: 0, SMALL: 56, WHOLE: 0}
    assert n.node["cards"]["owned"] == 8
    assert "56 of 56 MIG slices are free" in console.page("/").text
    [told] = n.finding("stale_resource")
    assert "advertises gpu and mig-7g.40gb without hardware" in told["sentence"]
    assert "Restart the device plugin on the node, then its kubelet" in told["advice"]


def test_c09_slots_are_not_cards_and_each_is_counted_for_itself(
    line: StartLine, console: Console
) -> None:
    held = [holding(f"p{i}", main=[(GPU, [f"{gpu_uuid(0xA0 + i)}::0"])]) for i in range(5)]
    n = line(
        *(card(i) for i in range(8)),
        pods=[pod_here(f"p{i}") for i in range(5)],
        held=held,
        labels={"nvidia.com/gpu.replicas": "10"},
        capacity={GPU: "80"},
        allocatable={GPU: "70"},
    )
    n.door.change(7, lost=True)
    n.poll()

    row = console.resource("h100-01")
    assert (row["unit"], row["capacity"], row["allocatable"]) == ("slot", 80, 70)
    assert (row["requested"], row["free"], row["physical"]) == (5, 65, 8)
    cards = n.node["cards"]
    assert (cards["owned"], cards["working"], cards["allocated"], cards["free"]) == (8, 7, 5, 2)
    assert "65 of 70 time slots are free" in console.page("/").text


def test_c09_two_slots_of_one_card_are_one_card(line: StartLine, console: Console) -> None:
    a1 = gpu_uuid(0xA1)
    n = line(
        card(0),
        card(1),
        pods=[pod_here("two-slots")],
        held=[holding("two-slots", main=[(GPU, [f"{a1}::0", f"{a1}::7"])])],
        labels={"nvidia.com/gpu.replicas": "10"},
        capacity={GPU: "20"},
        allocatable={GPU: "20"},
    )
    assert n.node["cards"]["allocated"] == 1
    assert {d["gpu_uuid"] for d in console.one("pods", "two-slots")["devices"]} == {a1}


def test_c11_a_layout_that_its_strategy_refuses_is_critical_in_spite_of_success(
    line: StartLine,
) -> None:
    n = line(
        cut_card(0, *slices("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb")),
        labels={
            "nvidia.com/mig.strategy": "single",
            MIG: "all-balanced",
            f"{MIG}.state": "success",
            "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-INVALID",
            "nvidia.com/gpu.count": "0",
            "nvidia.com/gpu.memory": "0",
        },
        capacity={GPU: "0"},
        allocatable={GPU: "0"},
    )
    [told] = n.finding("mig_invalid")
    assert told["severity"] == "critical"
    assert "nothing is schedulable" in told["sentence"]
    assert "In spite of mig.config.state success" in told["advice"]
    assert "2 × 1g.10gb, 1 × 2g.20gb, 1 × 3g.40gb" in told["advice"]
    assert n.node["cards"]["owned"] == 1
    assert not n.finding("labels_contradict")


def test_c11_cards_are_counted_by_the_agent_and_eight_with_two_cut_are_no_contradiction(
    line: StartLine,
) -> None:
    n = line(
        *(cut_card(i, *slices("3g.40gb", first=i)) for i in range(2)),
        *(card(i) for i in range(2, 8)),
        labels={"nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.count": "8"},
        capacity={GPU: "6", "nvidia.com/mig-3g.40gb": "2"},
        allocatable={GPU: "6", "nvidia.com/mig-3g.40gb": "2"},
    )
    assert n.node["cards"]["owned"] == 8
    assert [g["mig_mode_current"] for g in n.gpus.values()] == [True] * 2 + [False] * 6
    assert not n.finding("labels_contradict")


def test_c11_two_models_on_one_node_are_both_shown_whatever_the_label_says(
    line: StartLine,
) -> None:
    models = ["Model-A"] * 4 + ["Model-Display"]
    n = line(
        *(card(i, name=name) for i, name in enumerate(models)),
        labels={"nvidia.com/gpu.product": "Model-Display"},
    )
    [told] = n.finding("labels_contradict")
    assert "says Model-Display; the cards are 4 × Model-A and 1 × Model-Display" in told["advice"]
    assert [gpu["name"] for gpu in n.gpus.values()] == models
    assert "4 × Model A and 1 × Model Display" in n.page()


def test_c11_without_an_agent_a_model_is_only_what_the_label_says(
    watch: Watch, console: Console
) -> None:
    made = node("n1")
    made["metadata"]["labels"] = {"nvidia.com/gpu.product": "Model-Display"}
    watch([made])
    assert "At least one model: the label says Model-Display" in console.page("/nodes/n1").text
    assert not found(console, "labels_contradict")


def test_a_mig_change_that_failed_is_told_at_once(watch: Watch, console: Console) -> None:
    made = node("n1")
    made["metadata"]["labels"] = {MIG: "all-1g.10gb", f"{MIG}.state": "failed"}
    watch([made])
    [told] = found(console, "mig_change")
    assert told["sentence"] == "n1 failed to change its MIG layout to “all-1g.10gb”"
    assert "delete its pod on the node" in told["advice"]


def test_a_mig_change_that_lasts_is_stuck_after_a_time_that_is_a_setting(
    line: StartLine, settings: LazySettings
) -> None:
    settings.RELEASE_LIMIT_SECONDS = 0  # else its agent would rightly be paused (C18)
    n = line(card(0), labels={MIG: "all-1g.10gb", f"{MIG}.state": "pending"})
    assert not found(n.console, "mig_change", minutes=19)
    [told] = found(n.console, "mig_change", minutes=21)
    assert told["sentence"] == "h100-01 is stuck in a change of its MIG layout to “all-1g.10gb”"
    settings.MIG_STUCK_SECONDS = 3600
    assert not found(n.console, "mig_change", minutes=21)


def test_a_clock_that_is_off_is_a_finding_of_its_node(
    line: StartLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = line(card(0))
    assert not n.finding("clock_skew")
    ahead = SimpleNamespace(time=lambda: time.time() + 45, monotonic=time.monotonic)
    monkeypatch.setattr("agent.reporter.time", ahead)
    n.poll()
    [told] = n.finding("clock_skew")
    assert told["sentence"] == "h100-01 has a clock 45 s ahead"


def cut_seven(index: int) -> Card:
    """A card cut into seven small slices."""
    parts = [f"1g.5gb#{place}" for place in range(7)]
    return cut_card(index, *slices(*(part[:6] for part in parts), first=10 * index))


def slices(*profiles: str, first: int = 0) -> list[Instance]:
    """Slices of these profiles side by side, whose uuids count from ``first``."""
    found, start = [], 0
    for number, profile in enumerate(profiles):
        size = {"1": 1, "2": 2, "3": 4}[profile[0]]
        found.append(
            Instance(
                uuid=mig_uuid(0x100 + first + number),
                profile=profile,
                profile_id={"1": 19, "2": 14, "3": 9}[profile[0]],
                gpu_instance_id=number + 1,
                compute_slices=int(profile[0]),
                start=start,
                size=size,
                memory_total_bytes=5 * GIB,
            )
        )
        start += size
    return found
