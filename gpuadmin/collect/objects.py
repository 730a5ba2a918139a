"""Applying changes of nodes and pods: staged, decoded one by one, one transaction a batch.

One unreadable object is a finding, not a failure (C36).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import msgspec

from gpuadmin.agents.discovery import AgentPod, agent_pod
from gpuadmin.collect.convert import node_columns, pod_columns
from gpuadmin.fleet.models import AgentState, Cluster, Node
from gpuadmin.fleet.services import FindingFact, forget_nodes, set_agent, store_node
from gpuadmin.kube import structs
from gpuadmin.workloads.models import Pod
from gpuadmin.workloads.services import forget_pods, store_pod

T = TypeVar("T", structs.Node, structs.Pod)
UNREADABLE = "unreadable_object"


@dataclass
class Applied:
    """What a batch did: nodes to count again; per uid, whether the object could be read."""

    dirty: set[str] = field(default_factory=set)
    unreadable: dict[str, FindingFact | None] = field(default_factory=dict)


def read_object(raw: msgspec.Raw, kind: type[T], word: str, applied: Applied) -> T | None:
    """Decode one object; on failure note it under what name it has."""
    try:
        found = msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fact = _unreadable(raw, word, str(error))
        applied.unreadable[fact.object_uid] = fact
        return None
    applied.unreadable[found.metadata.uid] = None
    return found


def _unreadable(raw: msgspec.Raw, word: str, error: str) -> FindingFact:
    try:
        meta = msgspec.json.decode(raw, type=structs.Identity).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        meta = structs.Identity.Meta()
    name = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    return FindingFact(
        code=UNREADABLE,
        severity="warning",
        object_kind=word,
        object_uid=meta.uid or name,
        object_name=name,
        sentence=f"The {word} {name} can't be read and is left out",
        advice=f"Its object is not as the API promises: {error[:300]}",
    )


def apply_nodes(
    cluster: Cluster,
    raws: Iterable[msgspec.Raw],
    applied: Applied,
    now: datetime,
    *,
    complete: bool = False,
) -> None:
    """Store nodes; with ``complete`` those not among them are gone (an empty list is 0: C38 t3)."""
    seen = set()
    for raw in raws:
        node = read_object(raw, structs.Node, "node", applied)
        if node is None:
            seen.add(_uid(raw))
            continue
        seen.add(node.metadata.uid)
        if store_node(cluster, node.metadata.uid, node_columns(node), now):
            applied.dirty.add(node.metadata.name)
    if complete:
        stored = Node.objects.filter(cluster=cluster, gone_at__isnull=True)
        forget_nodes(cluster, now, uids=stored.exclude(uid__in=seen).values_list("uid", flat=True))


def forget_node(cluster: Cluster, raw: msgspec.Raw, now: datetime) -> None:
    """One node was deleted."""
    forget_nodes(cluster, now, uids=[_uid(raw)])


class PodBook:
    """Applies pods, and keeps which of them are our agents: node name → `AgentPod`."""

    def __init__(self, namespace: str, daemonset_uid: str | None) -> None:
        self.namespace = namespace
        self.daemonset_uid = daemonset_uid
        self.agents: dict[str, AgentPod] = {}

    def apply(
        self,
        cluster: Cluster,
        raws: Iterable[msgspec.Raw],
        applied: Applied,
        now: datetime,
        *,
        complete: bool = False,
    ) -> None:
        """Store pods that ask for accelerators; with ``complete`` the others no longer exist."""
        seen: set[str] = set()
        if complete:
            self.agents.clear()
        for raw in raws:
            pod = read_object(raw, structs.Pod, "pod", applied)
            if pod is None:
                seen.add(_uid(raw))
                continue
            seen.add(pod.metadata.uid)
            self._note_agent(pod)
            columns = pod_columns(pod)
            if columns is not None:
                applied.dirty |= store_pod(cluster, pod.metadata.uid, columns, now)
        if complete:
            stored = Pod.objects.filter(cluster=cluster, gone_at__isnull=True)
            missing = stored.exclude(uid__in=seen).values_list("uid", flat=True)
            applied.dirty |= forget_pods(cluster, missing, now)

    def forget(self, cluster: Cluster, raw: msgspec.Raw, applied: Applied, now: datetime) -> None:
        """One pod was deleted."""
        uid = _uid(raw)
        self.agents = {n: a for n, a in self.agents.items() if a.pod_uid != uid}
        applied.dirty |= forget_pods(cluster, [uid], now)

    def _note_agent(self, pod: structs.Pod) -> None:
        found = agent_pod(pod, namespace=self.namespace, daemonset_uid=self.daemonset_uid)
        if found is None:
            return
        known = self.agents.get(found.node_name)
        # While one pod of the DaemonSet replaces another, the one that has an address speaks.
        if known and known.pod_uid != found.pod_uid and known.address and not found.address:
            return
        self.agents[found.node_name] = found


def store_agents(cluster: Cluster, book: PodBook, why_none: str, now: datetime) -> None:
    """Bring every GPU node's agent state in line with the pods; the poll says how they answer."""
    nodes = Node.objects.filter(cluster=cluster, gone_at__isnull=True, is_gpu_node=True)
    for node in nodes.select_related("agent"):
        _store_agent(node, book.agents.get(node.name), why_none, now)


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
        set_agent(
            node,
            AgentState.Status.NOT_RUNNING,
            f"{pod.problem[0].upper()}{pod.problem[1:]}.",
            now,
            **place,
        )
    elif moved or state is None or state.status in ("missing", "not_running"):
        set_agent(node, AgentState.Status.UNREACHABLE, "It has not been asked yet.", now, **place)


def _uid(raw: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(raw, type=structs.Identity).metadata.uid
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
