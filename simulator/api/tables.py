"""Lists and objects as tables, for kubectl: the columns of a real API server's printers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from simulator.api.kinds import (
    BUDGETS,
    CONFIGMAPS,
    DAEMONSETS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    Kind,
)
from simulator.marks import parse_timestamp

Value = dict[str, Any]
NONE = "<none>"
_GROUP = {"apiVersion": "meta.k8s.io/v1"}
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_STEPS = (  # below how many seconds: unit and its seconds, smaller unit and its seconds
    (2 * _MINUTE, "s", 1, "", 0),
    (10 * _MINUTE, "m", _MINUTE, "s", 1),
    (3 * _HOUR, "m", _MINUTE, "", 0),
    (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
    (48 * _HOUR, "h", _HOUR, "", 0),
    (8 * _DAY, "d", _DAY, "h", _HOUR),
    (730 * _DAY, "d", _DAY, "", 0),
)
_ROLE = "node-role.kubernetes.io/"


class Column(NamedTuple):
    """One column. ``wide``: shown by ``-o wide`` only."""

    name: str
    cell: Callable[[Value], object]
    wide: bool = False


def wanted(accept: str) -> bool:
    """Whether the Accept header asks for a table before anything else, as kubectl's does."""
    return "as=Table" in accept.partition(",")[0]


def table(kind: Kind, listed: bytes, include: str) -> bytes:
    """An object or a list, as bytes, made a table. ``include``: the query's includeObject."""
    value = msgspec.json.decode(listed)
    items, metadata = value.get("items", [value]), value["metadata"]
    kept = {key: metadata[key] for key in ("resourceVersion", "continue") if key in metadata}
    columns = _COLUMNS.get(kind, _OTHERS)
    definitions = [
        {
            "name": column.name,
            "type": "string",
            "format": "name" if column.name == "Name" else "",
            "description": "",
            "priority": int(column.wide),
        }
        for column in columns
    ]
    rows = [
        {"cells": [each.cell(item) for each in columns], "object": _object(item, include)}
        for item in items
    ]
    head = {"kind": "Table", **_GROUP, "metadata": kept}
    return msgspec.json.encode(head | {"columnDefinitions": definitions, "rows": rows})


def _object(item: Value, include: str) -> Value | None:
    if include == "Object":
        return item
    partial = {"kind": "PartialObjectMetadata", **_GROUP, "metadata": item["metadata"]}
    return None if include == "None" else partial


def human_duration(seconds: float) -> str:
    """As upstream's duration.HumanDuration: two units at most, the second while it matters."""
    total = max(0, int(seconds))
    for below, unit, size, smaller, rest in _STEPS:
        if total < below:
            left = total % size // rest if rest else 0
            return f"{total // size}{unit}" + (f"{left}{smaller}" if left else "")
    return f"{total // (365 * _DAY)}y{total // _DAY % 365}d"


def _since(text: str | None) -> str:
    if not text:
        return "<unknown>"
    return human_duration((datetime.now(UTC) - parse_timestamp(text)).total_seconds())


def _name(item: Value) -> str:
    return str(item["metadata"]["name"])


def _age(item: Value) -> str:
    return _since(item["metadata"].get("creationTimestamp"))


def _node_status(node: Value) -> str:
    found = (node.get("status") or {}).get("conditions") or []
    ready = next((each["status"] for each in found if each["type"] == "Ready"), "Unknown")
    words = {"True": "Ready", "False": "NotReady"}.get(ready, "Unknown")
    closed = (node.get("spec") or {}).get("unschedulable")
    return f"{words},SchedulingDisabled" if closed else words


def _roles(node: Value) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE))
    return ",".join(roles) or NONE


def _node_info(field: str) -> Callable[[Value], str]:
    return lambda node: str((node["status"].get("nodeInfo") or {}).get(field, "<unknown>"))


def _internal_ip(node: Value) -> str:
    addresses = (node.get("status") or {}).get("addresses") or []
    return next((a["address"] for a in addresses if a["type"] == "InternalIP"), NONE)


def _containers(pod: Value) -> list[Value]:
    return (pod.get("status") or {}).get("containerStatuses") or []


def _pod_ready(pod: Value) -> str:
    ready = sum(bool(each.get("ready")) for each in _containers(pod))
    return f"{ready}/{len(pod['spec']['containers'])}"


def _pod_status(pod: Value) -> str:
    status = pod.get("status") or {}
    said = status.get("reason") or status.get("phase") or "Unknown"
    for each in _containers(pod):
        for state in ("waiting", "terminated"):
            said = ((each.get("state") or {}).get(state) or {}).get("reason") or said
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else str(said)


def _restarts(pod: Value) -> str:
    return str(sum(each.get("restartCount", 0) for each in _containers(pod)))


def _status(field: str) -> Callable[[Value], object]:
    return lambda item: (item.get("status") or {}).get(field, 0)


def _spec(field: str, missing: str = NONE) -> Callable[[Value], str]:
    return lambda item: str((item.get("spec") or {}).get(field, missing))


def _selector(daemon: Value) -> str:
    found = (daemon["spec"]["template"]["spec"].get("nodeSelector") or {}).items()
    return ",".join(f"{key}={value}" for key, value in found) or NONE


def _involved(event: Value) -> str:
    about = event.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _columns(*columns: Column, age: Iterable[Column] = (Column("Age", _age),)) -> list[Column]:
    return [Column("Name", _name), *columns, *age]


_OTHERS = _columns()
_COLUMNS: dict[Kind, list[Column]] = {
    NAMESPACES: _columns(Column("Status", lambda _: "Active")),
    NODES: [
        *_columns(Column("Status", _node_status), Column("Roles", _roles)),
        Column("Version", _node_info("kubeletVersion")),
        Column("Internal-IP", _internal_ip, wide=True),
        Column("OS-Image", _node_info("osImage"), wide=True),
        Column("Kernel-Version", _node_info("kernelVersion"), wide=True),
        Column("Container-Runtime", _node_info("containerRuntimeVersion"), wide=True),
    ],
    PODS: [
        *_columns(
            Column("Ready", _pod_ready),
            Column("Status", _pod_status),
            Column("Restarts", _restarts),
        ),
        Column("IP", lambda pod: str(pod["status"].get("podIP", NONE)), wide=True),
        Column("Node", _spec("nodeName"), wide=True),
    ],
    EVENTS: [
        Column("Last Seen", lambda event: _since(event.get("lastTimestamp"))),
        Column("Type", lambda event: event.get("type", "")),
        Column("Reason", lambda event: event.get("reason", "")),
        Column("Object", _involved),
        Column("Message", lambda event: event.get("message", "")),
    ],
    CONFIGMAPS: _columns(Column("Data", lambda item: str(len(item.get("data") or {})))),
    DAEMONSETS: _columns(
        Column("Desired", _status("desiredNumberScheduled")),
        Column("Current", _status("currentNumberScheduled")),
        Column("Ready", _status("numberReady")),
        Column("Up-to-date", _status("updatedNumberScheduled")),
        Column("Available", _status("numberAvailable")),
        Column("Node Selector", _selector),
    ),
    BUDGETS: _columns(
        Column("Min Available", _spec("minAvailable", "N/A")),
        Column("Max Unavailable", _spec("maxUnavailable", "N/A")),
        Column("Allowed Disruptions", _status("disruptionsAllowed")),
    ),
}
