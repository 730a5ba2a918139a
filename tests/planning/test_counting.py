"""The account of a node: C01, C02, C08, C09, C11, C13, C25 and C28 as pure rules."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuadmin.planning.counting import account
from gpuadmin.planning.facts import (
    CardFact,
    HeldFact,
    InstanceFact,
    NodeAccount,
    NodeFacts,
    Note,
    PodFact,
    Policy,
    ResourceRow,
    TaintFact,
    Use,
)

GPU = "nvidia.com/gpu"
POLICY = Policy()


def node(count: int = 8, used: int = 0, **changes: Any) -> NodeFacts:
    """A node of ``count`` whole cards with an agent, ``used`` of them busy."""
    facts = NodeFacts(
        name="n1",
        capacity={GPU: count},
        allocatable={GPU: count},
        pods=tuple(PodFact("team", f"p{i}", {GPU: 1}) for i in range(used)),
        cards=tuple(CardFact(f"GPU-{i}", i, utilization_percent=90) for i in range(count)),
        held=tuple(HeldFact("team", f"p{i}", GPU, f"GPU-{i}") for i in range(used)),
    )
    return replace(facts, **changes)


def row(counted: NodeAccount, name: str = GPU) -> ResourceRow:
    return next(row for row in counted.rows if row.name == name)


def test_c01_a_card_that_turns_unhealthy_while_held_never_makes_free_negative() -> None:
    facts = node(8, used=8, allocatable={GPU: 6})
    found = row(account(facts, POLICY))
    assert (found.free, found.over_committed, found.unhealthy) == (0, 2, 2)
    assert (found.allocatable, found.requested) == (6, 8)


def test_c01_a_healthy_card_out_of_reach_is_not_free() -> None:
    cards = (CardFact("GPU-a1", 0, state="lost"), CardFact("GPU-a2", 1))
    held = (HeldFact("team", "p1", GPU, "GPU-a1"),)
    facts = node(2, used=1, allocatable={GPU: 1}, cards=cards, held=held)
    counted = account(facts, POLICY)
    assert [card.use for card in counted.cards] == [Use.FAILED, Use.BLOCKED]
    assert "out of reach" in counted.cards[1].reason
    assert row(counted).free == 0


@pytest.mark.parametrize(("capacity", "allocatable"), [(8, 9), (8, -1), (-3, 0)])
def test_c01_a_value_outside_its_range_is_a_fault_and_counts_as_nothing_free(
    capacity: int, allocatable: int
) -> None:
    facts = node(8, capacity={GPU: capacity}, allocatable={GPU: allocatable})
    found = row(account(facts, POLICY))
    assert found.note is Note.FAULT
    assert found.free == 0


def test_c02_names_without_hardware_behind_them_are_stale_and_never_free() -> None:
    names = {GPU: 8, "nvidia.com/mig-1g.5gb": 56, "nvidia.com/mig-7g.40gb": 8}
    cut = tuple(InstanceFact(f"MIG-{i}", "1g.5gb") for i in range(7))
    cards = tuple(CardFact(f"GPU-{i}", i, mig=True, instances=cut) for i in range(8))
    counted = account(node(8, capacity=names, allocatable=names, cards=cards), POLICY)
    assert row(counted).note is Note.STALE
    assert row(counted, "nvidia.com/mig-7g.40gb").note is Note.STALE
    good = row(counted, "nvidia.com/mig-1g.5gb")
    assert (good.note, good.physical, good.free) == (None, 56, 56)
    assert counted.owned == 8


def test_c08_every_name_has_a_row_and_other_vendors_are_apart() -> None:
    names = {
        GPU: 0,
        "nvidia.com/mig-1g.12gb": 2,
        "nvidia.com/gpu.shared": 8,
        "example.com/gpu-count": 2,
        "example.com/gpu-mem": 0,
        "cpu": 64,
    }
    counted = account(NodeFacts("n", capacity=names, allocatable=names), POLICY)
    assert {row.name: row.unit for row in counted.rows} == {
        GPU: "card",
        "nvidia.com/mig-1g.12gb": "slice",
        "nvidia.com/gpu.shared": "slot",
        "example.com/gpu-count": "other",
        "example.com/gpu-mem": "other",
    }


def test_c09_slots_are_not_cards_and_a_pod_with_two_slots_holds_one_card() -> None:
    facts = node(
        8,
        capacity={GPU: 80},
        allocatable={GPU: 70},
        labels={"nvidia.com/gpu.replicas": "10"},
        pods=(PodFact("team", "two-slots", {GPU: 2}), PodFact("team", "p3", {GPU: 3})),
        held=(
            HeldFact("team", "two-slots", GPU, "GPU-1", slot=0),
            HeldFact("team", "two-slots", GPU, "GPU-1", slot=7),
        ),
    )
    counted = account(facts, POLICY)
    found = row(counted)
    assert (found.unit, found.physical, found.allocatable, found.requested) == ("slot", 8, 70, 5)
    assert counted.owned == 8
    assert counted.allocated == 1


def test_c13_free_now_leaves_out_nodes_that_are_down_or_cordoned_but_owned_counts_them() -> None:
    n1, n2, n3 = (
        account(node(8, used=4), POLICY),
        account(node(8, used=2, ready=False), POLICY),
        account(node(8, used=0, unschedulable=True), POLICY),
    )
    assert [n.owned for n in (n1, n2, n3)] == [8, 8, 8]
    assert [row(n).free_now for n in (n1, n2, n3)] == [4, 0, 0]
    assert [row(n).unavailable for n in (n1, n2, n3)] == [0, 8, 8]
    assert [row(n).why for n in (n1, n2, n3)] == ["", "not ready", "cordoned"]
    assert row(n2).requested == 2
    assert sum(n.uses[Use.FREE] for n in (n1, n2, n3)) == 4


@pytest.mark.parametrize(
    ("taint", "free_now"),
    [
        (TaintFact("nvidia.com/gpu", "NoSchedule"), 8),
        (TaintFact("maintenance", "PreferNoSchedule"), 8),
        (TaintFact("maintenance", "NoSchedule"), 0),
        (TaintFact("maintenance", "NoExecute"), 0),
    ],
)
def test_only_a_taint_that_gpu_pods_do_not_tolerate_closes_a_node(
    taint: TaintFact, free_now: int
) -> None:
    assert row(account(node(8, taints=(taint,)), POLICY)).free_now == free_now


def test_c25_a_lost_and_a_missing_card_stay_owned_and_do_not_work() -> None:
    cards = (
        CardFact("GPU-0", 0),
        CardFact("GPU-1", 1, state="lost"),
        CardFact("GPU-2", 2, state="missing"),
        CardFact("GPU-3", 3),
    )
    counted = account(node(4, cards=cards), POLICY)
    assert (counted.owned, counted.working) == (4, 2)
    assert counted.uses[Use.FAILED] == 2


def test_c28_a_card_in_mig_mode_is_held_but_neither_busy_nor_idle() -> None:
    card = CardFact("GPU-0", 0, mig=True, instances=(InstanceFact("MIG-b1", "3g.40gb"),))
    held = (HeldFact("team", "p", "nvidia.com/mig-3g.40gb", mig_uuid="MIG-b1"),)
    names = {"nvidia.com/mig-3g.40gb": 1}
    counted = account(
        node(1, capacity=names, allocatable=names, cards=(card,), held=held, pods=()), POLICY
    )
    assert counted.cards[0].use is Use.UNMEASURED
    assert counted.cards[0].reason == "not measured in MIG mode"


def test_a_held_card_is_idle_only_after_the_idle_time() -> None:
    def use(percent: int | None, idle: float | None, current: bool = True) -> Use:
        card = CardFact(
            "GPU-0", 0, utilization_percent=percent, idle_for_seconds=idle, current=current
        )
        return account(node(1, used=1, cards=(card,)), POLICY).cards[0].use

    assert use(90, None) is Use.BUSY
    assert use(0, 60) is Use.QUIET
    assert use(0, 7200) is Use.IDLE
    assert use(None, None) is Use.UNMEASURED
    assert use(90, None, current=False) is Use.UNMEASURED


def test_c38_without_the_right_to_list_pods_requests_and_free_are_unknown_not_zero() -> None:
    found = row(account(node(8, pods=None, held=None), POLICY))
    assert (found.allocatable, found.requested, found.free, found.free_now) == (8, None, None, None)


def test_c38_without_the_right_to_list_pods_an_unheld_card_is_neither_free_nor_blocked() -> None:
    held = (HeldFact("team", "p", GPU, "GPU-0"),)
    counted = account(node(2, pods=None, held=held), POLICY)
    assert [card.use for card in counted.cards] == [Use.BUSY, Use.UNKNOWN]
    assert "pods can't be listed" in counted.cards[1].reason


@pytest.mark.parametrize(
    "labels", [{"nvidia.com/gpu.count": "3000000"}, {"nvidia.com/gpu.replicas": "9" * 30}]
)
def test_numbers_that_no_machine_has_are_faults_and_make_no_cards(labels: dict[str, str]) -> None:
    facts = NodeFacts("n", capacity={GPU: 10**9}, allocatable={GPU: 10**9}, labels=labels)
    counted = account(facts, POLICY)
    assert row(counted).note is Note.FAULT
    assert counted.owned == 0


def test_without_an_agent_cards_are_counted_by_the_api_and_none_is_called_busy() -> None:
    facts = node(4, used=3, cards=None, held=None)
    counted = account(facts, POLICY)
    assert (counted.owned, counted.working, counted.allocated) == (4, 0, 3)
    assert counted.uses == {Use.UNMEASURED: 3, Use.FREE: 1}
    assert row(counted).physical is None


def test_without_an_agent_sliced_cards_are_unknown() -> None:
    names = {GPU: 0, "nvidia.com/mig-1g.10gb": 56}
    labels = {"nvidia.com/gpu.count": "8"}
    facts = NodeFacts("n", capacity=names, allocatable=names, labels=labels)
    counted = account(facts, POLICY)
    assert (counted.owned, counted.allocated) == (8, None)
    assert counted.uses == {Use.UNKNOWN: 8}


COUNTS = st.integers(-5, 20)


@given(
    capacity=COUNTS,
    allocatable=COUNTS,
    requests=st.lists(st.integers(0, 9), max_size=6),
    cards=st.integers(0, 8),
    held=st.sets(st.integers(0, 7)),
    ready=st.sampled_from([True, False, None]),
    cordoned=st.booleans(),
)
def test_no_number_is_negative_and_the_parts_add_up_to_the_whole(
    capacity: int,
    allocatable: int,
    requests: list[int],
    cards: int,
    held: set[int],
    ready: bool | None,
    cordoned: bool,
) -> None:
    facts = NodeFacts(
        name="n",
        ready=ready,
        unschedulable=cordoned,
        capacity={GPU: capacity},
        allocatable={GPU: allocatable},
        pods=tuple(PodFact("t", str(i), {GPU: n}) for i, n in enumerate(requests)),
        cards=tuple(CardFact(f"GPU-{i}", i, utilization_percent=50) for i in range(cards)),
        held=tuple(HeldFact("t", str(i), GPU, f"GPU-{i}") for i in held),
    )
    counted = account(facts, POLICY)
    found = row(counted)
    assert found.free is not None
    assert found.free >= (found.free_now or 0) >= 0
    assert (found.over_committed or 0) >= 0
    assert sum(counted.uses.values()) == counted.owned == cards
    assert counted.uses[Use.FREE] <= (found.free_now or 0)


def test_without_an_agent_no_more_cards_are_free_than_the_scheduler_could_give() -> None:
    facts = NodeFacts(
        name="n",
        capacity={GPU: 8},
        allocatable={GPU: 6},
        pods=(PodFact("team", "p", {GPU: 3}),),
    )
    assert account(facts, POLICY).uses == {Use.UNMEASURED: 3, Use.FREE: 3, Use.BLOCKED: 2}


@pytest.mark.parametrize(("held", "uses"), [(0, {Use.FREE: 4}), (5, {Use.UNKNOWN: 4})])
def test_without_an_agent_nobody_knows_which_cards_carry_the_slots_that_are_held(
    held: int, uses: dict[Use, int]
) -> None:
    facts = NodeFacts(
        name="n",
        capacity={GPU: 16},
        allocatable={GPU: 16},
        labels={"nvidia.com/gpu.count": "4", "nvidia.com/gpu.replicas": "4"},
        pods=(PodFact("team", "p", {GPU: held}),),
    )
    found = account(facts, POLICY)
    assert (found.uses, found.allocated) == (uses, None if held else 0)
