"""Reading our DaemonSet and the events of its pods that could not be made, live (C24)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from gpuadmin.kube import errors
from gpuadmin.kube.client import KubeClient, decode, path_of
from gpuadmin.kube.structs import Struct, Toleration
from gpuadmin.planning.absence import Daemons

MOST_EVENTS = "50"


class _PodSpec(Struct):
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None
    service_account_name: str | None = None


class _Template(Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _Spec(Struct):
    template: _Template = msgspec.field(default_factory=_Template)


class _Status(Struct):
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0


class _DaemonSet(Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(Struct):
    message: str | None = None
    reason: str | None = None
    last_timestamp: str | None = None
    involved_object: dict[str, Any] = msgspec.field(default_factory=dict)


class _Events(Struct):
    items: list[_Event] | None = None


def read_daemons(client: KubeClient, namespace: str, name: str) -> Daemons | None:
    """None when it is not there or may not be read. Events may be forbidden: then none is told."""
    path = path_of("apis", "apps", "v1", "namespaces", namespace, "daemonsets", name)
    try:
        found = decode(client.get(path), _DaemonSet)
    except errors.KubeError:
        return None
    pod, status = found.spec.template.spec, found.status
    missing = status.current_number_scheduled < status.desired_number_scheduled
    return Daemons(
        namespace=namespace,
        name=name,
        selector=pod.node_selector or {},
        tolerations=tuple(pod.tolerations or ()),
        service_account=pod.service_account_name or "default",
        desired=status.desired_number_scheduled,
        current=status.current_number_scheduled,
        refusals=_refusals(client, namespace, name) if missing else (),
    )


def _refusals(client: KubeClient, namespace: str, name: str) -> tuple[str, ...]:
    events: list[_Event] = []
    with suppress(errors.KubeError):
        about = {"fieldSelector": f"involvedObject.name={name}", "limit": MOST_EVENTS}
        path = path_of("api", "v1", "namespaces", namespace, "events")
        events = decode(client.get(path, about), _Events).items or []
    told = [each for each in events if each.reason == "FailedCreate" and each.message]
    told.sort(key=lambda each: each.last_timestamp or "", reverse=True)
    return tuple(each.message or "" for each in told)
