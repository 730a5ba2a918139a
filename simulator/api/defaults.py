"""What a real API server fills in when an object is created."""

from __future__ import annotations

from typing import Any

from simulator.api.kinds import BUDGETS, DAEMONSETS, PODS, Kind

PATIENCE_SECONDS = 300  # the DefaultTolerationSeconds admission plugin
_ABSENCES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def with_defaults(kind: Kind, value: dict[str, Any]) -> dict[str, Any]:
    """A new object as it will be stored; the argument is not changed."""
    if kind is PODS:
        return {**value, "spec": _pod_spec(value.get("spec") or {}), "status": {"phase": "Pending"}}
    return {**value, "status": {}} if kind in (DAEMONSETS, BUDGETS) else value


def _pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    defaults = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
    }
    fields = [field for field in ("containers", "initContainers") if spec.get(field)]
    lists = {field: [_container(entry) for entry in spec[field]] for field in fields}
    return {**defaults, **spec, **lists, "tolerations": _tolerations(spec.get("tolerations") or [])}


def _container(container: dict[str, Any]) -> dict[str, Any]:
    """A limit alone is a request as well (contracts.md 9.2)."""
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}} if limits else container


def _tolerations(tolerations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    staying = [each for each in tolerations if each.get("effect") in ("NoExecute", None, "")]
    keys = {each.get("key") or "" for each in staying}  # "" stands for every key
    missing = [key for key in _ABSENCES if not keys & {key, ""}]
    exists = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": PATIENCE_SECONDS}
    return [*tolerations, *({"key": key, **exists} for key in missing)]
