"""Fresh reads of the cluster for previews and runs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.utils import timezone

from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.kube import errors, structs
from gpuadmin.kube.client import KubeClient, decode, path_of
from gpuadmin.operations.errors import TargetGone
from gpuadmin.planning.facts import NodeFacts
from gpuadmin.planning.node_preview import NodeNow, PodNow, Snapshot
from gpuadmin.planning.plan import PlannedPod
from gpuadmin.workloads.amounts import advertised, pod_requests
from gpuadmin.workloads.models import Pod
from gpuadmin.workloads.queries import present_pods

STORED_COUNTS_FOR = timedelta(minutes=5)  # so old may the watcher's rows be to name pods from


class _Spec(structs.Struct):
    taints: list[dict[str, Any]] | None = None
    unschedulable: bool | None = None


class _ManagedFields(structs.Struct):
    manager: str = ""
    fields_v1: dict[str, Any] | None = None


class _Metadata(structs.Metadata):
    managed_fields: list[_ManagedFields] | None = None


class LiveNode(structs.Struct):
    """A node whose taints are kept as the API gave them, so that they are written back so."""

    metadata: _Metadata
    spec: _Spec | None = None
    status: structs.NodeStatus | None = None

    @property
    def taints(self) -> list[dict[str, Any]]:
        return (self.spec and self.spec.taints) or []

    @property
    def unschedulable(self) -> bool:
        return bool(self.spec and self.spec.unschedulable)

    def writer_of(self, field: str) -> str:
        """The field manager that changed a field of the spec last, "" where nobody owns it: it is
        empty, or the API server does not tell. A taint list is atomic: one owner at most.
        """
        for entry in self.metadata.managed_fields or []:
            if f"f:{field}" in (entry.fields_v1 or {}).get("f:spec", {}):
                return entry.manager
        return ""


def read_node(client: KubeClient, uid: str, name: str) -> LiveNode:
    """The node of this uid. Raises ``TargetGone`` where the name is nobody's or another's (C40)."""
    try:
        node = decode(client.get(path_of("api", "v1", "nodes", name)), LiveNode)
    except errors.NotFound:
        raise TargetGone("The node is gone from the cluster.") from None
    if node.metadata.uid != uid:
        raise TargetGone("The node is gone: another machine bears its name now.")
    return node


def read_snapshot(cluster: Cluster, client: KubeClient, uids: Iterable[str]) -> Snapshot:
    """The nodes of these uids and the pods on them, fresh; each list whole or not at all.

    GPU pods elsewhere are our own rows: to list 50,000 pods for each preview is no price to pay.
    """
    wanted = list(uids)
    known = dict(Node.objects.filter(cluster=cluster, uid__in=wanted).values_list("uid", "name"))
    nodes, missing = (
        [],
        [f"There is no node with the uid {uid}." for uid in wanted if uid not in known],
    )
    for uid in wanted:
        if uid in known:
            try:
                nodes.append(_node_now(read_node(client, uid, known[uid])))
            except TargetGone as error:
                missing.append(f"{known[uid]}: {error}")
    try:
        listed = [pod for node in nodes for pod in _list_pods_on(client, node.name)]
    except errors.Forbidden:
        return Snapshot(tuple(nodes), None, _elsewhere(cluster, nodes), tuple(missing))
    pods = tuple(pod for pod in listed if pod)
    return Snapshot(
        tuple(nodes), pods, _elsewhere(cluster, nodes), tuple(missing), len(listed) - len(pods)
    )


def read_pods_on(client: KubeClient, node_name: str) -> list[PodNow]:
    """The pods that are bound to one node."""
    return [pod for pod in _list_pods_on(client, node_name) if pod]


def _list_pods_on(client: KubeClient, node_name: str) -> list[PodNow | None]:
    on_node = {"fieldSelector": f"spec.nodeName={node_name}"}
    return client.list_all("/api/v1/pods", _pod_now, on_node).items


def _elsewhere(cluster: Cluster, nodes: Iterable[NodeNow]) -> tuple[PodNow, ...] | None:
    """GPU pods that are not on these nodes, as stored; None where that is not of late."""
    read_at = cluster.pods_observed_at
    if read_at is None or cluster.pods_forbidden or timezone.now() - read_at > STORED_COUNTS_FOR:
        return None
    others = present_pods(cluster).exclude(node_name__in=[node.name for node in nodes])
    return tuple(map(_stored_pod, others))


def _node_now(node: LiveNode) -> NodeNow:
    status = node.status or structs.NodeStatus()
    ready = next((c.status == "True" for c in status.conditions or [] if c.type == "Ready"), None)
    facts = NodeFacts(
        name=node.metadata.name,
        ready=ready,
        unschedulable=node.unschedulable,
        capacity=advertised(status.capacity),
        allocatable=advertised(status.allocatable),
        labels=node.metadata.labels or {},
    )
    return NodeNow(node.metadata.uid, node.taints, facts)


def _stored_pod(pod: Pod) -> PodNow:
    owner = f"{pod.owner_kind} {pod.owner_name}" if pod.owner_kind else ""
    shown = PlannedPod(
        pod.uid, pod.namespace, pod.name, pod.node_name, owner, pod.phase, pod.requests, ours=False
    )
    return PodNow(shown, msgspec.convert(pod.tolerations, list[structs.Toleration]))


def _pod_now(raw: Any) -> PodNow | None:
    try:
        pod = decode(raw, structs.Pod)
    except errors.BadAnswer:
        return None
    spec, status = pod.spec or structs.PodSpec(), pod.status or structs.PodStatus()
    owner = next((o for o in pod.metadata.owner_references or [] if o.controller), None)
    namespace = pod.metadata.namespace or ""
    shown = PlannedPod(
        uid=pod.metadata.uid,
        namespace=namespace,
        name=pod.metadata.name,
        node=spec.node_name or "",
        owner=f"{owner.kind} {owner.name}" if owner else "",
        phase=status.phase or "Unknown",
        gpu=pod_requests(spec),
        ours=namespace == settings.NAMESPACE
        and owner is not None
        and (owner.kind, owner.name) == ("DaemonSet", settings.AGENT_DAEMONSET),
    )
    return PodNow(shown, spec.tolerations or [])
