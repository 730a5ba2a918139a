"""A run that comes again after a death, a silence or a lost answer tells the truth (C41)."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gpuadmin.accounts.audit import Actor
from gpuadmin.accounts.models import AuditEntry
from gpuadmin.kube.errors import BadAnswer
from gpuadmin.operations import engine, services
from gpuadmin.operations.errors import NotNow
from gpuadmin.operations.models import Lock, Operation, State
from gpuadmin.operations.queries import due
from tests.operations.between import MAINT, TEAM, Between, Killed, away, die, writes
from tests.operations.conftest import Make, run
from tests.operations.world import World

pytestmark = pytest.mark.django_db


def test_c41_a_message_that_comes_again_changes_nothing(world: World, make: Make) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)
    for _ in range(3):
        operation = run(operation)
    assert operation.state == State.SUCCEEDED
    assert operation.fence == 1
    assert len(writes("h100-01")) == 1


@pytest.mark.parametrize(
    "moment", [{"before": die}, {"after": die}], ids=["before the write", "after it"]
)
def test_a_worker_that_dies_around_the_write_is_followed_by_one_that_finishes_it(
    world: World, make: Make, moment: dict[str, Any]
) -> None:
    uid = world.node("h100-01", taints=[TEAM])
    operation = make("taint.add", nodes=[uid], **MAINT)
    with pytest.raises(Killed):
        run(operation, Between(world.client, **moment))
    assert run(operation).state == State.RUNNING, "the lease still holds"
    later = timezone.now() + timedelta(seconds=61)
    assert operation.pk in due(later).values_list("pk", flat=True)

    operation = run(operation, Between(world.client, writer="gpuadmin"), clock=lambda: later)

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


def test_an_unreachable_api_server_is_tried_again_until_the_time_limit(
    world: World, make: Make
) -> None:
    uid = world.node("h100-01")
    operation = make("taint.add", nodes=[uid], **MAINT)

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


def test_a_write_is_told_once_however_often_the_run_comes_again(world: World, make: Make) -> None:
    uids = [world.node("h100-01"), world.node("h100-02")]
    operation = make("taint.add", nodes=uids, **MAINT)
    run(operation, Between(world.client, before=away, only="h100-02"))
    run(operation, Between(world.client, before=away, only="h100-02"))
    operation = run(operation)
    assert operation.state == State.SUCCEEDED
    assert (len(writes("h100-01")), len(writes("h100-02"))) == (1, 1)
    assert AuditEntry.objects.filter(object_kind="node").count() == 2


def test_what_was_found_stays_found_when_the_node_has_moved_before_the_run_comes_again(
    world: World, make: Make, operator: Actor
) -> None:
    uids = [world.node("h100-01"), world.node("h100-02", taints=[MAINT])]
    operation = make("taint.remove", nodes=uids, **MAINT)
    run(operation, Between(world.client, before=away, only="h100-02"))
    world.label("h100-01", team="a")
    operation = run(operation)
    found = operation.targets.get(object_name="h100-01")
    assert (operation.state, found.wrote) == (State.SUCCEEDED, False)
    assert found.message == "Not present: there is no maint:NoSchedule."
    assert not writes("h100-01")
    undo = services.preview_undo(operator, Operation.objects.get())
    assert [target.name for target in undo.plan.targets] == ["h100-02"]


@pytest.mark.parametrize("writer", ["kubectl-taint", ""])
def test_a_taint_that_another_wrote_while_our_write_was_lost_is_never_undone(
    world: World, make: Make, operator: Actor, writer: str
) -> None:
    operation = make("taint.add", nodes=[world.node("h100-01")], **MAINT)
    run(operation, Between(world.client, before=away))
    world.write_taints("h100-01", [MAINT])
    operation = run(operation, Between(world.client, writer=writer))

    target = operation.targets.get()
    assert (operation.state, target.wrote) == (State.SUCCEEDED, False)
    assert "it counts as somebody else's" in target.message
    assert not writes("h100-01")
    [row] = AuditEntry.objects.filter(object_name="h100-01")
    assert (row.outcome, row.detail["message"]) == ("failed", target.message)
    with pytest.raises(NotNow, match="nothing to undo"):
        services.preview_undo(operator, Operation.objects.get())


def test_a_write_whose_answer_cannot_be_read_is_looked_at_again_and_counts(
    world: World, make: Make
) -> None:
    operation = make("taint.add", nodes=[world.node("h100-01")], **MAINT)

    def garble() -> None:
        raise BadAnswer("The API server's answer can't be read: cut")

    operation = run(operation, Between(world.client, after=garble))
    assert operation.state == State.RUNNING
    assert operation.message == "Tries again: The API server's answer can't be read: cut"
    operation = run(operation, Between(world.client, writer="gpuadmin"))
    assert (operation.state, operation.targets.get().wrote) == (State.SUCCEEDED, True)
    assert len(writes("h100-01")) == 1


def test_what_is_written_counts_even_where_the_plan_of_the_rest_no_longer_holds(
    world: World, make: Make
) -> None:
    uids = [world.node("h100-01"), world.node("h100-02")]
    operation = make("taint.add", nodes=uids, key="maint", effect="NoExecute")
    run(operation, Between(world.client, before=away, only="h100-02"))
    world.pod("newcomer", "h100-02")
    operation = run(operation)
    assert operation.state == State.FAILED
    assert operation.message == (
        "1 of 2 failed. h100-02: Nothing was written. These pods came since the plan was confirmed "
        "and would be ended too: team/newcomer."
    )
    first = operation.targets.get(object_name="h100-01")
    assert (first.state, first.wrote) == (State.SUCCEEDED, True)
    assert world.taints("h100-02") == []
