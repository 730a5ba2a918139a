"""Operations as workers run them: conflicts, locks, one result for each node (C20, C21, C40)."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gpuadmin.accounts.models import AuditEntry
from gpuadmin.operations import engine
from gpuadmin.operations.models import Lock, State
from gpuadmin.operations.queries import waits_for
from tests.operations.between import AUTOSCALER, MAINT, TEAM, Between, writes
from tests.operations.conftest import Make, run
from tests.operations.world import World

pytestmark = pytest.mark.django_db


def test_a_taint_is_written_verified_and_audited(world: World, make: Make) -> None:
    uid = world.node("h100-01", taints=[TEAM])
    operation = run(make("taint.add", nodes=[uid], **MAINT))

    assert (operation.state, operation.message) == (State.SUCCEEDED, "Verified on 1.")
    assert world.taints("h100-01") == [TEAM, MAINT]
    target = operation.targets.get()
    assert target.before is not None
    assert target.after is not None
    assert (target.before["value"], target.after["value"]) == ([TEAM], [TEAM, MAINT])
    assert [(s.name, s.state) for s in target.steps.all()] == [
        ("write", "succeeded"),
        ("verify", "succeeded"),
    ]
    [row] = writes("h100-01")
    assert (row.action, row.actor_name, row.reason) == ("taint.add", "k.osei", "maintenance")
    assert row.detail["before"] == [TEAM]
    assert row.detail["after"] == [TEAM, MAINT]
    assert not Lock.objects.exists()


def test_c20_two_writers_one_taint_list(world: World, make: Make) -> None:
    uid = world.node("h100-01", taints=[TEAM])
    operation = make("taint.add", nodes=[uid], **MAINT)
    others = [[TEAM, AUTOSCALER]]

    def other() -> None:
        if others:
            world.write_taints("h100-01", others.pop())

    client = Between(world.client, before=other)

    operation = run(operation, client)

    assert operation.state == State.SUCCEEDED
    assert client.patches == 2
    assert world.taints("h100-01") == [TEAM, AUTOSCALER, MAINT]
    [row] = writes("h100-01")
    assert row.detail["before"] == [TEAM, AUTOSCALER]
    log = operation.targets.get().steps.get(name="write").log
    assert log[0]["text"] == "Somebody else wrote first: read again."


def test_c20_after_five_conflicts_it_fails_visibly_and_nothing_was_written(
    world: World, make: Make
) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)
    count = iter(range(100))

    def other() -> None:
        world.write_taints("h100-01", [TEAM | {"value": f"v{next(count)}"}])

    client = Between(world.client, before=other)
    operation = run(operation, client)

    assert client.patches == engine.MAX_CONFLICTS == 5
    assert operation.state == State.FAILED
    assert "5 times in a row somebody else changed h100-01" in operation.message
    assert [taint["key"] for taint in world.taints("h100-01")] == ["team"]
    assert not writes("h100-01")
    assert AuditEntry.objects.filter(object_name="h100-01", outcome="failed").count() == 1
    assert operation.targets.get().steps.get(name="write").state == State.FAILED


def test_c21_add_remove_and_repeat_by_key_and_effect(world: World, make: Make) -> None:
    a = {"key": "gpu", "value": "a"}
    uid = world.node("h100-01", taints=[a | {"effect": e} for e in ("NoSchedule", "NoExecute")])
    b = {"key": "gpu", "value": "b", "effect": "NoSchedule"}

    run(make("taint.remove", nodes=[uid], key="gpu", effect="NoExecute"))
    assert world.taints("h100-01") == [a | {"effect": "NoSchedule"}]
    run(make("taint.add", nodes=[uid], **b))
    assert world.taints("h100-01") == [b]

    version = world.get_node("h100-01")["metadata"]["resourceVersion"]
    again = run(make("taint.add", nodes=[uid], **b))
    absent = run(make("taint.remove", nodes=[uid], key="gpu", effect="PreferNoSchedule"))
    assert world.get_node("h100-01")["metadata"]["resourceVersion"] == version
    assert [again.state, absent.state] == [State.SUCCEEDED, State.SUCCEEDED]
    assert again.targets.get().message == "Already so: gpu=b:NoSchedule is there."
    assert absent.targets.get().message == "Not present: there is no gpu:PreferNoSchedule."
    assert not again.targets.get().wrote
    assert len(writes("h100-01")) == 2


def test_several_nodes_have_each_their_own_result(world: World, make: Make) -> None:
    uids = [world.node(name) for name in ("h100-01", "h100-02", "h100-03")]
    world.write_taints("h100-03", [MAINT])
    operation = make("taint.add", nodes=uids, **MAINT)
    world.replace_node("h100-02")

    operation = run(operation)

    assert operation.state == State.FAILED
    assert operation.message == (
        "1 of 3 failed. h100-02: The node is gone: another machine bears its name now."
    )
    assert [t.state for t in operation.targets.all()] == ["succeeded", "failed", "succeeded"]
    assert world.taints("h100-01") == [MAINT]
    assert MAINT not in world.taints("h100-02")


def test_c40_an_operation_on_a_deleted_node_ends_without_touching_its_successor(
    world: World, make: Make
) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)
    world.replace_node("h100-01")
    operation = run(operation)
    assert operation.state == State.FAILED
    assert "another machine bears its name now" in operation.message
    assert MAINT not in world.taints("h100-01")


def test_an_operation_waits_for_the_one_on_the_same_node(
    world: World, make: Make, nudges: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    first_uid, second_uid = world.node("h100-01"), world.node("h100-02")
    first = make("taint.add", nodes=[first_uid], **MAINT)
    second = make("taint.add", nodes=[first_uid, second_uid], **TEAM)
    apart = make("taint.add", nodes=[second_uid], key="x", effect="NoSchedule")

    assert run(second).state == State.QUEUED
    assert second.message == "Waits for “Taint h100-01 with maint:NoSchedule”."
    assert waits_for(second) == first
    assert run(apart).state == State.QUEUED, "first come, first served"

    nudges.clear()
    with django_capture_on_commit_callbacks(execute=True):
        run(first)
    assert second.pk in nudges
    assert run(second).state == State.SUCCEEDED
    assert run(apart).state == State.SUCCEEDED
    assert len(world.taints("h100-02")) == 2


def test_a_reversal_by_another_controller_is_shown_and_not_fought(world: World, make: Make) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)
    client = Between(world.client, after=lambda: world.write_taints("h100-01", []))
    operation = run(operation, client)
    assert operation.state == State.FAILED
    assert "a fresh read does not show it" in operation.message
    assert client.patches == 1
    assert world.taints("h100-01") == []


def test_an_operation_that_could_not_start_in_time_is_called_off(world: World, make: Make) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)
    late = timezone.now() + timedelta(hours=2)
    operation = run(operation, clock=lambda: late)
    assert operation.state == State.CANCELLED
    assert world.taints("h100-01") == []


def test_a_node_and_a_worker_may_have_names_as_long_as_there_are(world: World, make: Make) -> None:
    name = ".".join(["n" * 63, "m" * 63, "o" * 63, "p" * 61])
    assert len(name) == 253
    operation = make("taint.add", nodes=[world.node(name)], **MAINT)
    engine.run(operation.pk, worker=f"celery@{'h' * 255}/{operation.pk}")
    operation.refresh_from_db()
    assert operation.state == State.SUCCEEDED
    assert operation.targets.get().steps.get(name="write").title == f"Read {name} again and write"
