"""A believable fleet in the database: the demo's twelve nodes, without a cluster behind them.

The inventory and the tenants are the simulator's, so pages are tested on what the demo shows.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from django.contrib.auth.models import Group

from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role
from gpuadmin.collect.findings import refresh_findings
from gpuadmin.fleet.models import AgentState, Cluster, Gpu, Heartbeat, MigInstance, Node
from gpuadmin.ledger.models import XidEvent
from gpuadmin.workloads.models import Pod, PodDevice
from simulator.fleet.inventory import GPU, INVENTORY, NodeSpec, hardware, made_up_id
from simulator.fleet.tenants import Tenant, tenants
from simulator.hardware import Card

LOST = ("h100-02", 7)
UNHELD_WATTS = 60.0
_UNITS = {"d": 86400, "h": 3600, "m": 60}


def build(now: datetime, *, name: str = "lab-west") -> Cluster:
    """Everything at once; numbers are those of the mockups where the mockups give one."""
    cluster = Cluster.objects.create(
        name=name,
        server="https://10.0.0.1:6443",
        version="v1.36.1",
        account="system:serviceaccount:gpuadmin:gpuadmin",
        simulated=True,
        nodes_observed_at=now - timedelta(seconds=3),
        pods_observed_at=now - timedelta(seconds=3),
    )
    beat(cluster, now)
    people = tenants()
    for spec in INVENTORY:
        _node(cluster, spec, [t for t in people if t.node == spec.name], now)
    for tenant in people:
        _pod(cluster, tenant, now)
    refresh_findings(cluster, now)
    return cluster


def beat(cluster: Cluster, now: datetime) -> None:
    """All cycles did their work just now."""
    for kind, ago, every in (("watch-nodes", 3, 15), ("watch-pods", 3, 15), ("poll", 8, 15)):
        at = now - timedelta(seconds=ago)
        Heartbeat.objects.update_or_create(
            cluster=cluster,
            kind=kind,
            defaults={"at": at, "ok_at": at, "ok": True, "expected_seconds": every},
        )


def person(name: str, role: Role, password: str | None = None) -> User:
    """Somebody who can sign in; with Role.NONE without any right."""
    user = User.objects.create_user(name, password=password)
    if role is not Role.NONE:
        user.groups.add(Group.objects.get_or_create(name=role.label)[0])
    return user


def _node(cluster: Cluster, spec: NodeSpec, held: list[Tenant], now: datetime) -> None:
    capacity = _capacity(spec)
    node = Node.objects.create(
        cluster=cluster,
        uid=str(made_up_id("node", spec.name)),
        name=spec.name,
        observed_at=now - timedelta(seconds=3),
        ready=True,
        unschedulable=spec.cordoned,
        labels={**_labels(spec), **spec.labels},
        taints=[{"key": GPU, "value": "present", "effect": "NoSchedule"}] if spec.tainted else [],
        conditions=[
            {"type": "Ready", "status": "True", "message": "kubelet is posting ready status"}
        ],
        info={"kubeletVersion": "v1.36.1", "osImage": "Debian GNU/Linux 13"},
        capacity=capacity,
        allocatable={**capacity, **({GPU: capacity[GPU] - 1} if spec.name == LOST[0] else {})},
        is_gpu_node=True,
    )
    reported = now - timedelta(seconds=8) if spec.agent else None
    AgentState.objects.create(
        node=node,
        status=AgentState.Status.OK if spec.agent else AgentState.Status.MISSING,
        reason="" if spec.agent else "The DaemonSet's node selector does not match this node",
        since=now - timedelta(days=4),
        reported_at=reported,
        driver_version=spec.driver if spec.agent else "",
        cuda_version="12.8" if spec.agent else "",
    )
    if spec.agent:
        gpus = [_gpu(node, spec, card, held, now) for card in hardware(spec).cards]
        _devices(node, gpus, held)


def _labels(spec: NodeSpec) -> dict[str, str]:
    labels = {
        "nvidia.com/gpu.product": spec.model.name.replace(" ", "-"),
        "nvidia.com/gpu.count": str(spec.cards),
        "kubernetes.io/hostname": spec.name,
    }
    for resource, slots in spec.replicas.items():
        labels[f"nvidia.com/{resource.removeprefix('nvidia.com/')}.replicas"] = str(slots)
    return labels


def _capacity(spec: NodeSpec) -> dict[str, int]:
    if not spec.plugin:
        return {GPU: 0}
    counts: Counter[str] = Counter({GPU: spec.cards - len(spec.cuts)})
    for cut in spec.cuts.values():
        counts.update(f"nvidia.com/mig-{profile}" for profile, _ in cut)
    shared = {}
    for name, count in counts.items():
        slots = spec.replicas.get(name, 1)
        shared[name + (".shared" if slots > 1 else "")] = count * slots
    return {**shared, **spec.stale} if spec.stale else shared


def _gpu(node: Node, spec: NodeSpec, card: Card, held: list[Tenant], now: datetime) -> Gpu:
    load, memory = _load(held, card.index)
    lost = (spec.name, card.index) == LOST
    mine = [t for t in held if str(card.index) in t.cards.split(",")]
    read = now - (timedelta(hours=7, minutes=20) if lost else timedelta(seconds=8))
    total = None if card.unified_memory else card.memory_total_bytes
    gpu = Gpu.objects.create(
        node=node,
        uuid=card.uuid,
        index=card.index,
        name=card.name,
        pci_bus_id=card.pci_bus_id,
        memory_kind="unified" if card.unified_memory else "dedicated",
        memory_total_bytes=total,
        memory_used_bytes=None if total is None else total * memory // 100,
        mig_mode_current=card.mig_current if card.mig_capable else None,
        state=Gpu.State.LOST if lost else Gpu.State.OK,
        error="fell off the bus (XID 79)" if lost else "",
        state_since=read,
        first_seen=now - timedelta(days=30),
        read_at=read,
        utilization_percent=None if card.mig_current else load,
        temperature_celsius=33 + load * 40 // 100,
        power_watts=UNHELD_WATTS + load * (card.power_limit_watts - UNHELD_WATTS) / 110,
        power_limit_watts=card.power_limit_watts,
        idle_since=now - age_of(mine[0]) if mine and load == 0 else None,
    )
    if lost:
        XidEvent.objects.create(
            node=node, at=read, gpu_uuid=card.uuid, code=79, agent_instance="a", sequence=1
        )
    for instance in card.instances:
        MigInstance.objects.create(
            gpu=gpu,
            uuid=instance.uuid,
            profile=instance.profile,
            placement_start=instance.start,
            placement_size=instance.size,
            memory_total_bytes=instance.memory_total_bytes,
            memory_used_bytes=instance.memory_total_bytes * 62 // 100,
        )
    return gpu


def _load(held: list[Tenant], index: int) -> tuple[int, int]:
    """Utilisation and memory of a card in percent: the sum over those who hold it."""
    load = memory = 0
    for tenant in held:
        cards = tenant.cards.split(",")
        if str(index) in cards:
            place = cards.index(str(index))
            load += _nth(tenant.load, place)
            memory += _nth(tenant.memory, place)
    return min(load, 100), min(memory, 100)


def _nth(text: str, place: int) -> int:
    values = [int(value) for value in text.split(",") if value]
    return values[min(place, len(values) - 1)] if values else 0


def _devices(node: Node, gpus: list[Gpu], held: list[Tenant]) -> None:
    free = {gpu.uuid: list(gpu.instances.all()) for gpu in gpus}
    slots: Counter[str] = Counter()
    for tenant in held:
        for index in map(int, tenant.cards.split(",")):
            gpu = gpus[index]
            shared = tenant.resource.endswith(".shared")
            where = {"gpu_uuid": gpu.uuid}
            if "mig-" in tenant.resource:
                profile = tenant.resource.partition("mig-")[2].removesuffix(".shared")
                found = next(i for i in free[gpu.uuid] if i.profile == profile)
                if not shared:
                    free[gpu.uuid].remove(found)
                where = {"mig_uuid": found.uuid}
            PodDevice.objects.create(
                node=node,
                namespace=tenant.namespace,
                pod_name=tenant.name,
                container="main",
                resource=tenant.resource,
                device_id=gpu.uuid,
                slot=slots[gpu.uuid] if shared else None,
                **where,
            )
            slots[gpu.uuid] += 1


def _pod(cluster: Cluster, tenant: Tenant, now: datetime) -> None:
    bound = now - age_of(tenant)
    waits = not tenant.node
    Pod.objects.create(
        cluster=cluster,
        uid=str(made_up_id("pod", tenant.namespace, tenant.name)),
        namespace=tenant.namespace,
        name=tenant.name,
        node_name=tenant.node,
        phase="Pending" if waits else "Running",
        reason="Unschedulable" if waits else "",
        message=(
            "0/12 nodes are available: 3 Insufficient nvidia.com/gpu, 2 were unschedulable. "
            "preemption: 0/12 nodes are available."
            if waits and not tenant.scheduler
            else ""
        ),
        owner_kind=tenant.owner,
        owner_name=tenant.name.rpartition("-")[0],
        requests={tenant.resource: tenant.count},
        created_at=bound,
        bound_at=None if waits else bound,
        observed_at=now,
    )


def age_of(tenant: Tenant) -> timedelta:
    """``2h14m`` as a duration."""
    seconds, number = 0, ""
    for letter in tenant.age:
        if letter.isdigit():
            number += letter
        else:
            seconds, number = seconds + int(number) * _UNITS[letter], ""
    return timedelta(seconds=seconds)
