"""Fresh reads of the cluster for previews and runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings

from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.kube import errors, structs
from gpuadmin.kube.client import KubeClient, decode, path_of
from gpuadmin.operations.errors import TargetGone
from gpuadmin.planning.facts import NodeFacts
from gpuadmin.planning.node_preview import NodeNow, PodNow, Snapshot
from gpuadmin.planning.plan import PlannedPod
from gpuadmin.workloads.amounts import advertised, pod_requests


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
    """The nodes of these uids and every pod of the cluster, each list whole or not at all."""
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
        listed = client.list_all("/api/v1/pods", _pod_now).items
    except errors.Forbidden:
        return Snapshot(tuple(nodes), None, tuple(missing))
    pods = [pod for pod in listed if pod]
    return Snapshot(tuple(nodes), tuple(pods), tuple(missing), len(listed) - len(pods))


def read_pods_on(client: KubeClient, node_name: str) -> list[PodNow]:
    """The pods that are bound to one node."""
    on_node = {"fieldSelector": f"spec.nodeName={node_name}"}
    return [pod for pod in client.list_all("/api/v1/pods", _pod_now, on_node).items if pod]


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
