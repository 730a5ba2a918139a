"""Applying changes of nodes and pods: staged, decoded one by one, one transaction a batch.

One unreadable object is a finding, not a failure (C36).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DataError, IntegrityError, transaction
from django.db.models import Q

from gpuadmin.agents.discovery import AgentPod, agent_pod, daemonset_uid
from gpuadmin.collect.convert import node_columns, pod_columns
from gpuadmin.fleet.fitting import fit
from gpuadmin.fleet.models import AgentState, Cluster, Node
from gpuadmin.fleet.services import FindingFact, forget_nodes, set_agent, store_node
from gpuadmin.kube import structs
from gpuadmin.kube.objects import Unreadable
from gpuadmin.workloads.models import Pod
from gpuadmin.workloads.services import forget_pods, store_pods

UNREADABLE = "unreadable_object"
NO_GPU_NODE = "The node has no accelerators."
# What storing one odd object may raise; trouble of the database itself is none of these.
UNSTORABLE = (DataError, IntegrityError, ValueError, OverflowError)


@dataclass
class Applied:
    """What a batch did: nodes to count again; per uid, whether the object could be read."""

    dirty: set[str] = field(default_factory=set)
    unreadable: dict[str, FindingFact | None] = field(default_factory=dict)

    def note(self, found: structs.Node | structs.Pod | Unreadable, word: str) -> None:
        """Remember that an object can, or can't, be read."""
        if isinstance(found, Unreadable):
            self.unreadable[found.uid or found.name] = _unreadable(found, word)
        else:
            self.unreadable[found.metadata.uid] = None

    def refuse(self, uid: str, name: str, word: str, error: Exception) -> None:
        """Remember that an object can be read, but not stored."""
        self.unreadable[uid] = _unreadable(Unreadable(uid, name, f"not storable: {error}"), word)


def uid_of(found: structs.Node | structs.Pod | Unreadable) -> str:
    """An object's uid; empty when not even that could be read."""
    return found.uid if isinstance(found, Unreadable) else found.metadata.uid


def _unreadable(found: Unreadable, word: str) -> FindingFact:
    return FindingFact(
        code=UNREADABLE,
        severity="warning",
        object_kind=word,
        object_uid=found.uid or found.name,
        object_name=found.name,
        sentence=f"The {word} {found.name} can't be read and is left out",
        advice=f"Its object is not as the API promises: {found.error[:300]}",
    )


def apply_nodes(
    cluster: Cluster,
    nodes: Iterable[structs.Node | Unreadable],
    applied: Applied,
    now: datetime,
    *,
    complete: bool = False,
) -> None:
    """Store nodes; with ``complete`` those not among them are gone (an empty list is 0: C38 t3)."""
    seen = set()
    for node in nodes:
        seen.add(uid_of(node))
        applied.note(node, "node")
        if isinstance(node, Unreadable):
            continue
        try:
            with transaction.atomic():
                changed = store_node(cluster, uid_of(node), fit(Node, node_columns(node)), now)
        except UNSTORABLE as error:
            applied.refuse(uid_of(node), node.metadata.name, "node", error)
            continue
        if changed:
            applied.dirty.add(node.metadata.name)
    if complete:
        stored = Node.objects.filter(cluster=cluster, gone_at__isnull=True)
        forget_nodes(cluster, now, uids=stored.exclude(uid__in=seen).values_list("uid", flat=True))


def _store_pods(
    cluster: Cluster, pods: Mapping[str, dict[str, Any]], applied: Applied, now: datetime
) -> None:
    """All at once; where the database refuses that, one by one, so that only the bad one is out."""
    try:
        with transaction.atomic():
            applied.dirty |= store_pods(cluster, pods, now)
    except UNSTORABLE as error:
        if len(pods) == 1:
            [(uid, columns)] = pods.items()
            name = f"{columns['namespace']}/{columns['name']}"
            applied.refuse(uid, name, "pod", error)
            return
        for uid, columns in pods.items():
            _store_pods(cluster, {uid: columns}, applied, now)


class PodBook:
    """Applies pods, and keeps those that a DaemonSet of our namespace controls: ours are among
    them as soon as it is known which DaemonSet is ours."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._of_daemonsets: dict[str, structs.Pod] = {}

    def apply(
        self,
        cluster: Cluster,
        pods: Iterable[structs.Pod | Unreadable],
        applied: Applied,
        now: datetime,
        *,
        complete: bool = False,
    ) -> None:
        """Store pods that ask for accelerators; with ``complete`` the others no longer exist."""
        seen: set[str] = set()
        asking: dict[str, dict[str, Any]] = {}
        if complete:
            self._of_daemonsets.clear()
        for pod in pods:
            seen.add(uid_of(pod))
            applied.note(pod, "pod")
            if isinstance(pod, Unreadable):
                continue
            if pod.metadata.namespace == self.namespace and daemonset_uid(pod):
                self._of_daemonsets[pod.metadata.uid] = pod
            columns = pod_columns(pod)
            if columns is not None:
                asking[pod.metadata.uid] = fit(Pod, columns)
        _store_pods(cluster, asking, applied, now)
        if complete:
            stored = Pod.objects.filter(cluster=cluster, gone_at__isnull=True)
            missing = set(stored.values_list("uid", flat=True)) - seen
            applied.dirty |= forget_pods(cluster, missing, now)

    def forget(self, cluster: Cluster, uid: str, applied: Applied, now: datetime) -> None:
        """One pod was deleted."""
        self._of_daemonsets.pop(uid, None)
        applied.unreadable[uid] = None
        applied.dirty |= forget_pods(cluster, [uid], now)

    @property
    def daemonsets(self) -> set[str]:
        """The uids of the DaemonSets that have pods in our namespace."""
        return {uid for pod in self._of_daemonsets.values() if (uid := daemonset_uid(pod))}

    def agents(self, ours: str | None) -> dict[str, AgentPod]:
        """Our agents by node name, ``ours`` being our DaemonSet's uid."""
        found: dict[str, AgentPod] = {}
        for pod in self._of_daemonsets.values():
            agent = agent_pod(
                pod, namespace=self.namespace, ours=ours, loopback=settings.LOOPBACK_AGENTS
            )
            if agent is None:
                continue
            # While one pod of the DaemonSet replaces another, the one that has an address speaks.
            known = found.get(agent.node_name)
            if known is None or agent.address or not known.address:
                found[agent.node_name] = agent
        return found


def store_agents(
    cluster: Cluster, agents: Mapping[str, AgentPod], why_none: str, now: datetime
) -> None:
    """Bring the agents of GPU nodes in line with the pods; the poll says how they answer.

    A node that is no GPU node any more is not asked any more: its old address may be another's.
    """
    present = Node.objects.filter(cluster=cluster, gone_at__isnull=True)
    asked = Q(agent__address__isnull=False)
    for node in present.filter(Q(is_gpu_node=True) | asked).select_related("agent"):
        pod = agents.get(node.name) if node.is_gpu_node else None
        _store_agent(node, pod, why_none if node.is_gpu_node else NO_GPU_NODE, now)


def _store_agent(node: Node, pod: AgentPod | None, why_none: str, now: datetime) -> None:
    state: AgentState | None = getattr(node, "agent", None)
    if pod is None:
        if state is None or state.status != AgentState.Status.MISSING or state.reason != why_none:
            set_agent(node, AgentState.Status.MISSING, why_none, now, address=None, port=None)
        return
    place = {
        "pod_uid": pod.pod_uid,
        "pod_name": pod.pod_name,
        "address": pod.address,
        "port": pod.port,
    }
    moved = state is None or any(getattr(state, k) != v for k, v in place.items())
    if pod.problem:
        reason = f"{pod.problem[0].upper()}{pod.problem[1:]}."
        if moved or state is None or state.reason != reason:
            set_agent(node, AgentState.Status.NOT_RUNNING, reason, now, **place)
    elif moved or state is None or state.status in ("missing", "not_running"):
        set_agent(node, AgentState.Status.UNREACHABLE, "It has not been asked yet.", now, **place)
