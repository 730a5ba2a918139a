"""Fleets of any size as the API server's JSON, the same each time: for benchmarks and tests.

Sizes are those of real objects (issue 3): a node about 10 KB, a pod about 6 KB; most of it is what
nobody reads — images, managedFields, environment, volumes — as in a real cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

Json = dict[str, Any]
NODE_BYTES = 10_000
POD_BYTES = 6_000
PAGE_SIZE = 500
FIRST_VERSION = 1_000
MODEL = "NVIDIA-H100-80GB-HBM3"
PODS_PER_NODE = (4, 2, 1)  # cards that each node's accelerator pods ask for: 7 of 8
NAMESPACES = 40
IMAGE = "registry.example/team/training:2026.11"
BEGAN = "2026-11-30T10:00:00Z"
_FEATURES = (
    "ADX",
    "AESNI",
    "AVX",
    "AVX2",
    "AVX512BW",
    "AVX512F",
    "AVX512VL",
    "FMA3",
    "SHA",
    "VAES",
)


def node_name(number: int) -> str:
    return f"gpu-{number:05}"


def nodes(count: int, gpus_each: int = 8) -> Iterator[Json]:
    """Ready nodes that advertise ``gpus_each`` whole cards, about 10 KB each."""
    return (node(number, gpus_each) for number in range(count))


def pods(count: int, gpu_share: float, node_count: int) -> Iterator[Json]:
    """Running pods, about 6 KB each, ``gpu_share`` of them asking for cards, spread over nodes."""
    asking = 0
    for number in range(count):
        asks = int((number + 1) * gpu_share) > int(number * gpu_share)
        cards = PODS_PER_NODE[asking // node_count % len(PODS_PER_NODE)] if asks else 0
        where = asking % node_count if asks else number % node_count
        asking += asks
        yield pod(number, node_name(where), cards)


def pages(items: Iterable[Json], kind: str, size: int = PAGE_SIZE) -> list[bytes]:
    """A list as the API server sends it: pages of ``size``; the continue token is a page number.

    ``kind`` is NodeList or PodList.
    """
    encoded = [msgspec.json.encode(item) for item in items]
    starts = range(0, len(encoded), size) or range(1)
    return [
        _page(kind, encoded[start : start + size], number + 1 if number + 1 < len(starts) else None)
        for number, start in enumerate(starts)
    ]


def event(kind: str, thing: Json) -> bytes:
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK."""
    return msgspec.json.encode({"type": kind, "object": thing}) + b"\n"


def node(number: int, gpus: int = 8) -> Json:
    """One node with the labels of node and GPU feature discovery."""
    name = node_name(number)
    found: Json = {
        "metadata": {
            "name": name,
            "uid": f"5f0c1a2e-0000-4000-8000-{number:012x}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": BEGAN,
            "labels": _labels(name, gpus),
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "managedFields": [_managed("kubelet", "status", 20)],
        },
        "spec": {
            "podCIDR": f"10.{number // 250 % 250}.{number % 250}.0/24",
            "providerID": f"bare://{name}",
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        },
        "status": _node_status(name, number, gpus),
    }
    images = found["status"]["images"]
    _fill(found, NODE_BYTES, lambda step: images.append(_image(number + step)))
    return found


def pod(number: int, node_on: str, gpus: int, **status: Any) -> Json:
    """One pod; ``gpus`` 0: it asks for no accelerator. Pending when it has no node."""
    amounts = {"cpu": "4", "memory": "16Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    environment: list[Json] = []
    found: Json = {
        "metadata": {
            "name": f"work-{number:06}",
            "generateName": "work-",
            "namespace": f"team-{number % NAMESPACES:02}",
            "uid": f"9d4e7b60-0000-4000-8000-{number:012x}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": BEGAN,
            "labels": {"app": "work", "pod-template-hash": "6c9d7f5b4d", "queue": "default"},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": f"job-{number // 8}",
                    "uid": f"1b2c3d4e-0000-4000-8000-{number // 8:012x}",
                    "controller": True,
                }
            ],
            "managedFields": [
                _managed("kube-controller-manager", "spec", 25),
                _managed("kubelet", "status", 15),
            ],
        },
        "spec": _pod_spec(node_on, amounts, environment),
        "status": _pod_status(number, bound=bool(node_on)) | status,
    }
    _fill(
        found,
        POD_BYTES,
        lambda step: environment.append(
            {"name": f"SETTING_{step:02}", "value": f"/shared/projects/{number:06}/run/{step:04}"}
        ),
    )
    return found


def _labels(name: str, gpus: int) -> dict[str, str]:
    features = {f"feature.node.kubernetes.io/cpu-cpuid.{one}": "true" for one in _FEATURES}
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": "hall-1",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.product": MODEL,
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.machine": "DGXH100",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/cuda.driver.major": "570",
        "feature.node.kubernetes.io/pci-10de.present": "true",
        **features,
    }


def _node_status(name: str, number: int, gpus: int) -> Json:
    amounts = {
        "cpu": "224",
        "memory": "2113514412Ki",
        "ephemeral-storage": "1843269236Ki",
        "pods": "110",
        "nvidia.com/gpu": str(gpus),
    }
    calm = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
    return {
        "capacity": amounts,
        "allocatable": amounts,
        "addresses": [{"type": "InternalIP", "address": f"10.0.{number // 250}.{number % 250}"}],
        "conditions": [*(_condition(one, "False") for one in calm), _condition("Ready", "True")],
        "nodeInfo": {
            "kernelVersion": "5.15.0-1063-nvidia",
            "osImage": "Ubuntu 22.04.5 LTS",
            "containerRuntimeVersion": "containerd://1.7.24",
            "kubeletVersion": "v1.33.4",
            "kubeProxyVersion": "",
            "architecture": "amd64",
            "operatingSystem": "linux",
            "bootID": f"{number:08x}-0000-4000-8000-000000000000",
            "systemUUID": f"{number:08x}-0000-4000-8000-000000000001",
            "machineID": f"{number:032x}",
        },
        "images": [],
    }


def _condition(kind: str, status: str) -> Json:
    return {
        "type": kind,
        "status": status,
        "lastHeartbeatTime": BEGAN,
        "lastTransitionTime": BEGAN,
        "reason": f"Kubelet{kind}",
        "message": f"kubelet says of {kind}: {status}",
    }


def _pod_spec(node_on: str, amounts: dict[str, str], environment: list[Json]) -> Json:
    token = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    return {
        "nodeName": node_on,
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "restartPolicy": "Never",
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            *(
                {
                    "key": f"node.kubernetes.io/{one}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for one in ("not-ready", "unreachable")
            ),
        ],
        "volumes": [token, {"name": "shm", "emptyDir": {"medium": "Memory"}}],
        "containers": [
            {
                "name": "main",
                "image": IMAGE,
                "command": ["python", "-m", "train"],
                "env": environment,
                "resources": {"requests": amounts, "limits": amounts},
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108
            }
        ],
    }


def _pod_status(number: int, *, bound: bool) -> Json:
    if not bound:
        return {"phase": "Pending", "conditions": [_condition("PodScheduled", "False")]}
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": BEGAN,
        "podIP": f"10.{64 + number // 62500}.{number // 250 % 250}.{number % 250}",
        "conditions": [_condition(kind, "True") for kind in kinds],
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "restartCount": 0,
                "image": IMAGE,
                "imageID": f"{IMAGE}@sha256:{7:064x}",
                "containerID": f"containerd://{number:064x}",
                "state": {"running": {"startedAt": BEGAN}},
            }
        ],
    }


def _managed(manager: str, part: str, fields: int) -> Json:
    owned: Json = {f"f:field{number:02}": {"f:value": {}, ".": {}} for number in range(fields)}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": BEGAN,
        "fieldsType": "FieldsV1",
        "fieldsV1": {f"f:{part}": owned},
    }


def _image(number: int) -> Json:
    digest = f"{number:064x}"
    name = f"registry.example/team/image-{number % 300}"
    return {"names": [f"{name}@sha256:{digest}", f"{name}:2026.11"], "sizeBytes": 9_000_000_000}


def _fill(thing: Json, size: int, add: Any) -> None:
    """``add(step)`` as often as it takes to make ``thing`` about ``size`` bytes."""
    before = len(msgspec.json.encode(thing))
    add(0)
    each = len(msgspec.json.encode(thing)) - before
    for step in range(1, max(1, (size - before) // each)):
        add(step)


def _page(kind: str, items: list[bytes], more: int | None) -> bytes:
    meta = {"resourceVersion": str(FIRST_VERSION), "continue": "" if more is None else str(more)}
    head = {"kind": kind, "apiVersion": "v1", "metadata": meta}
    return msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"
