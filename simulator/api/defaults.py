"""What a real API server fills in when an object is created."""

from __future__ import annotations

from typing import Any

from simulator.api.kinds import Kind

TOLERATION_SECONDS = 300  # the DefaultTolerationSeconds admission plugin
_ABSENCES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def with_defaults(kind: Kind, value: dict[str, Any]) -> dict[str, Any]:
    """A new object as it will be stored; the argument is not changed."""
    if kind.kind == "Pod":
        return {**value, "spec": _pod_spec(value.get("spec") or {}), "status": {"phase": "Pending"}}
    if kind.kind == "Namespace":
        return {**value, "status": {"phase": "Active"}}
    if kind.kind == "DaemonSet":
        return {**value, "status": {}}
    return value


def _pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    defaults = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
    }
    lists = {
        field: [_container(entry) for entry in spec[field]]
        for field in ("containers", "initContainers")
        if spec.get(field)
    }
    return {**defaults, **spec, **lists, "tolerations": _tolerations(spec.get("tolerations") or [])}


def _container(container: dict[str, Any]) -> dict[str, Any]:
    """A limit alone is a request as well (contracts.md 9.2)."""
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    if not limits:
        return container
    requests = {**limits, **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}


def _tolerations(tolerations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def covered(key: str) -> bool:
        return any(
            entry.get("key") in (key, None, "") and entry.get("effect") in ("NoExecute", None, "")
            for entry in tolerations
        )

    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": TOLERATION_SECONDS,
        }
        for key in _ABSENCES
        if not covered(key)
    ]
    return [*tolerations, *added]
