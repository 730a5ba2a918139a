"""Cordon and uncordon: nodes closed to new pods and opened again, and putting back what was."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from gpuadmin.accounts.roles import Permission
from gpuadmin.fleet.models import Node
from gpuadmin.operations.kinds.base import Done, Image, Ref
from gpuadmin.operations.kinds.nodes import NodeUids, OnNodes, kubectl
from gpuadmin.operations.live import LiveNode
from gpuadmin.planning import cordon
from gpuadmin.planning.edits import Edit, Value
from gpuadmin.planning.node_preview import Change, NodeNow, of_cordon


class Nodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which nodes."""

    nodes: NodeUids


class WasCordon(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether one node was cordoned before our change and after it."""

    uid: str
    was: bool
    wrote: bool


class RestoreCordon(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    nodes: list[WasCordon]


P = TypeVar("P", Nodes, RestoreCordon)


class _Cordons(OnNodes[P]):
    """What all three share: ``spec.unschedulable``."""

    permission = Permission.CORDON
    spec_field = "unschedulable"

    def value(self, node: LiveNode) -> Value:
        return {"unschedulable": node.unschedulable}

    def written(self, value: Value) -> object:
        return True if value["unschedulable"] else None

    def changed(self, parameters: P, node: NodeNow) -> Change:
        now = {"unschedulable": node.facts.unschedulable}
        return of_cordon(node, self.change(parameters, node.uid, now))

    def edit(self, parameters: P, target: Ref, image: Image) -> Edit:
        return self.change(parameters, target.uid, image.value)

    def stored(self, node: Node) -> Value:
        return {"unschedulable": node.unschedulable}

    def identity(self, parameters: P, uid: str) -> str:
        return "cordon"

    def undo(self, parameters: P, done: Sequence[Done]) -> tuple[str, dict[str, Any]] | None:
        nodes = [
            {
                "uid": one.target.uid,
                "was": one.before["unschedulable"],
                "wrote": one.after["unschedulable"],
            }
            for one in done
            if one.before != one.after
        ]
        return (PutBack.name, {"nodes": nodes}) if nodes else None

    @abstractmethod
    def change(self, parameters: P, uid: str, now: dict[str, bool]) -> Edit:
        """Our delta on one node."""


class Cordon(_Cordons[Nodes]):
    name = "node.cordon"
    parameters = Nodes

    def change(self, parameters: Nodes, uid: str, now: dict[str, bool]) -> Edit:
        return cordon.close(now)

    def title(self, parameters: Nodes, nodes: str) -> str:
        return f"Cordon {nodes}"

    def commands(self, parameters: Nodes, names: dict[str, str]) -> list[str]:
        return [kubectl("cordon", *names.values())]


class Uncordon(_Cordons[Nodes]):
    name = "node.uncordon"
    parameters = Nodes

    def change(self, parameters: Nodes, uid: str, now: dict[str, bool]) -> Edit:
        return cordon.reopen(now)

    def title(self, parameters: Nodes, nodes: str) -> str:
        return f"Uncordon {nodes}"

    def commands(self, parameters: Nodes, names: dict[str, str]) -> list[str]:
        return [kubectl("uncordon", *names.values())]


class PutBack(_Cordons[RestoreCordon]):
    """The undo of any of the three: only where the node still reads as we wrote it."""

    name = "node.cordon.restore"
    offered = False
    parameters = RestoreCordon

    def change(self, parameters: RestoreCordon, uid: str, now: dict[str, bool]) -> Edit:
        node = self._of(parameters, uid)
        return cordon.restore(now, {"unschedulable": node.wrote}, {"unschedulable": node.was})

    def title(self, parameters: RestoreCordon, nodes: str) -> str:
        return f"{'Cordon' if parameters.nodes[0].was else 'Uncordon'} {nodes} again"

    def commands(self, parameters: RestoreCordon, names: dict[str, str]) -> list[str]:
        found = []
        for verb, was in (("cordon", True), ("uncordon", False)):
            those = [n.uid for n in parameters.nodes if n.was is was and n.uid in names]
            if those:
                found.append(kubectl(verb, *(names[uid] for uid in those)))
        return found

    def _of(self, parameters: RestoreCordon, uid: str) -> WasCordon:
        return next(node for node in parameters.nodes if node.uid == uid)
