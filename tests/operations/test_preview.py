"""What the preview of a taint says, read live from the cluster."""

from dataclasses import replace
from typing import Any

import pytest

from gpuadmin.accounts.access import Refused
from gpuadmin.accounts.audit import Actor
from gpuadmin.accounts.models import AuditEntry
from gpuadmin.accounts.roles import Role
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.errors import Forbidden
from gpuadmin.operations import services
from gpuadmin.operations.errors import BadParameters, UnknownKind
from gpuadmin.planning.plan import Plan
from tests.operations.world import World

pytestmark = pytest.mark.django_db
KEY = {"key": "maint", "operator": "Exists"}


def preview(world: World, actor: Actor, kind: str = "taint.add", **parameters: Any) -> Plan:
    return services.preview(actor, world.cluster, kind, parameters).plan


def test_no_execute_names_every_pod_that_goes_and_when(world: World, operator: Actor) -> None:
    uid = world.node("h100-01")
    world.pod("gpu-job", "h100-01", gpu=2)
    world.pod("web", "h100-01")
    world.pod("bare", "h100-01", owner=None)
    world.pod("later", "h100-01", tolerations=[KEY | {"tolerationSeconds": 300}])
    world.pod("tolerant", "h100-01", tolerations=[KEY])
    world.pod("plugin", "h100-01", owner=("DaemonSet", "plugin"))
    agent = ("DaemonSet", "gpuadmin-agent")
    world.pod("gpuadmin-agent-x", "h100-01", owner=agent, namespace="gpuadmin")

    plan = preview(world, operator, nodes=[uid], key="maint", effect="NoExecute")

    assert {pod.name: pod.effect for pod in plan.pods_touched} == {
        "gpu-job": "evicted now",
        "web": "evicted now",
        "bare": "evicted now",
        "later": "evicted after 300 s",
        "plugin": "evicted now",
        "gpuadmin-agent-x": "evicted now",
    }
    touched = {pod.name: pod for pod in plan.pods_touched}
    assert touched["gpu-job"].gpu == {"nvidia.com/gpu": 2}
    assert touched["gpu-job"].owner == "Job training"
    assert [name for name, pod in touched.items() if pod.ours] == ["gpuadmin-agent-x"]
    assert "Our own agent goes too: no readings from h100-01." in plan.warnings
    assert "Nothing owns team/bare: what is ended there is gone for good." in plan.warnings
    assert (plan.confirm.needed, plan.confirm.phrase) == (True, "h100-01")
    assert plan.kubectl == ("kubectl taint nodes h100-01 maint:NoExecute --overwrite",)


def test_no_schedule_names_who_stays_and_who_lacks_the_toleration(
    world: World, operator: Actor
) -> None:
    here, _there = world.node("h100-01"), world.node("h100-02")
    world.pod("stays", "h100-01")
    world.pod("tolerant", "h100-01", gpu=1, tolerations=[KEY])
    world.pod("done", "h100-01", gpu=1, phase="Succeeded")
    world.pod("elsewhere", "h100-02", gpu=4)
    world.pod("waiting", gpu=8)

    plan = preview(world, operator, nodes=[here], key="maint", value="x", effect="NoSchedule")

    assert [(pod.name, pod.effect, pod.dies) for pod in plan.pods_touched] == [
        ("stays", "stays, could not come back", False)
    ]
    lacking = {pod.name: pod.node for pod in plan.gpu_workloads_lacking_toleration}
    assert lacking == {"elsewhere": "h100-02", "waiting": ""}
    assert not plan.confirm.needed


def test_capacity_before_and_after_is_counted_as_everywhere_else(
    world: World, operator: Actor
) -> None:
    nodes = [world.node("h100-01", gpus=8), world.node("h100-02", gpus=4)]
    world.pod("job", "h100-01", gpu=3)
    plan = preview(world, operator, nodes=nodes, key="maint", effect="NoSchedule")
    assert [(c.resource, c.free_now_before, c.free_now_after) for c in plan.capacity] == [
        ("nvidia.com/gpu", 9, 0)
    ]
    assert plan.confirm.phrase == "2 nodes"
    tolerated = preview(world, operator, nodes=nodes, key="nvidia.com/gpu", effect="NoSchedule")
    assert [c.free_now_after for c in tolerated.capacity] == [9]


def test_removing_a_taint_opens_the_node_and_touches_nobody(world: World, operator: Actor) -> None:
    taint = {"key": "maint", "effect": "NoExecute"}
    uid = world.node("h100-01", taints=[taint])
    world.pod("job", "h100-01", gpu=1, tolerations=[KEY])
    plan = preview(world, operator, "taint.remove", nodes=[uid], key="maint", effect="NoExecute")
    assert not plan.pods_touched
    assert not plan.gpu_workloads_lacking_toleration
    assert [(c.free_now_before, c.free_now_after) for c in plan.capacity] == [(0, 7)]
    assert plan.targets[0].before == [taint]
    assert plan.targets[0].after == []
    assert plan.kubectl == ("kubectl taint nodes h100-01 maint:NoExecute-",)


def test_c21_no_execute_asks_for_a_confirmation_only_where_pods_end(
    world: World, operator: Actor
) -> None:
    uid = world.node("h100-01")
    assert not preview(world, operator, nodes=[uid], key="m", effect="NoExecute").confirm.needed
    world.pod("agent", "h100-01", owner=("DaemonSet", "gpuadmin-agent"), namespace="gpuadmin")
    plan = preview(world, operator, nodes=[uid], key="m", effect="NoExecute")
    assert plan.confirm.needed
    assert [pod.ours for pod in plan.pods_touched] == [True]


def test_prefer_no_schedule_closes_nothing_and_says_so(world: World, operator: Actor) -> None:
    uid = world.node("h100-01")
    world.pod("stays", "h100-01", gpu=1)
    plan = preview(world, operator, nodes=[uid], key="m", effect="PreferNoSchedule")
    assert not plan.pods_touched
    assert not plan.gpu_workloads_lacking_toleration
    assert [(c.free_now_before, c.free_now_after) for c in plan.capacity] == [(7, 7)]
    assert any("closes nothing" in warning for warning in plan.warnings)


def test_kubernetes_own_taints_come_with_a_warning(world: World, operator: Actor) -> None:
    uid = world.node("h100-01")
    key = "node.kubernetes.io/unschedulable"
    plan = preview(world, operator, nodes=[uid], key=key, effect="NoSchedule")
    assert any("Kubernetes itself" in warning for warning in plan.warnings)


def test_a_node_that_is_gone_or_replaced_blocks_the_plan(world: World, operator: Actor) -> None:
    uid = world.node("h100-01")
    world.replace_node("h100-01")
    plan = preview(world, operator, nodes=[uid, "nobody"], key="m", effect="NoSchedule")
    assert sorted(plan.blockers) == [
        "There is no node with the uid nobody.",
        "h100-01: The node is gone: another machine bears its name now.",
    ]


def test_without_the_right_to_list_pods_no_execute_is_blocked_and_the_rest_warned(
    world: World, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(self: KubeClient, path: str, read: Any, params: Any = None) -> Any:
        raise Forbidden("GET /api/v1/pods: 403 not for you", status=403)

    uid = world.node("h100-01")
    with monkeypatch.context() as patch:
        patch.setattr(KubeClient, "list_all", forbidden)
        plan = preview(world, operator, nodes=[uid], key="m", effect="NoExecute")
        gentle = preview(world, operator, nodes=[uid], key="m", effect="NoSchedule")
    assert any("cannot tell which" in blocker for blocker in plan.blockers)
    assert not gentle.blockers
    assert any("not known whom this touches" in warning for warning in gentle.warnings)
    assert [(c.free_now_before, c.free_now_after) for c in gentle.capacity] == [(None, None)]


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({}, "nodes"),
        ([], "parameters"),
        ({"nodes": [], "key": "a", "effect": "NoSchedule"}, "nodes"),
        ({"nodes": ["u", "u"], "key": "a", "effect": "NoSchedule"}, "nodes"),
        ({"nodes": "u", "key": "a", "effect": "NoSchedule"}, "nodes"),
        ({"nodes": ["u"], "key": "a b", "effect": "NoSchedule"}, "key"),
        ({"nodes": ["u"], "key": "a", "effect": "Sometimes"}, "effect"),
        ({"nodes": ["u"], "key": "a", "effect": "NoSchedule", "value": 1}, "value"),
        ({"nodes": ["u"], "key": "a", "effect": "NoSchedule", "force": True}, "force"),
    ],
)
def test_bad_parameters_are_told_by_field(
    world: World, operator: Actor, raw: object, field: str
) -> None:
    with pytest.raises(BadParameters) as caught:
        services.preview(operator, world.cluster, "taint.add", raw)
    assert list(caught.value.fields) == [field]


def test_an_unknown_change_names_those_that_there_are(world: World, operator: Actor) -> None:
    with pytest.raises(UnknownKind, match=r"one of taint\.add, taint\.remove, node\.cordon, "):
        services.preview(operator, world.cluster, "node.explode", {})


def test_a_viewer_is_refused_and_audited(world: World, operator: Actor) -> None:
    viewer = replace(operator, role=Role.VIEWER)
    with pytest.raises(Refused, match="It takes operator"):
        services.preview(viewer, world.cluster, "taint.add", {})
    assert AuditEntry.objects.filter(outcome="refused", action="operate.taint").count() == 1
