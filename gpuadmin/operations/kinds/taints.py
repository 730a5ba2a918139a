"""Taints of nodes: add, remove, and putting back what was there (C20, C21, C22)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from gpuadmin.accounts.roles import Permission
from gpuadmin.fleet.models import Node
from gpuadmin.operations.kinds.base import Done, Image, Ref
from gpuadmin.operations.kinds.nodes import NodeUids, OnNodes, kubectl
from gpuadmin.operations.live import LiveNode
from gpuadmin.planning import taints
from gpuadmin.planning.edits import Edit, Value
from gpuadmin.planning.node_preview import Change, NodeNow, of_taints
from gpuadmin.planning.taints import Taint

Effect = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(taints.EFFECTS)})]


class AddTaint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A taint and the nodes that get it."""

    nodes: NodeUids
    key: str
    effect: Effect
    value: str = ""


class RemoveTaint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A taint by key and effect, and the nodes that lose it."""

    nodes: NodeUids
    key: str
    effect: Effect


class WasTaint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One taint of one node before our change and after it; None is absent."""

    uid: str
    was: dict[str, Any] | None
    wrote: dict[str, Any] | None


class RestoreTaint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    nodes: list[WasTaint]


P = TypeVar("P", AddTaint, RemoveTaint, RestoreTaint)


class _NodeTaints(OnNodes[P]):
    """What all three share: a node's taint list, which is written whole (contracts.md 9.1)."""

    permission = Permission.TAINT
    spec_field = "taints"

    def value(self, node: LiveNode) -> Value:
        return node.taints

    def written(self, value: Value) -> object:
        return value or None

    def changed(self, parameters: P, node: NodeNow) -> Change:
        return of_taints(node, self.change(parameters, node.uid, node.taints))

    def edit(self, parameters: P, target: Ref, image: Image) -> Edit:
        return self.change(parameters, target.uid, image.value)

    def stored(self, node: Node) -> Value:
        return node.taints

    def identity(self, parameters: P, uid: str) -> str:
        return "taint {}:{}".format(*self.key_of(parameters, uid))

    def undo(self, parameters: P, done: Sequence[Done]) -> tuple[str, dict[str, Any]] | None:
        nodes = []
        for one in done:
            key, effect = self.key_of(parameters, one.target.uid)
            was = taints.find(one.before, key, effect)
            wrote = taints.find(one.after, key, effect)
            if was != wrote:
                nodes.append({"uid": one.target.uid, "was": was, "wrote": wrote})
        return (Restore.name, {"nodes": nodes}) if nodes else None

    @abstractmethod
    def change(self, parameters: P, uid: str, present: list[taints.JsonTaint]) -> Edit:
        """Our delta on one node's list."""

    @abstractmethod
    def key_of(self, parameters: P, uid: str) -> tuple[str, str]:
        """Key and effect of the taint that is changed on this node."""


class Add(_NodeTaints[AddTaint]):
    name = "taint.add"
    parameters = AddTaint

    def problems(self, parameters: AddTaint) -> dict[str, str]:
        return super().problems(parameters) | taints.problems(_taint(parameters))

    def change(self, parameters: AddTaint, uid: str, present: list[taints.JsonTaint]) -> Edit:
        return taints.add(present, _taint(parameters))

    def key_of(self, parameters: AddTaint, uid: str) -> tuple[str, str]:
        return parameters.key, parameters.effect

    def title(self, parameters: AddTaint, nodes: str) -> str:
        return f"Taint {nodes} with {_taint(parameters)}"

    def commands(self, parameters: AddTaint, names: dict[str, str]) -> list[str]:
        return [_line(names.values(), str(_taint(parameters)), overwrite=True)]


class Remove(_NodeTaints[RemoveTaint]):
    name = "taint.remove"
    parameters = RemoveTaint

    def problems(self, parameters: RemoveTaint) -> dict[str, str]:
        wrong = taints.problems(Taint(parameters.key, parameters.effect))
        return super().problems(parameters) | wrong

    def change(self, parameters: RemoveTaint, uid: str, present: list[taints.JsonTaint]) -> Edit:
        return taints.remove(present, parameters.key, parameters.effect)

    def key_of(self, parameters: RemoveTaint, uid: str) -> tuple[str, str]:
        return parameters.key, parameters.effect

    def title(self, parameters: RemoveTaint, nodes: str) -> str:
        return f"Remove {parameters.key}:{parameters.effect} from {nodes}"

    def commands(self, parameters: RemoveTaint, names: dict[str, str]) -> list[str]:
        return [_line(names.values(), f"{parameters.key}:{parameters.effect}-")]


class Restore(_NodeTaints[RestoreTaint]):
    """The undo of any of the three: only where the taint still reads as we wrote it."""

    name = "taint.restore"
    offered = False
    parameters = RestoreTaint

    def change(self, parameters: RestoreTaint, uid: str, present: list[taints.JsonTaint]) -> Edit:
        node = self._of(parameters, uid)
        return taints.restore(present, node.wrote, node.was)

    def key_of(self, parameters: RestoreTaint, uid: str) -> tuple[str, str]:
        node = self._of(parameters, uid)
        known = node.was or node.wrote or {}
        return known["key"], known["effect"]

    def title(self, parameters: RestoreTaint, nodes: str) -> str:
        uid = parameters.nodes[0].uid
        return f"Put {':'.join(self.key_of(parameters, uid))} back as it was on {nodes}"

    def commands(self, parameters: RestoreTaint, names: dict[str, str]) -> list[str]:
        lines: dict[str, list[str]] = {}
        for node in parameters.nodes:
            key, effect = self.key_of(parameters, node.uid)
            change = str(Taint.of(node.was)) if node.was else f"{key}:{effect}-"
            if node.uid in names:
                lines.setdefault(change, []).append(names[node.uid])
        return [
            _line(nodes, change, overwrite=not change.endswith("-"))
            for change, nodes in lines.items()
        ]

    def _of(self, parameters: RestoreTaint, uid: str) -> WasTaint:
        return next(node for node in parameters.nodes if node.uid == uid)


def _taint(parameters: AddTaint) -> Taint:
    return Taint(parameters.key, parameters.effect, parameters.value)


def _line(names: Iterable[str], change: str, *, overwrite: bool = False) -> str:
    return kubectl("taint", "nodes", *names, change, *(["--overwrite"] if overwrite else []))
