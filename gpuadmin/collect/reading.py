"""From one object of a list or a watch to the little that we keep, as soon as it comes.

A list is staged whole before it is applied (C38), so what waits must be small: the row to be
stored, as JSON, for a node and for a pod that asks for accelerators; a uid for every other pod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from django.utils import timezone

from gpuadmin.agents.discovery import AgentPod, agent_pod, daemonset_uid
from gpuadmin.collect.convert import node_columns, pod_columns
from gpuadmin.fleet.fitting import fit
from gpuadmin.fleet.models import Node
from gpuadmin.kube import structs
from gpuadmin.kube.objects import Unreadable, reader
from gpuadmin.planning.labels import MIG_STATE
from gpuadmin.workloads.models import Pod


class SeenNode(msgspec.Struct, frozen=True, gc=False):
    """A node as it will be stored."""

    uid: str
    name: str
    row: bytes


class SeenPod(msgspec.Struct, frozen=True):
    """A pod. ``row`` is None when it asks for no accelerator; ``name`` is for a person.

    ``daemonset`` is the uid of its DaemonSet when that is one of our namespace, and ``agent`` what
    the pod is if that DaemonSet is ours.
    """

    uid: str
    name: str = ""
    row: bytes | None = None
    daemonset: str = ""
    agent: AgentPod | None = None


def node_reader() -> Callable[[msgspec.Raw], SeenNode | Unreadable]:
    """A function that reads one node and never raises."""
    decode = reader(structs.Node)

    def read(raw: msgspec.Raw) -> SeenNode | Unreadable:
        node = decode(raw)
        if isinstance(node, Unreadable):
            return node
        uid, name = node.metadata.uid, node.metadata.name
        row = _row(uid, name, lambda: _node_row(node))
        return row if isinstance(row, Unreadable) else SeenNode(uid, name, row)

    return read


def pod_reader(
    namespace: str, *, loopback: bool = False
) -> Callable[[msgspec.Raw], SeenPod | Unreadable]:
    """A function that reads one pod and never raises; ``namespace`` is our own.

    ``loopback``: an agent may have an address of this machine, as simulated ones do.
    """
    decode = reader(structs.Pod)

    def read(raw: msgspec.Raw) -> SeenPod | Unreadable:
        pod = decode(raw)
        if isinstance(pod, Unreadable):
            return pod
        uid = pod.metadata.uid
        daemonset, agent = "", None
        if pod.metadata.namespace == namespace and (daemonset := daemonset_uid(pod) or ""):
            agent = agent_pod(pod, namespace=namespace, ours=daemonset, loopback=loopback)
        columns = pod_columns(pod)
        if columns is None:
            return SeenPod(uid, daemonset=daemonset, agent=agent)
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        row = _row(uid, name, lambda: fit(Pod, columns))
        return row if isinstance(row, Unreadable) else SeenPod(uid, name, row, daemonset, agent)

    return read


def _node_row(node: structs.Node) -> dict[str, Any]:
    columns = node_columns(node)
    reads = MIG_STATE in columns["labels"]  # since when: the store keeps the first time
    return fit(Node, {**columns, "mig_state_since": timezone.now() if reads else None})


def _row(uid: str, name: str, columns: Callable[[], dict[str, Any]]) -> bytes | Unreadable:
    try:
        return msgspec.json.encode({"uid": uid, **columns()})
    except (ValueError, TypeError, OverflowError) as error:
        return Unreadable(uid, name, f"not storable: {error}")
