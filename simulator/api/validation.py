"""What a real API server would refuse, as far as the simulator's users can run into it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from simulator.api.errors import ApiError, invalid
from simulator.api.kinds import NODES, PODS, Kind

Problem = tuple[str, str]  # field, message
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def validate(kind: Kind, value: dict[str, Any]) -> None:
    """Raises 422 with the first field that is wrong."""
    for field, message in _problems(kind, value):
        raise invalid(kind.kind, str(value["metadata"]["name"]), field, message)


def _problems(kind: Kind, value: dict[str, Any]) -> Iterator[Problem]:
    name, spec = value["metadata"]["name"], value.get("spec") or {}
    if not isinstance(name, str) or len(name) > 253 or not _NAME.fullmatch(name):
        text = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
        yield "metadata.name", f'Invalid value: "{name}": {text}'
    for label, text in (value["metadata"].get("labels") or {}).items():
        yield from _pair_problems("metadata.labels", label, text)
    if kind is NODES:
        yield from _taint_problems(spec.get("taints") or [])
    if kind is PODS:
        yield from _container_problems(spec.get("containers") or [])


def _pair_problems(field: str, key: str, value: object) -> Iterator[Problem]:
    prefix, slash, last = key.rpartition("/")
    good_prefix = not slash or _PREFIX.fullmatch(prefix)
    if not good_prefix or not last or len(last) > 63 or not _VALUE.fullmatch(last):
        yield field, f'Invalid value: "{key}": name part must consist of alphanumeric characters'
    if not isinstance(value, str) or len(value) > 63 or not _VALUE.fullmatch(value):
        text = "a valid label must be an empty string or consist of alphanumeric characters,"
        yield field, f"Invalid value: \"{value}\": {text} '-', '_' or '.', at most 63 characters"


def _taint_problems(taints: list[dict[str, Any]]) -> Iterator[Problem]:
    """A taint is its key and its effect (contracts.md 9.1, case C21)."""
    seen: set[tuple[str, str]] = set()
    for number, taint in enumerate(taints):
        field = f"spec.taints[{number}]"
        key, effect = str(taint.get("key", "")), str(taint.get("effect", ""))
        yield from _pair_problems(f"{field}.key", key, taint.get("value") or "")
        if effect not in EFFECTS:
            choices = ", ".join(f'"{choice}"' for choice in EFFECTS)
            yield f"{field}.effect", f'Unsupported value: "{effect}": supported values: {choices}'
        if (key, effect) in seen:
            text = "taints must be unique by key and effect pair"
            yield field, f'Duplicate value: "{key}:{effect}": {text}'
        seen.add((key, effect))


def _container_problems(containers: list[dict[str, Any]]) -> Iterator[Problem]:
    if not containers:
        yield "spec.containers", "Required value"
    for number, container in enumerate(containers):
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        for resource, wanted in (resources.get("requests") or {}).items():
            if "/" in resource and limits.get(resource) != wanted:
                field = f"spec.containers[{number}].resources.requests"
                yield field, f'Invalid value: "{wanted}": must be equal to {resource} limit'


def validate_pod_update(before: dict[str, Any], after: dict[str, Any]) -> None:
    """A pod's spec is fixed but for images and added tolerations; raises 422."""
    if _fixed(before["spec"]) != _fixed(after.get("spec") or {}):
        message = "Forbidden: pod updates may not change fields other than"
        message += " `spec.containers[*].image`, `spec.tolerations` (only additions)"
        raise invalid("Pod", before["metadata"]["name"], "spec", message)


def _fixed(spec: dict[str, Any]) -> dict[str, Any]:
    containers = [{**entry, "image": ""} for entry in spec.get("containers") or []]
    return {**spec, "containers": containers, "tolerations": None}


def require_object(body: object) -> dict[str, Any]:
    """The body as an object with object metadata; raises 400."""
    if not isinstance(body, dict) or not isinstance(body.setdefault("metadata", {}), dict):
        raise ApiError(400, "the body must be one JSON object with metadata")
    return body
