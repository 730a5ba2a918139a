"""What a real API server would refuse, as far as the simulator's users can run into it."""

from __future__ import annotations

import re
from typing import Any

from simulator.api.errors import ApiError, invalid
from simulator.api.kinds import Kind

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def validate(kind: Kind, value: dict[str, Any]) -> None:
    """Raises 422 with the field that is wrong."""
    name = value["metadata"]["name"]
    if not isinstance(name, str) or len(name) > 253 or not _NAME.fullmatch(name):
        text = f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case'
        raise invalid(kind.kind, str(name), "metadata.name", f"{text} alphanumeric characters")
    for label, text in (value["metadata"].get("labels") or {}).items():
        _validate_pair(kind, name, "metadata.labels", label, text)
    if kind.kind == "Node":
        _validate_taints(kind, name, value.get("spec", {}).get("taints") or [])
    if kind.kind == "Pod":
        _validate_pod(kind, name, value.get("spec") or {})


def _validate_pair(kind: Kind, name: str, field: str, key: object, value: object) -> None:
    prefix, slash, last = str(key).rpartition("/")
    good_key = bool(last) and len(last) <= 63 and bool(_VALUE.fullmatch(last))
    if slash and not _PREFIX.fullmatch(prefix):
        good_key = False
    if not good_key:
        message = f'Invalid value: "{key}": name part must consist of alphanumeric characters'
        raise invalid(kind.kind, name, field, message)
    if not isinstance(value, str) or len(value) > 63 or not _VALUE.fullmatch(value):
        message = f'Invalid value: "{value}": a valid label must be an empty string or consist of'
        message += " alphanumeric characters, '-', '_' or '.', at most 63 characters"
        raise invalid(kind.kind, name, field, message)


def _validate_taints(kind: Kind, name: str, taints: list[dict[str, Any]]) -> None:
    """A taint is its key and its effect (contracts.md 9.1, case C21)."""
    seen: set[tuple[str, str]] = set()
    for number, taint in enumerate(taints):
        field = f"spec.taints[{number}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        _validate_pair(kind, name, f"{field}.key", key, taint.get("value") or "")
        if effect not in EFFECTS:
            choices = ", ".join(f'"{choice}"' for choice in EFFECTS)
            message = f'Unsupported value: "{effect}": supported values: {choices}'
            raise invalid(kind.kind, name, f"{field}.effect", message)
        if (key, effect) in seen:
            message = f'Duplicate value: "{key}:{effect}": taints must be unique by key and effect'
            raise invalid(kind.kind, name, field, f"{message} pair")
        seen.add((key, effect))


def _validate_pod(kind: Kind, name: str, spec: dict[str, Any]) -> None:
    if not spec.get("containers"):
        raise invalid(kind.kind, name, "spec.containers", "Required value")
    for number, container in enumerate(spec["containers"]):
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        for resource, wanted in (resources.get("requests") or {}).items():
            if "/" in resource and limits.get(resource) != wanted:
                field = f"spec.containers[{number}].resources.requests"
                message = f'Invalid value: "{wanted}": must be equal to {resource} limit'
                raise invalid(kind.kind, name, field, message)


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
