"""Cordons: owner, reason and an end of their own; undone only where they are still ours."""

from datetime import timedelta

import pytest
from django.utils import timezone

from gpuadmin.accounts.access import Refused
from gpuadmin.accounts.audit import Actor
from gpuadmin.accounts.models import AuditEntry
from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Node
from gpuadmin.operations import services, tasks
from gpuadmin.operations.errors import BadParameters
from gpuadmin.operations.models import Operation, State, Step, Target
from gpuadmin.operations.store import Confirmation
from tests.operations.between import MAINT
from tests.operations.conftest import Make, run
from tests.operations.test_preview import preview
from tests.operations.world import World

pytestmark = pytest.mark.django_db
TOLERATES_CORDONS = [
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
]


def is_cordoned(world: World, name: str) -> bool:
    return bool(world.get_node(name)["spec"].get("unschedulable"))


def cordoned(world: World, actor: Actor, *uids: str, seconds: int | None = None) -> Operation:
    shown = services.preview(actor, world.cluster, "node.cordon", {"nodes": list(uids)})
    confirmation = Confirmation(shown.fingerprint, "a bad riser", undo_after_seconds=seconds)
    made, _ = services.create(
        actor, world.cluster, "node.cordon", {"nodes": list(uids)}, confirmation
    )
    return run(made)


def test_a_cordon_ends_nobody_and_names_who_could_not_come_back(
    world: World, operator: Actor
) -> None:
    uid = world.node("h100-01")
    world.pod("training", "h100-01", gpu=2)
    world.pod("exporter", "h100-01", tolerations=TOLERATES_CORDONS, owner=("DaemonSet", "e"))
    world.pod("elsewhere", gpu=1)
    plan = preview(world, operator, "node.cordon", nodes=[uid])
    assert [(pod.name, pod.effect, pod.dies) for pod in plan.pods_touched] == [
        ("training", "stays, could not come back", False)
    ]
    assert plan.gpu_workloads_lacking_toleration == ()
    [gpus] = [row for row in plan.capacity if row.resource == "nvidia.com/gpu"]
    assert (gpus.free_now_before, gpus.free_now_after) == (6, 0)
    assert plan.kubectl == ("kubectl cordon h100-01",)
    assert not plan.confirm.needed


def test_a_cordon_is_written_verified_audited_and_undone(
    world: World, make: Make, operator: Actor
) -> None:
    first, second = world.node("h100-01"), world.node("h100-02")
    done = run(make("node.cordon", nodes=[first, second]))
    assert done.state == State.SUCCEEDED
    assert is_cordoned(world, "h100-01")
    assert is_cordoned(world, "h100-02")
    writes = AuditEntry.objects.filter(action="node.cordon", outcome="done")
    assert sorted(writes.values_list("object_name", flat=True)) == ["h100-01", "h100-02"]

    shown = services.preview_undo(operator, done)
    assert shown.plan.kubectl == ("kubectl uncordon h100-01 h100-02",)
    back = run(services.undo(operator, done, Confirmation(shown.fingerprint, "mended"))[0])
    assert back.state == State.SUCCEEDED
    assert not is_cordoned(world, "h100-01")


def test_what_was_cordoned_before_stays_so_and_an_undo_leaves_it_alone(
    world: World, make: Make, operator: Actor
) -> None:
    ours, theirs = world.node("h100-01"), world.node("h100-02")
    world.client.patch("/api/v1/nodes/h100-02", {"spec": {"unschedulable": True}})
    done = run(make("node.cordon", nodes=[ours, theirs]))
    assert [t.message for t in done.targets.all()] == ["It is cordoned.", "Already cordoned."]
    shown = services.preview_undo(operator, done)
    run(services.undo(operator, done, Confirmation(shown.fingerprint, "mended"))[0])
    assert not is_cordoned(world, "h100-01")
    assert is_cordoned(world, "h100-02")


def test_a_cordon_and_a_taint_of_one_node_do_not_touch_each_other(
    world: World, make: Make, operator: Actor
) -> None:
    uid = world.node("h100-01")
    run(make("taint.add", nodes=[uid], **MAINT))
    run(make("node.cordon", nodes=[uid]))
    run(make("taint.remove", nodes=[uid], key=MAINT["key"], effect=MAINT["effect"]))
    assert is_cordoned(world, "h100-01")
    run(make("node.uncordon", nodes=[uid]))
    assert not is_cordoned(world, "h100-01")


def test_a_change_whose_time_is_over_is_put_back_once_in_the_name_of_who_asked(
    world: World, operator: Actor
) -> None:
    uid = world.node("h100-01")
    done = cordoned(world, operator, uid, seconds=3600)
    assert done.undo_at is not None
    tasks.sweep()
    assert done.undos.count() == 0, "its time is not over"

    Operation.objects.filter(pk=done.pk).update(undo_at=timezone.now() - timedelta(seconds=1))
    tasks.sweep()
    tasks.sweep()
    [back] = done.undos.all()
    assert (back.created_by, back.created_via) == (operator.user, "expiry")
    assert run(back).state == State.SUCCEEDED
    assert not is_cordoned(world, "h100-01")


def test_what_is_left_is_put_back_where_a_node_is_gone(world: World, operator: Actor) -> None:
    gone, left = world.node("h100-01"), world.node("h100-02")
    done = cordoned(world, operator, gone, left, seconds=3600)
    world.replace_node("h100-01")
    Operation.objects.filter(pk=done.pk).update(undo_at=timezone.now())
    tasks.sweep()
    [back] = done.undos.all()
    assert [target.object_name for target in back.targets.all()] == ["h100-02"]
    assert back.plan["warnings"] == [
        "h100-01: The node is gone: another machine bears its name now."
    ]
    assert run(back).state == State.SUCCEEDED
    assert not is_cordoned(world, "h100-02")


def test_where_every_node_is_gone_the_reason_stays_with_the_operation(
    world: World, operator: Actor
) -> None:
    done = cordoned(world, operator, world.node("h100-01"), seconds=3600)
    world.replace_node("h100-01")
    Operation.objects.filter(pk=done.pk).update(undo_at=timezone.now())
    tasks.sweep()
    done.refresh_from_db()
    assert (done.undos.count(), done.undo_at) == (0, None)
    assert "another machine bears its name now" in done.undo_problem


def test_what_would_end_pods_is_never_put_back_by_itself(world: World, operator: Actor) -> None:
    evicting = {"key": "maint", "effect": "NoExecute"}
    uid = world.node("h100-01", taints=[evicting])
    shown = services.preview(operator, world.cluster, "taint.remove", {"nodes": [uid], **evicting})
    confirmation = Confirmation(shown.fingerprint, "open it", undo_after_seconds=60)
    done = run(
        services.create(operator, world.cluster, shown.kind, shown.parameters, confirmation)[0]
    )
    world.pod("training", "h100-01", gpu=2)
    Operation.objects.filter(pk=done.pk).update(undo_at=timezone.now())
    tasks.sweep()
    done.refresh_from_db()
    assert done.undos.count() == 0
    assert done.undo_at is None
    assert done.undo_problem.endswith("It would end pods, so a person has to do it.")
    assert world.taints("h100-01") == []


def seen(uid: str, unschedulable: bool) -> None:
    """The watcher has read the node, a minute after our changes of it were verified."""
    now = timezone.now()
    Step.objects.filter(name=Step.Name.VERIFY).update(finished_at=now - timedelta(minutes=1))
    Node.objects.filter(uid=uid).update(unschedulable=unschedulable, observed_at=now)


def test_a_reversal_by_somebody_else_is_dated_and_not_fought(world: World, operator: Actor) -> None:
    uid = world.node("h100-01")
    done = cordoned(world, operator, uid)
    world.client.patch("/api/v1/nodes/h100-01", {"spec": {"unschedulable": None}})
    seen(uid, unschedulable=False)
    tasks.sweep()
    target = Target.objects.get(operation=done)
    assert target.reversed_at is not None
    assert not is_cordoned(world, "h100-01")

    seen(uid, unschedulable=True)
    tasks.sweep()
    target.refresh_from_db()
    assert target.reversed_at is None, "it is so again"


def test_nothing_is_called_reversed_before_the_node_was_read_again(
    world: World, operator: Actor
) -> None:
    uid = world.node("h100-01")
    done = cordoned(world, operator, uid)
    seen(uid, unschedulable=False)
    before = timezone.now() - timedelta(minutes=2)
    Node.objects.filter(uid=uid).update(observed_at=before)
    tasks.sweep()
    assert Target.objects.get(operation=done).reversed_at is None


def test_what_we_opened_again_ourselves_is_no_reversal(
    world: World, make: Make, operator: Actor
) -> None:
    uid = world.node("h100-01")
    done = cordoned(world, operator, uid)
    run(make("node.uncordon", nodes=[uid]))
    seen(uid, unschedulable=False)
    tasks.sweep()
    assert Target.objects.get(operation=done).reversed_at is None


@pytest.mark.parametrize("seconds", [0, 59, 90 * 86400 + 1])
def test_a_time_out_of_its_range_is_told(world: World, operator: Actor, seconds: int) -> None:
    uid = world.node("h100-01")
    with pytest.raises(BadParameters, match="From a minute to 90 days"):
        cordoned(world, operator, uid, seconds=seconds)


def test_a_viewer_may_not_cordon(world: World, operator: Actor) -> None:
    viewer = Actor(operator.user, Role.VIEWER, "session")
    with pytest.raises(Refused):
        preview(world, viewer, "node.cordon", nodes=[world.node("h100-01")])
