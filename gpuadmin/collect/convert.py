"""From Kubernetes objects to the columns that we store. Pure; a missing part is empty (C36)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from gpuadmin.agents.discovery import waiting_reason
from gpuadmin.kube import structs
from gpuadmin.workloads.amounts import advertised, pod_requests

GPU_LABEL = "nvidia.com/gpu.present"
PCI_LABELS = (
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
)


def node_columns(node: structs.Node) -> dict[str, Any]:
    """The columns of `fleet.models.Node`, without uid, cluster and times of ours."""
    spec, status = node.spec or structs.NodeSpec(), node.status or structs.NodeStatus()
    conditions = status.conditions or []
    ready = next((c for c in conditions if c.type == "Ready"), None)
    labels = node.metadata.labels or {}
    capacity = advertised(status.capacity)
    allocatable = advertised(status.allocatable)
    return {
        "name": node.metadata.name,
        "created_at": time_of(node.metadata.creation_timestamp),
        "ready": None if ready is None else ready.status == "True",
        "ready_reason": "" if ready is None else (ready.message or ready.reason or ""),
        "ready_since": time_of(ready.last_transition_time) if ready else None,
        "unschedulable": bool(spec.unschedulable),
        "labels": labels,
        "taints": msgspec.to_builtins(spec.taints or []),
        "conditions": msgspec.to_builtins(conditions),
        "info": status.node_info or {},
        "capacity": capacity,
        "allocatable": allocatable,
        "is_gpu_node": bool(capacity or allocatable) or has_nvidia_label(labels),
    }


def pod_columns(pod: structs.Pod) -> dict[str, Any] | None:
    """The columns of `workloads.models.Pod`; None when it asks for no accelerator."""
    spec, status = pod.spec or structs.PodSpec(), pod.status or structs.PodStatus()
    requests = pod_requests(spec)
    if not requests:
        return None
    owner = next((o for o in pod.metadata.owner_references or [] if o.controller), None)
    scheduled = next((c for c in status.conditions or [] if c.type == "PodScheduled"), None)
    unscheduled = scheduled is not None and scheduled.status != "True"
    return {
        "namespace": pod.metadata.namespace or "",
        "name": pod.metadata.name,
        "node_name": spec.node_name or "",
        "phase": status.phase or "Unknown",
        "reason": (scheduled.reason or "") if unscheduled and scheduled else waiting_reason(pod),
        "message": (scheduled.message or "") if unscheduled and scheduled else _message(status),
        "owner_kind": owner.kind if owner else "",
        "owner_name": owner.name if owner else "",
        "scheduler_name": spec.scheduler_name or "",
        "requests": requests,
        "tolerations": msgspec.to_builtins(spec.tolerations or []),
        "created_at": time_of(pod.metadata.creation_timestamp),
        "bound_at": time_of(scheduled.last_transition_time)
        if scheduled and spec.node_name
        else None,
        "started_at": time_of(status.start_time),
        "finished_at": _finished_at(status),
        "deleting_at": time_of(pod.metadata.deletion_timestamp),
    }


def time_of(text: str | None) -> datetime | None:
    """An API timestamp; None when there is none, it is none, or no clock ever showed it."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo and 1970 < found.year < 3000 else None


def has_nvidia_label(labels: Mapping[str, str]) -> bool:
    """Whether node feature discovery or NVIDIA's says that there is a card (contracts.md 3.3)."""
    return labels.get(GPU_LABEL) == "true" or any(labels.get(k) == "true" for k in PCI_LABELS)


def _message(status: structs.PodStatus) -> str:
    for container in status.container_statuses or []:
        waiting = container.state.waiting if container.state else None
        if waiting and waiting.message:
            return waiting.message
    return status.message or ""


def _finished_at(status: structs.PodStatus) -> datetime | None:
    """The latest end of a container, once the pod is finished (C04)."""
    if status.phase not in ("Succeeded", "Failed"):
        return None
    ends = [
        time_of(c.state.terminated.finished_at)
        for c in status.container_statuses or []
        if c.state and c.state.terminated
    ]
    return max((end for end in ends if end), default=None)
