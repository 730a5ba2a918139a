"""What our account may not do stands in the preview, with the line that grants it."""

from __future__ import annotations

from typing import Any

import pytest

from gpuadmin.accounts.audit import Actor
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.errors import Unreachable
from gpuadmin.operations import services
from gpuadmin.operations.errors import Blocked
from gpuadmin.operations.store import Confirmation
from tests.operations.world import World

ADD = {"key": "maintenance", "effect": "NoSchedule"}


class Reviewed(KubeClient):
    """The API server as it is, but for what it says that we may do."""

    def __init__(self, inner: KubeClient, verdict: bool | None) -> None:
        super().__init__(inner.connection)
        self.verdict = verdict

    def post(self, path: str, body: object, params: Any = None) -> bytes:
        if not path.endswith("/selfsubjectaccessreviews"):
            return super().post(path, body, params)
        if self.verdict is None:
            raise Unreachable("The API server can't be reached.")
        return b'{"status": {"allowed": %s}}' % str(self.verdict).lower().encode()


def test_a_change_that_our_account_may_not_make_is_blocked_with_the_line_that_grants_it(
    world: World, operator: Actor
) -> None:
    parameters = {"nodes": [world.node("n1")], **ADD}
    client = Reviewed(world.client, verdict=False)
    shown = services.preview(operator, world.cluster, "taint.add", parameters, client=client)
    [blocker] = shown.plan.blockers
    assert "does not hold the component “taint” (patch nodes)" in blocker
    assert "kubectl apply -k deploy/components/taint" in blocker
    with pytest.raises(Blocked):
        services.create(
            operator,
            world.cluster,
            "taint.add",
            parameters,
            Confirmation(shown.fingerprint, "maintenance"),
            client=client,
        )


def test_what_the_server_does_not_say_is_a_warning_and_blocks_nothing(
    world: World, operator: Actor
) -> None:
    parameters = {"nodes": [world.node("n1")], **ADD}
    client = Reviewed(world.client, verdict=None)
    plan = services.preview(operator, world.cluster, "taint.add", parameters, client=client).plan
    assert plan.blockers == ()
    assert any("It is not known whether we hold the component “taint”" in w for w in plan.warnings)


def test_nothing_is_asked_where_there_is_nothing_to_write(world: World, operator: Actor) -> None:
    node = world.node("n1", taints=[{"key": "maintenance", "effect": "NoSchedule"}])
    client = Reviewed(world.client, verdict=False)
    plan = services.preview(
        operator, world.cluster, "taint.add", {"nodes": [node], **ADD}, client=client
    ).plan
    assert plan.blockers == ()
    assert plan.kubectl == ()


def test_the_kubectl_line_names_only_nodes_that_are_written(world: World, operator: Actor) -> None:
    bare = world.node("n1")
    done = world.node("n2", taints=[{"key": "maintenance", "effect": "NoSchedule"}])
    plan = services.preview(
        operator, world.cluster, "taint.add", {"nodes": [bare, done], **ADD}
    ).plan
    assert plan.kubectl == ("kubectl taint nodes n1 maintenance:NoSchedule --overwrite",)
