"""A large fleet of made-up nodes, eight cards each, in a few inserts: for budgets of pages.

Of every ten nodes one is cut by MIG, one is shared in time, one is silent; half of it is held.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from gpuadmin.fleet.models import AgentState, Cluster, Gpu, MigInstance, Node
from gpuadmin.workloads.models import Pod, PodDevice
from tests.web.world import beat

CARDS = 8
MEMORY_BYTES = 80 * 2**30
GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-2g.20gb"
SHARED = "nvidia.com/gpu.shared"
CUT = ((0, 2), (2, 2), (4, 2))  # start and size of a card's instances, in memory slices


def build(now: datetime, nodes: int) -> Cluster:
    """``nodes`` present nodes with all that hangs on them."""
    seen = now - timedelta(seconds=3)
    cluster = Cluster.objects.create(
        name="lab-west", simulated=True, nodes_observed_at=seen, pods_observed_at=seen
    )
    beat(cluster, now)
    stored = Node.objects.bulk_create(_node(cluster, n, seen) for n in range(nodes))
    AgentState.objects.bulk_create(_agent(node, n, now) for n, node in enumerate(stored))
    cards = Gpu.objects.bulk_create(
        _gpu(node, n, index, now) for n, node in enumerate(stored) for index in range(CARDS)
    )
    cut = [gpu for gpu in cards if gpu.mig_mode_current]
    instances = MigInstance.objects.bulk_create(
        _instance(gpu, *place) for gpu in cut for place in CUT
    )
    held = list(_held(stored, cards, instances))
    Pod.objects.bulk_create(pod for pod, _ in held)
    PodDevice.objects.bulk_create(device for _, device in held)
    return cluster


def _node(cluster: Cluster, number: int, seen: datetime) -> Node:
    name = {0: MIG, 1: SHARED}.get(number % 10, GPU)
    count = {MIG: CARDS * len(CUT), SHARED: CARDS * 4}.get(name, CARDS)
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}
    return Node(
        cluster=cluster,
        uid=f"node-uid-{number:05}",
        name=f"h100-{number:04}",
        observed_at=seen,
        ready=True,
        labels=labels | ({"nvidia.com/gpu.replicas": "4"} if name == SHARED else {}),
        info={"kubeletVersion": "v1.36.1"},
        capacity={name: count},
        allocatable={name: count},
        is_gpu_node=True,
    )


def _agent(node: Node, number: int, now: datetime) -> AgentState:
    silent = number % 10 == 9
    return AgentState(
        node=node,
        status=AgentState.Status.UNREACHABLE if silent else AgentState.Status.OK,
        reason="It does not answer." if silent else "",
        since=now - timedelta(hours=1),
        reported_at=now - timedelta(seconds=3600 if silent else 8),
        driver_version="570.124.06",
    )


def _gpu(node: Node, number: int, index: int, now: datetime) -> Gpu:
    used = (number * 7 + index * 11) % 100
    return Gpu(
        node=node,
        uuid=f"GPU-{number:08x}-0000-4000-8000-{index:012x}",
        index=index,
        name="NVIDIA H100 80GB HBM3",
        serial=f"165{number:06}{index:02}",
        memory_kind="dedicated",
        memory_total_bytes=MEMORY_BYTES,
        memory_used_bytes=MEMORY_BYTES * used // 100,
        mig_mode_current=number % 10 == 0,
        state_since=now,
        first_seen=now,
        read_at=now - timedelta(seconds=3600 if number % 10 == 9 else 8),
        utilization_percent=None if number % 10 == 0 else used,
        temperature_celsius=30 + used // 2,
        power_watts=100.0 + 5 * used,
    )


def _instance(gpu: Gpu, start: int, size: int) -> MigInstance:
    return MigInstance(
        gpu=gpu,
        uuid=f"MIG-{start}-{gpu.uuid}",
        profile="2g.20gb",
        placement_start=start,
        placement_size=size,
        memory_total_bytes=MEMORY_BYTES // 4,
        memory_used_bytes=MEMORY_BYTES // 16,
    )


def _held(
    nodes: list[Node], cards: list[Gpu], instances: list[MigInstance]
) -> Iterable[tuple[Pod, PodDevice]]:
    by_pk = {node.pk: node for node in nodes}
    for instance in instances[::2]:
        where = {"mig_uuid": instance.uuid}
        yield _pod(by_pk[instance.gpu.node_id], instance.uuid, MIG, where)
    for gpu in cards:
        node = by_pk[gpu.node_id]
        if gpu.mig_mode_current or gpu.index % 2:
            continue
        shared = SHARED in node.capacity
        on: dict[str, Any] = {"gpu_uuid": gpu.uuid, "slot": 0 if shared else None}
        yield _pod(node, gpu.uuid, SHARED if shared else GPU, on)


def _pod(node: Node, name: str, resource: str, where: dict[str, Any]) -> tuple[Pod, PodDevice]:
    namespace = f"team-{node.pk % 12}"
    pod = Pod(
        cluster=node.cluster,
        uid=f"pod-{name}",
        namespace=namespace,
        name=f"train-{name.lower()}",
        node_name=node.name,
        phase="Running",
        requests={resource: 1},
        created_at=node.observed_at,
        bound_at=node.observed_at,
        observed_at=node.observed_at,
    )
    device = PodDevice(
        node=node,
        namespace=namespace,
        pod_name=pod.name,
        container="main",
        resource=resource,
        device_id=name,
        **where,
    )
    return pod, device
