"""Pods that a NoExecute taint sends away: who may go, who has gone, and until when we wait."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.utils import timezone

from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.errors import Forbidden
from gpuadmin.operations.models import Lock, State
from tests.operations.conftest import Make, run
from tests.operations.world import World

pytestmark = pytest.mark.django_db


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


class Blinded(KubeClient):
    """From its first write on it may no longer see pods."""

    wrote = False

    def patch(self, path: str, body: object, **more: object) -> bytes:
        self.wrote = True
        return super().patch(path, body, **more)  # type: ignore[arg-type]

    def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        if self.wrote and path == "/api/v1/pods":
            raise Forbidden("GET /api/v1/pods: 403 not for you", status=403)
        return super().get(path, params)


def test_a_verified_taint_counts_where_nobody_may_see_whether_the_pods_have_left(
    world: World, make: Make
) -> None:
    uid = world.node("h100-01")
    world.pod("job", "h100-01")
    operation = make("taint.add", nodes=[uid], key="maint", effect="NoExecute")
    operation = run(operation, Blinded(world.client.connection))
    assert operation.state == State.SUCCEEDED
    assert operation.message == (
        "Verified on 1. Whether the pods of h100-01 have left is not known. Our account may not do "
        "this; Set-up has the line that grants it. GET /api/v1/pods: 403 not for you"
    )
    assert operation.targets.get().steps.get(name="leave").state == State.STUCK
