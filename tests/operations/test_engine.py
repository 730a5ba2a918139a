"""Operations as workers run them: conflicts, repeats, locks, undo (C20, C21, C40, C41)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gpuadmin.accounts.audit import Actor
from gpuadmin.accounts.models import AuditEntry
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.errors import Unreachable
from gpuadmin.operations import engine, services
from gpuadmin.operations.models import Lock, Operation, State
from gpuadmin.operations.queries import due, waits_for
from gpuadmin.operations.store import Confirmation
from tests.operations.conftest import Make, run
from tests.operations.world import World

pytestmark = pytest.mark.django_db

TEAM = {"key": "team", "value": "a", "effect": "NoSchedule"}
MAINT = {"key": "maint", "effect": "NoSchedule"}
AUTOSCALER = {
    "key": "ToBeDeletedByClusterAutoscaler",
    "effect": "NoSchedule",
    "timeAdded": "2026-11-01T00:00:00Z",
}


class Between(KubeClient):
    """A client before whose writes, or after them, something else happens."""

    def __init__(
        self,
        client: KubeClient,
        *,
        before: Callable[[], object] = lambda: None,
        after: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(client.connection)
        self.before, self.after, self.patches = before, after, 0

    def patch(self, path: str, body: object, **more: Any) -> bytes:
        self.patches += 1
        self.before()
        answer = super().patch(path, body, **more)
        self.after()
        return answer


def writes(node: str) -> list[AuditEntry]:
    found = AuditEntry.objects.filter(object_kind="node", object_name=node, outcome="done")
    return list(found.order_by("id"))


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


def test_c41_a_message_that_comes_again_changes_nothing(world: World, make: Make) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)
    for _ in range(3):
        operation = run(operation)
    assert operation.state == State.SUCCEEDED
    assert operation.fence == 1
    assert len(writes("h100-01")) == 1


class Killed(BaseException):
    """The worker process died here."""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_that_dies_around_the_write_is_followed_by_one_that_finishes_it(
    world: World, make: Make, moment: str
) -> None:
    uid = world.node("h100-01", taints=[TEAM])
    operation = make("taint.add", nodes=[uid], **MAINT)

    def die() -> None:
        raise Killed

    dying = (
        Between(world.client, before=die)
        if moment == "before"
        else Between(world.client, after=die)
    )
    with pytest.raises(Killed):
        run(operation, dying)
    assert run(operation).state == State.RUNNING, "the lease still holds"
    later = timezone.now() + timedelta(seconds=61)
    assert operation.pk in due(later).values_list("pk", flat=True)

    operation = run(operation, clock=lambda: later)

    assert operation.state == State.SUCCEEDED
    assert operation.fence == 2
    assert world.taints("h100-01") == [TEAM, MAINT]
    [row] = writes("h100-01")
    assert (row.detail["before"], row.detail["after"]) == ([TEAM], [TEAM, MAINT])
    assert operation.targets.get().wrote


def test_a_worker_that_lost_its_claim_writes_nothing_more(world: World, make: Make) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)

    def overtake(stalled: Operation) -> None:
        run(stalled, clock=lambda: timezone.now() + timedelta(seconds=61))

    slow = Between(world.client, before=lambda: overtake(operation))
    operation = run(operation, slow)
    assert operation.state == State.SUCCEEDED
    assert operation.fence == 2
    assert len(writes("h100-01")) == 1
    assert world.taints("h100-01") == [MAINT]


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


def test_an_unreachable_api_server_is_tried_again_until_the_time_limit(
    world: World, make: Make
) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)

    def away() -> None:
        raise Unreachable("The API server at https://k can't be reached: refused")

    client = Between(world.client, before=away)
    assert engine.run(operation.pk, worker="w1", client=client) == engine.LOOK_AGAIN_SECONDS
    operation.refresh_from_db()
    assert operation.state == State.RUNNING
    assert operation.message.startswith("Tries again: The API server")

    late = timezone.now() + timedelta(minutes=11)
    operation = run(operation, client, clock=lambda: late)
    assert operation.state == State.STUCK
    assert "Not done within the time limit: h100-01." in operation.message
    assert "can't be reached" in operation.message
    assert not Lock.objects.exists()


def test_a_reversal_by_another_controller_is_shown_and_not_fought(world: World, make: Make) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)
    client = Between(world.client, after=lambda: world.write_taints("h100-01", []))
    operation = run(operation, client)
    assert operation.state == State.FAILED
    assert "a fresh read does not show it" in operation.message
    assert client.patches == 1
    assert world.taints("h100-01") == []


def test_no_execute_lists_the_pods_until_they_are_gone(world: World, make: Make) -> None:
    uid = world.node("h100-01")
    world.pod("job", "h100-01", gpu=1)
    world.pod("tolerant", "h100-01", tolerations=[{"operator": "Exists"}])
    operation = run(make("taint.add", nodes=[uid], key="maint", effect="NoExecute"))

    assert operation.state == State.VERIFYING
    assert operation.message == "Verified. Still leaving: team/job."
    assert operation.targets.get().leaving == ["team/job"]
    assert not Lock.objects.exists(), "nothing more is written, so an undo need not wait"

    world.end_pod("job")
    operation = run(operation)
    assert (operation.state, operation.message) == (State.SUCCEEDED, "Verified on 1.")
    assert operation.targets.get().steps.get(name="leave").state == State.SUCCEEDED


def test_pods_that_do_not_leave_in_time_are_named_and_the_taint_still_counts(
    world: World, make: Make
) -> None:
    uid = world.node("h100-01")
    world.pod("job", "h100-01", gpu=1)
    operation = run(make("taint.add", nodes=[uid], key="maint", effect="NoExecute"))
    late = timezone.now() + timedelta(minutes=11)
    operation = run(operation, clock=lambda: late)
    assert operation.state == State.SUCCEEDED
    assert operation.message == "Verified on 1. Still there at the time limit: team/job."
    assert operation.targets.get().steps.get(name="leave").state == State.STUCK


def test_nobody_is_ended_who_came_after_the_plan_was_confirmed(world: World, make: Make) -> None:
    uid = world.node("h100-01")
    world.pod("known", "h100-01")
    operation = make("taint.add", nodes=[uid], key="maint", effect="NoExecute")
    world.pod("newcomer", "h100-01")
    operation = run(operation)
    assert operation.state == State.FAILED
    assert "would be ended too: team/newcomer." in operation.message
    assert world.taints("h100-01") == []


def undo_of(world: World, operator: Actor, operation: Operation) -> Operation:
    operation = Operation.objects.get(pk=operation.pk)
    shown = services.preview_undo(operator, operation)
    confirmation = Confirmation(shown.fingerprint, "back again", shown.plan.confirm.phrase)
    return services.undo(operator, operation, confirmation)[0]


def test_an_undo_removes_only_ours_beside_a_concurrent_writers(
    world: World, make: Make, operator: Actor
) -> None:
    uid = world.node("h100-01", taints=[TEAM])
    operation = run(make("taint.add", nodes=[uid], **MAINT))
    world.write_taints("h100-01", [TEAM, MAINT, AUTOSCALER])
    back = run(undo_of(world, operator, operation))
    assert back.state == State.SUCCEEDED
    assert back.undo_of == operation
    assert back.plan["kubectl"] == ["kubectl taint nodes h100-01 maint:NoSchedule-"]
    assert world.taints("h100-01") == [TEAM, AUTOSCALER]

    again = run(undo_of(world, operator, back))
    assert again.state == State.SUCCEEDED
    assert world.taints("h100-01") == [TEAM, AUTOSCALER, MAINT]


def test_an_undo_restores_the_value_that_was_there_and_what_was_removed(
    world: World, make: Make, operator: Actor
) -> None:
    uid = world.node("h100-01", taints=[TEAM, AUTOSCALER])
    changed = run(make("taint.add", nodes=[uid], **(TEAM | {"value": "b"})))
    run(undo_of(world, operator, changed))
    assert world.taints("h100-01") == [TEAM, AUTOSCALER]

    key = AUTOSCALER["key"]
    removed = run(make("taint.remove", nodes=[uid], key=key, effect="NoSchedule"))
    run(undo_of(world, operator, removed))
    assert world.taints("h100-01") == [TEAM, AUTOSCALER], "timeAdded came back too"


def test_an_undo_leaves_alone_what_somebody_changed_and_says_so(
    world: World, make: Make, operator: Actor
) -> None:
    uid = world.node("h100-01")
    operation = run(make("taint.add", nodes=[uid], **MAINT))
    world.write_taints("h100-01", [MAINT | {"value": "theirs"}])
    shown = services.preview_undo(operator, Operation.objects.get(pk=operation.pk))
    assert shown.plan.targets[0].already
    assert "Left alone" in shown.plan.targets[0].message
    back = run(undo_of(world, operator, operation))
    assert back.state == State.SUCCEEDED
    assert not back.targets.get().wrote
    assert world.taints("h100-01") == [MAINT | {"value": "theirs"}]


def test_an_undo_covers_only_targets_that_succeeded(
    world: World, make: Make, operator: Actor
) -> None:
    uids = [world.node("h100-01"), world.node("h100-02"), world.node("h100-03", taints=[MAINT])]
    operation = make("taint.add", nodes=uids, **MAINT)
    world.replace_node("h100-02")
    operation = run(operation)
    back = run(undo_of(world, operator, operation))
    assert [target.object_name for target in back.targets.all()] == ["h100-01"]
    assert world.taints("h100-01") == []
    assert world.taints("h100-03") == [MAINT]


def test_an_operation_that_could_not_start_in_time_is_called_off(world: World, make: Make) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)
    late = timezone.now() + timedelta(hours=2)
    operation = run(operation, clock=lambda: late)
    assert operation.state == State.CANCELLED
    assert world.taints("h100-01") == []
