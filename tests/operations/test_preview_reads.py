"""What a preview reads of the cluster, and what it says where it can't know."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gpuadmin.accounts.audit import Actor
from gpuadmin.kube.client import KubeClient
from gpuadmin.operations import services
from tests.operations.test_preview import preview
from tests.operations.world import World

pytestmark = pytest.mark.django_db


class Listing(KubeClient):
    """A client that keeps which pods were listed."""

    def __init__(self, client: KubeClient) -> None:
        super().__init__(client.connection)
        self.selectors: list[str] = []

    def list_all(
        self,
        path: str,
        read: Callable[..., Any],
        params: Mapping[str, str] | None = None,
    ) -> Any:
        self.selectors.append((params or {}).get("fieldSelector", "all"))
        return super().list_all(path, read, params)


def test_our_own_agent_that_could_not_come_back_is_told(world: World, operator: Actor) -> None:
    uid = world.node("h100-01")
    world.pod("agent", "h100-01", owner=("DaemonSet", "gpuadmin-agent"), namespace="gpuadmin")
    plan = preview(world, operator, nodes=[uid], key="maint", effect="NoSchedule")
    told = "Our own agent stays, but could not come back after a restart on h100-01."
    assert told in plan.warnings


def test_only_the_pods_of_the_targets_are_listed(world: World, operator: Actor) -> None:
    first, second = world.node("h100-01"), world.node("h100-02")
    listed = Listing(world.client)
    for nodes in ([first], [first, second]):
        change = {"nodes": nodes, "key": "maint", "effect": "NoSchedule"}
        services.preview(operator, world.cluster, "taint.add", change, client=listed)
    on = [f"spec.nodeName={name}" for name in ("h100-01", "h100-01", "h100-02")]
    assert listed.selectors == on


def test_gpu_pods_elsewhere_are_not_named_from_an_old_reading(
    world: World, operator: Actor
) -> None:
    uid = world.node("h100-01")
    world.pod("waiting", gpu=8)
    world.cluster.pods_observed_at = timezone.now() - timedelta(minutes=6)
    plan = preview(world, operator, nodes=[uid], key="maint", effect="NoSchedule")
    assert plan.gpu_workloads_lacking_toleration == ()
    assert any("were not read of late" in warning for warning in plan.warnings)
    cordon = preview(world, operator, "node.cordon", nodes=[uid])
    assert cordon.warnings == (), "a cordon asks for no toleration of anybody elsewhere"
