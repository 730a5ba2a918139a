"""An undo puts back what we wrote, and nothing that is somebody else's (C20, C21)."""

import pytest

from gpuadmin.accounts.audit import Actor
from gpuadmin.operations import services
from gpuadmin.operations.errors import NotNow
from gpuadmin.operations.models import Operation, State
from gpuadmin.operations.queries import undoable_targets
from gpuadmin.operations.store import Confirmation
from tests.operations.between import AUTOSCALER, MAINT, TEAM
from tests.operations.conftest import Make, run
from tests.operations.world import World

pytestmark = pytest.mark.django_db


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


def test_what_has_been_undone_can_not_be_undone_again(
    world: World, make: Make, operator: Actor
) -> None:
    operation = run(make("taint.add", nodes=[world.node("h100-01")], **MAINT))
    assert undoable_targets(operation)
    shown = services.preview_undo(operator, Operation.objects.get())
    once = Confirmation(shown.fingerprint, "back again", idempotency_key="k1")
    undo, _ = services.undo(operator, operation, once)
    for state in ("while it waits", "when it is done"):
        known = Operation.objects.get(pk=operation.pk)
        assert not undoable_targets(known), state
        with pytest.raises(NotNow, match="undone already"):
            services.preview_undo(operator, known)
        with pytest.raises(NotNow, match="undone already"):
            services.undo(operator, known, Confirmation(shown.fingerprint, "once more"))
        assert services.undo(operator, known, once) == (undo, False), "the same key: the same"
        undo = run(undo)


def test_an_undo_that_failed_can_be_tried_again(world: World, make: Make, operator: Actor) -> None:
    operation = run(make("taint.add", nodes=[world.node("h100-01")], **MAINT))
    Operation.objects.filter(pk=undo_of(world, operator, operation).pk).update(state=State.FAILED)
    assert run(undo_of(world, operator, operation)).state == State.SUCCEEDED
    assert world.taints("h100-01") == []
