"""From rows to facts: everything stored about nodes, gathered for `planning.counting.account`.

A fixed number of queries, however many nodes. Pages, API and the recount all start here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.conf import settings
from django.db.models import Q

from gpuadmin.fleet.models import AgentState, Cluster, Gpu, Node
from gpuadmin.fleet.rows import cards_of, instances_of
from gpuadmin.planning.counting import account
from gpuadmin.planning.facts import (
    CardFact,
    HeldFact,
    InstanceFact,
    NodeAccount,
    NodeFacts,
    PodFact,
    Policy,
    TaintFact,
)
from gpuadmin.workloads.models import Pod, PodDevice

Row = TypeVar("Row", Gpu, PodDevice)
FINISHED = ("Succeeded", "Failed")
# What counting needs nothing of; read when somebody asks.
NOT_COUNTED = ("processes", "unreadable_processes")  # of a card
NOT_COUNTED_OF_NODES = ("conditions", "info", "ready_reason")
_COUNTED_OF_PODS = ("id", "cluster", "namespace", "name", "node_name", "phase", "requests")
_NOT_COUNTED_OF_PODS = {f.name for f in Pod._meta.concrete_fields} - set(_COUNTED_OF_PODS)


@dataclass(frozen=True)
class NodeRecord:
    """One node with all that hangs on it. ``pods`` is None when pods may not be listed."""

    node: Node
    agent: AgentState | None
    gpus: tuple[Gpu, ...]
    devices: tuple[PodDevice, ...]
    pods: tuple[Pod, ...] | None
    facts: NodeFacts
    account: NodeAccount

    @property
    def agent_current(self) -> bool:
        """Whether the last answer of the agent was a report."""
        return self.agent is not None and self.agent.status == AgentState.Status.OK


def policy() -> Policy:
    """The thresholds of the settings."""
    return Policy(
        busy_percent=settings.BUSY_PERCENT,
        idle_seconds=settings.IDLE_AFTER_SECONDS,
        tolerated_taints=frozenset(settings.TOLERATED_TAINTS),
    )


def records(
    cluster: Cluster, now: datetime, *, names: Iterable[str] | None = None, lean: bool = False
) -> list[NodeRecord]:
    """Present nodes by name, each counted. ``names`` limits to some nodes; ``lean`` reads at first
    only what counting needs."""
    nodes = Node.objects.filter(cluster=cluster, gone_at__isnull=True)
    if names is not None:
        nodes = nodes.filter(name__in=list(names))
    found = instances_of(nodes.order_by("name"), without=NOT_COUNTED_OF_NODES if lean else ())
    here = Q(node__in=nodes.values("pk"))
    agents = {agent.node_id: agent for agent in instances_of(AgentState.objects.filter(here))}
    gpus = _by_node(cards_of(Gpu.objects.filter(here), without=NOT_COUNTED))
    devices = _by_node(instances_of(PodDevice.objects.filter(here)))
    known = cluster.pods_observed_at is not None and not cluster.pods_forbidden
    pods = _pods(cluster, found if names is not None else None, lean=lean) if known else None
    thresholds = policy()
    return [
        _record(
            node,
            agents.get(node.pk),
            gpus.get(node.pk, []),
            devices.get(node.pk, []),
            None if pods is None else pods.get(node.name, []),
            now,
            thresholds,
        )
        for node in found
    ]


def _by_node(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.node_id].append(row)
    return found


def _pods(cluster: Cluster, nodes: list[Node] | None, *, lean: bool) -> dict[str, list[Pod]]:
    """Pods that count, by node: bound, present and not finished (C04, C07). None: on all nodes."""
    found: dict[str, list[Pod]] = defaultdict(list)
    bound = Pod.objects.filter(cluster=cluster, gone_at__isnull=True).exclude(node_name="")
    if nodes is not None:
        bound = bound.filter(node_name__in=[node.name for node in nodes])
    running = bound.exclude(phase__in=FINISHED).order_by("namespace", "name")
    for pod in instances_of(running, without=_NOT_COUNTED_OF_PODS if lean else ("tolerations",)):
        found[pod.node_name].append(pod)
    return found


def _record(
    node: Node,
    agent: AgentState | None,
    gpus: list[Gpu],
    devices: list[PodDevice],
    pods: list[Pod] | None,
    now: datetime,
    thresholds: Policy,
) -> NodeRecord:
    current = agent is not None and agent.status == AgentState.Status.OK
    devices = _of_present_pods(devices, pods) if current or pods is not None else []
    facts = _facts(node, agent, gpus, devices, pods, now)
    return NodeRecord(
        node=node,
        agent=agent,
        gpus=tuple(gpus),
        devices=tuple(devices),
        pods=None if pods is None else tuple(pods),
        facts=facts,
        account=account(facts, thresholds),
    )


def _of_present_pods(devices: list[PodDevice], pods: list[Pod] | None) -> list[PodDevice]:
    """Without those of pods that are gone or finished: the report may be older than the API's word,
    and older kubelets list finished pods, too (contracts.md 5.1).
    """
    if pods is None:
        return devices
    present = {(pod.namespace, pod.name) for pod in pods}
    return [device for device in devices if (device.namespace, device.pod_name) in present]


def _facts(
    node: Node,
    agent: AgentState | None,
    gpus: list[Gpu],
    devices: list[PodDevice],
    pods: list[Pod] | None,
    now: datetime,
) -> NodeFacts:
    reported = agent is not None and agent.reported_at is not None
    # An old report that no list of pods confirms says nothing of who holds what now.
    confirmed = pods is not None or (agent is not None and agent.status == AgentState.Status.OK)
    knows_holders = reported and confirmed and agent is not None and not agent.pods_error
    return NodeFacts(
        name=node.name,
        ready=node.ready,
        unschedulable=node.unschedulable,
        taints=tuple(TaintFact(t["key"], t["effect"]) for t in node.taints),
        capacity=node.capacity,
        allocatable=node.allocatable,
        labels=node.labels,
        pods=None
        if pods is None
        else tuple(PodFact(p.namespace, p.name, p.requests) for p in pods),
        cards=tuple(_card(gpu, agent, now) for gpu in gpus) if reported else None,
        held=tuple(_held(device) for device in devices) if knows_holders else None,
    )


def _card(gpu: Gpu, agent: AgentState | None, now: datetime) -> CardFact:
    current = (
        agent is not None
        and agent.status == AgentState.Status.OK
        and gpu.read_at == agent.reported_at
    )
    return CardFact(
        uuid=gpu.uuid,
        index=gpu.index,
        state=gpu.state,  # type: ignore[arg-type]  # the choices are the literal's values
        current=current,
        utilization_percent=gpu.utilization_percent if current else None,
        idle_for_seconds=(now - gpu.idle_since).total_seconds() if gpu.idle_since else None,
        mig=bool(gpu.mig_mode_current),
        instances=tuple(InstanceFact(i.uuid, i.profile) for i in gpu.instances.all())
        if gpu.mig_mode_current
        else (),
    )


def _held(device: PodDevice) -> HeldFact:
    return HeldFact(
        namespace=device.namespace,
        pod=device.pod_name,
        resource=device.resource,
        gpu_uuid=device.gpu_uuid or None,
        mig_uuid=device.mig_uuid or None,
        slot=device.slot,
    )
