"""The fields of Kubernetes objects that we need, by the API's own names.

Everything is optional and loosely typed where reality is (C36): an image without names, a
condition nobody knows, a missing status must not cost us the node. Field names are the API's.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Struct(msgspec.Struct, rename="camel", kw_only=True):
    """camelCase on the wire, snake_case here."""


class OwnerReference(Struct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(Struct):
    name: str
    uid: str
    namespace: str | None = None
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] | None = None


class Taint(Struct):
    """Identity is (key, effect): C21."""

    key: str
    effect: str
    value: str | None = None
    time_added: str | None = None


class NodeSpec(Struct):
    taints: list[Taint] | None = None
    unschedulable: bool | None = None


class Condition(Struct):
    type: str
    status: str = "Unknown"
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class NodeStatus(Struct):
    capacity: dict[str, str] | None = None
    allocatable: dict[str, str] | None = None
    conditions: list[Condition] | None = None
    node_info: dict[str, Any] | None = None


class Node(Struct):
    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Resources(Struct):
    requests: dict[str, str | int] | None = None
    limits: dict[str, str | int] | None = None


class ContainerPort(Struct):
    container_port: int
    name: str | None = None


class Container(Struct):
    name: str = ""
    resources: Resources | None = None
    restart_policy: str | None = None  # "Always" on an init container: a sidecar
    ports: list[ContainerPort] | None = None


class Toleration(Struct):
    """All four may be missing; what that means is planning.taints' business (C22)."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class PodSpec(Struct):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: str | None = None
    tolerations: list[Toleration] | None = None
    scheduler_name: str | None = None
    overhead: dict[str, str | int] | None = None


class StateDetail(Struct):
    reason: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Struct):
    waiting: StateDetail | None = None
    running: StateDetail | None = None
    terminated: StateDetail | None = None


class ContainerStatus(Struct):
    name: str = ""
    state: ContainerState | None = None


class PodStatus(Struct):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Struct):
    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class DaemonSet(Struct):
    metadata: Metadata
    status: dict[str, Any] | None = None


class WatchEvent(Struct):
    """``type`` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: msgspec.Raw


class Version(Struct):
    git_version: str = ""


class ErrorObject(Struct):
    """The object of an ERROR event: a Status."""

    code: int | None = None
    message: str | None = None
    reason: str | None = None


class BookmarkMetadata(Struct):
    resource_version: str = ""


class Bookmark(Struct):
    metadata: BookmarkMetadata


class Identity(Struct):
    """What little every object has: enough to name one that can't be read whole (C36)."""

    class Meta(Struct):
        name: str = "?"
        uid: str = ""
        namespace: str | None = None
        resource_version: str = ""

    metadata: Meta = msgspec.field(default_factory=Meta)
