"""Taints of nodes: add, remove, and putting back what was there (C20, C21, C22)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from django.conf import settings

from gpuadmin.accounts.roles import Permission
from gpuadmin.fleet.models import Cluster
from gpuadmin.kube.client import KubeClient, decode, path_of
from gpuadmin.operations.kinds.base import FIELD_MANAGER, Done, Image, Kind, Ref
from gpuadmin.operations.live import LiveNode, read_node, read_pods_on, read_snapshot
from gpuadmin.planning import taints
from gpuadmin.planning.facts import Policy
from gpuadmin.planning.plan import Plan
from gpuadmin.planning.taint_preview import Snapshot, evicted_now, kubectl_line, phrase_for, preview
from gpuadmin.planning.taints import Edit, Taint

MAX_NODES = 100


class AddTaint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``nodes`` are uids."""

    nodes: list[str]
    key: str
    effect: str
    value: str = ""


class RemoveTaint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``nodes`` are uids."""

    nodes: list[str]
    key: str
    effect: str


class WasTaint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One taint of one node before our change and after it; None is absent."""

    uid: str
    was: dict[str, Any] | None
    wrote: dict[str, Any] | None


class RestoreTaint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    nodes: list[WasTaint]


P = TypeVar("P", AddTaint, RemoveTaint, RestoreTaint)


class _NodeTaints(Kind[P, Snapshot]):
    """What all three share: a node's taint list, which is written whole (contracts.md 9.1)."""

    permission = Permission.TAINT
    object_kind = "node"
    component = "taint"

    def read(self, cluster: Cluster, client: KubeClient, parameters: P) -> Snapshot:
        return read_snapshot(cluster, client, self.uids(parameters))

    def plan(self, snapshot: Snapshot, parameters: P) -> Plan:
        names = [node.name for node in snapshot.nodes]
        edits = {n.uid: self.change(parameters, n.uid, n.taints) for n in snapshot.nodes}
        # No line for what is so already or was left alone: pasted, it would do what we don't do.
        written = {n.uid: n.name for n in snapshot.nodes if edits[n.uid].taints is not None}
        return preview(
            snapshot,
            edits,
            title=self.title(parameters, phrase_for(names)),
            kubectl=tuple(self.commands(parameters, written)) if written else (),
            policy=Policy(tolerated_taints=settings.TOLERATED_TAINTS),
        )

    def look(self, client: KubeClient, target: Ref) -> Image:
        return _image(read_node(client, target.uid, target.name))

    def edit(self, parameters: P, target: Ref, image: Image) -> Edit:
        return self.change(parameters, target.uid, image.value)

    def write(self, client: KubeClient, target: Ref, image: Image, edit: Edit) -> Image:
        body = {
            "metadata": {"resourceVersion": image.version},
            "spec": {"taints": edit.taints or None},
        }
        path = path_of("api", "v1", "nodes", target.name)
        answer = client.patch(path, body, params={"fieldManager": FIELD_MANAGER})
        return _image(decode(answer, LiveNode))

    def leaving(self, client: KubeClient, target: Ref, image: Image) -> list[str]:
        pods = evicted_now(read_pods_on(client, target.name), image.value)
        return sorted(f"{pod.namespace}/{pod.name}" for pod in pods)

    def undo(self, parameters: P, done: Sequence[Done]) -> tuple[str, dict[str, Any]] | None:
        nodes = []
        for one in done:
            key, effect = self.identity(parameters, one.target.uid)
            was = taints.find(one.before, key, effect)
            wrote = taints.find(one.after, key, effect)
            if was != wrote:
                nodes.append({"uid": one.target.uid, "was": was, "wrote": wrote})
        return (Restore.name, {"nodes": nodes}) if nodes else None

    def uids(self, parameters: P) -> list[str]:
        """The nodes' uids."""
        return [node if isinstance(node, str) else node.uid for node in parameters.nodes]

    def problems(self, parameters: P) -> dict[str, str]:
        uids = self.uids(parameters)
        if not 1 <= len(uids) <= MAX_NODES:
            return {"nodes": f"One change takes 1 to {MAX_NODES} nodes."}
        if len(set(uids)) < len(uids):
            return {"nodes": "A node is named twice."}
        return {}

    @abstractmethod
    def change(self, parameters: P, uid: str, present: list[taints.JsonTaint]) -> Edit:
        """Our delta on one node's list."""

    @abstractmethod
    def identity(self, parameters: P, uid: str) -> tuple[str, str]:
        """Key and effect of the taint that is changed on this node."""

    @abstractmethod
    def title(self, parameters: P, nodes: str) -> str: ...

    @abstractmethod
    def commands(self, parameters: P, names: dict[str, str]) -> list[str]:
        """The kubectl lines; ``names`` by uid."""


class Add(_NodeTaints[AddTaint]):
    name = "taint.add"
    parameters = AddTaint

    def problems(self, parameters: AddTaint) -> dict[str, str]:
        return super().problems(parameters) | taints.problems(_taint(parameters))

    def change(self, parameters: AddTaint, uid: str, present: list[taints.JsonTaint]) -> Edit:
        return taints.add(present, _taint(parameters))

    def identity(self, parameters: AddTaint, uid: str) -> tuple[str, str]:
        return parameters.key, parameters.effect

    def title(self, parameters: AddTaint, nodes: str) -> str:
        return f"Taint {nodes} with {_taint(parameters)}"

    def commands(self, parameters: AddTaint, names: dict[str, str]) -> list[str]:
        return [kubectl_line(names.values(), str(_taint(parameters)), overwrite=True)]


class Remove(_NodeTaints[RemoveTaint]):
    name = "taint.remove"
    parameters = RemoveTaint

    def problems(self, parameters: RemoveTaint) -> dict[str, str]:
        wrong = taints.problems(Taint(parameters.key, parameters.effect))
        return super().problems(parameters) | wrong

    def change(self, parameters: RemoveTaint, uid: str, present: list[taints.JsonTaint]) -> Edit:
        return taints.remove(present, parameters.key, parameters.effect)

    def identity(self, parameters: RemoveTaint, uid: str) -> tuple[str, str]:
        return parameters.key, parameters.effect

    def title(self, parameters: RemoveTaint, nodes: str) -> str:
        return f"Remove {parameters.key}:{parameters.effect} from {nodes}"

    def commands(self, parameters: RemoveTaint, names: dict[str, str]) -> list[str]:
        return [kubectl_line(names.values(), f"{parameters.key}:{parameters.effect}-")]


class Restore(_NodeTaints[RestoreTaint]):
    """The undo of any of the three: only where the taint still reads as we wrote it."""

    name = "taint.restore"
    offered = False
    parameters = RestoreTaint

    def change(self, parameters: RestoreTaint, uid: str, present: list[taints.JsonTaint]) -> Edit:
        node = self._of(parameters, uid)
        return taints.restore(present, node.wrote, node.was)

    def identity(self, parameters: RestoreTaint, uid: str) -> tuple[str, str]:
        node = self._of(parameters, uid)
        known = node.was or node.wrote or {}
        return known["key"], known["effect"]

    def title(self, parameters: RestoreTaint, nodes: str) -> str:
        uid = parameters.nodes[0].uid
        return f"Put {':'.join(self.identity(parameters, uid))} back as it was on {nodes}"

    def commands(self, parameters: RestoreTaint, names: dict[str, str]) -> list[str]:
        lines: dict[str, list[str]] = {}
        for node in parameters.nodes:
            key, effect = self.identity(parameters, node.uid)
            change = str(Taint.of(node.was)) if node.was else f"{key}:{effect}-"
            if node.uid in names:
                lines.setdefault(change, []).append(names[node.uid])
        return [
            kubectl_line(nodes, change, overwrite=not change.endswith("-"))
            for change, nodes in lines.items()
        ]

    def _of(self, parameters: RestoreTaint, uid: str) -> WasTaint:
        return next(node for node in parameters.nodes if node.uid == uid)


def _taint(parameters: AddTaint) -> Taint:
    return Taint(parameters.key, parameters.effect, parameters.value)


def _image(node: LiveNode) -> Image:
    return Image(node.metadata.resource_version, node.taints, node.taints_writer)
