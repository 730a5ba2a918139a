"""What all changes of nodes share: which nodes, how they are read and written, whom it touches."""

from __future__ import annotations

import shlex
from abc import abstractmethod
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from django.conf import settings

from gpuadmin.fleet.models import Cluster
from gpuadmin.kube.client import KubeClient, decode, path_of
from gpuadmin.operations.kinds.base import FIELD_MANAGER, Image, Kind, Ref
from gpuadmin.operations.live import LiveNode, read_node, read_pods_on, read_snapshot
from gpuadmin.planning.edits import Edit, Value
from gpuadmin.planning.facts import Policy
from gpuadmin.planning.node_preview import (
    Change,
    NodeNow,
    Snapshot,
    evicted_now,
    phrase_for,
    preview,
)
from gpuadmin.planning.plan import Plan

MAX_NODES = 100
NodeUids = Annotated[
    list[str],
    msgspec.Meta(
        description="Uids of nodes.",
        extra_json_schema={"minItems": 1, "maxItems": MAX_NODES, "uniqueItems": True},
    ),
]
P = TypeVar("P", bound=msgspec.Struct)


class OnNodes(Kind[P, Snapshot]):
    """A change of one field of each node's spec, ``spec_field``; ``nodes`` of P are uids, or
    structs with one."""

    object_kind = "node"
    component = "taint"
    spec_field: ClassVar[str]

    def read(self, cluster: Cluster, client: KubeClient, parameters: P) -> Snapshot:
        return read_snapshot(cluster, client, self.uids(parameters))

    def plan(self, snapshot: Snapshot, parameters: P) -> Plan:
        names = [node.name for node in snapshot.nodes]
        changes = [self.changed(parameters, node) for node in snapshot.nodes]
        # No line for what is so already or was left alone: pasted, it would do what we don't do.
        written = {c.node.uid: c.node.name for c in changes if c.edit.value is not None}
        return preview(
            snapshot,
            changes,
            title=self.title(parameters, phrase_for(names)),
            kubectl=tuple(self.commands(parameters, written)) if written else (),
            policy=Policy(tolerated_taints=settings.TOLERATED_TAINTS),
            all_needed=self.offered,  # an undo covers the nodes that are left
        )

    def look(self, client: KubeClient, target: Ref) -> Image:
        return self.image(read_node(client, target.uid, target.name))

    def write(self, client: KubeClient, target: Ref, image: Image, edit: Edit) -> Image:
        body = {
            "metadata": {"resourceVersion": image.version},
            "spec": {self.spec_field: self.written(edit.value)},
        }
        path = path_of("api", "v1", "nodes", target.name)
        answer = client.patch(path, body, params={"fieldManager": FIELD_MANAGER})
        return self.image(decode(answer, LiveNode))

    def leaving(self, client: KubeClient, target: Ref, image: Image) -> list[str]:
        if not isinstance(image.value, list):
            return []  # only taints send pods away
        pods = evicted_now(read_pods_on(client, target.name), image.value)
        return sorted(f"{pod.namespace}/{pod.name}" for pod in pods)

    def image(self, node: LiveNode) -> Image:
        """The field as just read."""
        return Image(
            node.metadata.resource_version, self.value(node), node.writer_of(self.spec_field)
        )

    def uids(self, parameters: P) -> list[str]:
        """The nodes' uids."""
        nodes: Iterable[Any] = parameters.nodes  # type: ignore[attr-defined]  # every P has them
        return [node if isinstance(node, str) else node.uid for node in nodes]

    def problems(self, parameters: P) -> dict[str, str]:
        uids = self.uids(parameters)
        if not 1 <= len(uids) <= MAX_NODES:
            return {"nodes": f"One change takes 1 to {MAX_NODES} nodes."}
        if len(set(uids)) < len(uids):
            return {"nodes": "A node is named twice."}
        return {}

    @abstractmethod
    def value(self, node: LiveNode) -> Value:
        """The field as we compare it."""

    @abstractmethod
    def written(self, value: Value) -> object:
        """The value as a merge patch writes it; None removes the field."""

    @abstractmethod
    def changed(self, parameters: P, node: NodeNow) -> Change:
        """Our delta on one node of the snapshot."""

    @abstractmethod
    def title(self, parameters: P, nodes: str) -> str: ...

    @abstractmethod
    def commands(self, parameters: P, names: dict[str, str]) -> list[str]:
        """The kubectl lines; ``names`` by uid."""


def kubectl(*words: str) -> str:
    """The equivalent command, quoted for a shell."""
    return shlex.join(["kubectl", *words])
