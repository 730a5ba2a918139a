"""Which agent is on which node, as the list of pods says. How they answer is the poll's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from django.db.models import Q

from gpuadmin.agents.discovery import AgentPod
from gpuadmin.collect.reading import SeenPod
from gpuadmin.fleet.models import AgentState, Cluster, Node
from gpuadmin.fleet.nodes import place_agents

LOOK_AGAIN = timedelta(seconds=10)  # for our DaemonSet, while there is none
NO_GPU_NODE = "The node has no accelerators."
NOT_ASKED = "It has not been asked yet."


class AgentBook:
    """Keeps the pods that a DaemonSet of our namespace controls: ours are among them as soon as it
    is known which DaemonSet is ours. ``find_daemonset()`` reads its uid, or why there is none."""

    def __init__(self, find_daemonset: Callable[[], tuple[str | None, str]]) -> None:
        self._find_daemonset = find_daemonset
        self._pods: dict[str, SeenPod] = {}
        self._ours: str | None = None
        self._why_none = ""
        self._looked_at: datetime | None = None
        self._looked_among: set[str] = set()
        self._changed = True

    def note(self, pods: Iterable[SeenPod], *, complete: bool = False) -> None:
        """These pods are there; with ``complete`` there are no others, and we look again whose
        they are."""
        if complete:
            self._pods.clear()
            self._looked_at, self._changed = None, True
        for pod in pods:
            if pod.daemonset:
                self._pods[pod.uid] = pod
                self._changed = True

    def forget(self, uids: Iterable[str]) -> None:
        """These pods were deleted."""
        for uid in uids:
            self._changed |= self._pods.pop(uid, None) is not None

    def store(self, cluster: Cluster, now: datetime, *, nodes_changed: bool) -> None:
        """Bring the agents of GPU nodes in line with the pods, where anything has changed."""
        if self._look_for_daemonset(now) or self._changed or nodes_changed:
            _store(cluster, self._agents(), self._why_none, now)
            self._changed = False

    def _look_for_daemonset(self, now: datetime) -> bool:
        """Read our DaemonSet's uid where it may be another now; whether what we know is new.

        After each list of pods; at once when a DaemonSet that we have not seen has pods in our
        namespace (ours was made, or made anew); and every 10 s while there is none, since the
        right to read it may have come.
        """
        among = {pod.daemonset for pod in self._pods.values()}
        stranger = bool(among - self._looked_among - {self._ours})
        if self._looked_at is not None and not stranger:
            waits = now - self._looked_at < LOOK_AGAIN
            if self._ours is not None or waits:
                return False
        before = self._ours, self._why_none
        self._ours, self._why_none = self._find_daemonset()
        self._looked_at, self._looked_among = now, among
        return before != (self._ours, self._why_none)

    def _agents(self) -> dict[str, AgentPod]:
        found: dict[str, AgentPod] = {}
        for pod in self._pods.values():
            agent = pod.agent
            if agent is None or pod.daemonset != self._ours:
                continue
            # While one pod of the DaemonSet replaces another, the one that has an address speaks.
            known = found.get(agent.node_name)
            if known is None or agent.address or not known.address:
                found[agent.node_name] = agent
        return found


def _store(cluster: Cluster, agents: Mapping[str, AgentPod], why_none: str, now: datetime) -> None:
    """What is no GPU node any more is asked no more: its old address may be another's."""
    present = Node.objects.filter(cluster=cluster, gone_at__isnull=True)
    asked = Q(agent__address__isnull=False)
    nodes = present.filter(Q(is_gpu_node=True) | asked)
    known = {state.node_id: state for state in AgentState.objects.filter(node__in=nodes)}
    changed = []
    for pk, name, is_gpu_node in nodes.values_list("pk", "name", "is_gpu_node").iterator():
        pod = agents.get(name) if is_gpu_node else None
        state = _changed(known.get(pk), pod, why_none if is_gpu_node else NO_GPU_NODE)
        if state is not None:
            before = known.get(pk)
            same = before is not None and before.status == state.status
            state.node_id, state.since = pk, before.since if before and same else now
            changed.append(state)
    place_agents(changed)


def _changed(state: AgentState | None, pod: AgentPod | None, why_none: str) -> AgentState | None:
    """What is to be stored of one node's agent; None when nothing has changed."""
    status = AgentState.Status
    if pod is None:
        if state is not None and (state.status, state.reason) == (status.MISSING, why_none):
            return None
        return AgentState(status=status.MISSING, reason=why_none, **_place_of(state))
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
            return AgentState(status=status.NOT_RUNNING, reason=reason, **place)
    elif moved or state is None or state.status in (status.MISSING, status.NOT_RUNNING):
        return AgentState(status=status.UNREACHABLE, reason=NOT_ASKED, **place)
    return None


def _place_of(state: AgentState | None) -> dict[str, str]:
    """Where a missing agent last was: the pod's name stays, its address does not."""
    if state is None:
        return {}
    return {"pod_uid": state.pod_uid, "pod_name": state.pod_name}
