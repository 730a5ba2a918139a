"""The Kubernetes objects that a kubelet writes: its Node, its Lease, the status of its pods."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from simulator import marks
from simulator.fleet.inventory import NodeSpec, made_up_id
from simulator.nodes.client import Value
from simulator.nodes.places import Places
from simulator.nodes.server import KubeletServer

KUBELET_VERSION = "v1.36.1"
LEASE_SECONDS = 40
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory"),
    ("DiskPressure", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "KubeletHasSufficientPID"),
)


def node(spec: NodeSpec, places: Places, labels: dict[str, str]) -> Value:
    """The Node that a kubelet registers."""
    arm = spec.model.unified_memory
    info = {
        "architecture": "arm64" if arm else "amd64",
        "bootID": places.boot_id,
        "machineID": places.machine_id,
        "systemUUID": str(made_up_id("system", spec.name)),
        "kernelVersion": "6.8.0-71-generic",
        "osImage": "Ubuntu 24.04.3 LTS",
        "operatingSystem": "linux",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": labels, "annotations": {marks.AGE: "118d"}},
        "spec": {"taints": [TAINT] if spec.tainted else []},
        "status": {
            "nodeInfo": info,
            "conditions": conditions(),
        },
    }


def endpoint(node_name: str, server: KubeletServer) -> Value:
    """Where a node's kubelet is to be found, as part of the node's status."""
    internal = {"type": "InternalIP", "address": server.address}
    return {
        "addresses": [internal, {"type": "Hostname", "address": node_name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": server.port}},
    }


def conditions(before: Iterable[Value] = (), *, ready: bool = True) -> list[Value]:
    """A node's conditions, now. ``before``: those that it has; a time of transition stays until
    the status is another one."""
    now = marks.now()
    found = [("Ready", "True", "KubeletReady", "kubelet is posting ready status")]
    if not ready:
        found = [("Ready", "False", "KubeletNotReady", "container runtime is down")]
    found += [(name, "False", reason, reason) for name, reason in _PRESSURES]
    since = {(each["type"], each["status"]): each.get("lastTransitionTime") for each in before}
    return [
        {
            "type": name,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": since.get((name, status)) or now,
        }
        for name, status, reason, message in found
    ]


def own_resources(spec: NodeSpec) -> dict[str, str]:
    """What a node has beside its cards."""
    cpus, memory = (20, "119Gi") if spec.model.unified_memory else (spec.cards * 24, "1007Gi")
    return {"cpu": str(cpus), "memory": memory, "ephemeral-storage": "1800Gi", "pods": "110"}


def lease(node_name: str) -> Value:
    """The heartbeat in kube-node-lease."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node_name, "namespace": "kube-node-lease"},
        "spec": {
            "holderIdentity": node_name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now,
        },
    }


def running(pod: Value, pod_ip: str, restarts: int) -> Value:
    """Status of a pod whose containers run. An aged pod started soon after it was made."""
    since = started_at(pod)
    names = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": since,
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "conditions": [
            {"type": name, "status": "True", "lastTransitionTime": since} for name in names
        ],
        "containerStatuses": _containers(pod, {"running": {"startedAt": since}}, restarts, True),
    }


def succeeded(pod: Value) -> Value:
    """Status of a pod whose containers all ended well."""
    now = marks.now()
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": started_at(pod), "finishedAt": now}
    ready = {"status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
    return {
        "phase": "Succeeded",
        "conditions": [{"type": "Ready", **ready}, {"type": "ContainersReady", **ready}],
        "containerStatuses": _containers(pod, {"terminated": ended}, 0, False),
    }


def refused(resource: str, wanted: int, available: int) -> Value:
    """Status of a pod that was bound here and can't have its devices (contracts.md 1.5)."""
    message = (
        "Allocate failed due to requested number of devices unavailable for "
        f"{resource}. Requested: {wanted}, Available: {available}, which is unexpected"
    )
    return {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "message": message,
        "startTime": marks.now(),
    }


def started_at(pod: Value) -> str:
    """When a pod starts: now, or just after it was bound when it is dated back."""
    status = pod.get("status") or {}
    if status.get("startTime") or not marks.age_seconds(pod):
        return status.get("startTime") or marks.now()
    bound: Value = next(
        (c for c in status.get("conditions") or [] if c["type"] == "PodScheduled"), {}
    )
    since = bound.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"]
    start = marks.parse_timestamp(since) + timedelta(seconds=3)
    return marks.timestamp(min(start, datetime.now(UTC)))


def _containers(pod: Value, state: Value, restarts: int, ready: bool) -> list[dict[str, Any]]:
    return [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": f"sha256:{made_up_id(container['image']).hex * 2}",
            "containerID": f"containerd://{made_up_id(pod['metadata']['uid']).hex * 2}",
            "ready": ready,
            "started": ready,
            "restartCount": restarts,
            "state": state,
        }
        for container in pod["spec"]["containers"]
    ]
