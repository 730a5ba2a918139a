"""The tenants' pods, as the mockups show them: who holds which card, and who waits for what.

They carry owners that don't exist: a real control plane's garbage collector would remove them, so
they are for the simulated API only.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator import marks
from simulator.faults.situations import LostCard
from simulator.fleet.inventory import GPU, made_up_id
from simulator.nodes.client import Value

NAMESPACES = ("vision", "llm-train", "search", "sandbox")
TROUBLE = [LostCard(node="h100-02", gpu=7, xid=79)]
_KINDS = {"Job": "batch/v1", "StatefulSet": "apps/v1", "ReplicaSet": "apps/v1"}
_IMAGES = {
    "Job": "lab.example/train:24.11",
    "StatefulSet": "lab.example/notebook:3.2",
    "ReplicaSet": "lab.example/serve:1.9",
}


@dataclass(frozen=True)
class Tenant:
    """One pod. ``node`` is empty for one that waits; ``load`` and ``memory`` as in marks."""

    namespace: str
    name: str
    node: str
    count: int
    cards: str = ""
    load: str = "0"
    memory: str = ""
    age: str = "1h"
    owner: str = "Job"
    resource: str = GPU
    selector: tuple[str, str] | None = None
    scheduler: str = ""


_MIG = "nvidia.com/mig-"
_WHOLE = (
    Tenant(
        "llm-train", "pretrain-7b-0", "h100-01", 8, "0,1,2,3,4,5,6,7",
        "95,98,97,97,93,96,93,93", "89,88,88,88,88,88,92,92", "3d4h",
    ),
    Tenant("llm-train", "sft-mixtral-0", "h100-02", 2, "0,1", "88,91", "91,90", "1d17h"),
    Tenant("sandbox", "notebook-lena-0", "h100-02", 1, "2", "0", "11", "4d6h", "StatefulSet"),
    Tenant("llm-train", "eval-harness-3", "h100-02", 1, "7", "88", "92", "17h22m"),
    Tenant("search", "vllm-70b-0", "h100-03", 4, "0,1,2,3", "59,65,56,64", "89,88,85,85", "9d",
           "StatefulSet"),
    Tenant("sandbox", "team-demo-0", "h100-03", 2, "4,5", "0", "74", "6d2h", "StatefulSet"),
    Tenant("vision", "detect-train-2", "h100-03", 1, "6", "79", "66", "1d3h"),
    Tenant("llm-train", "dpo-0", "h100-04", 4, "0,1,2,3", "93,94,90,92", "81,82,84,80", "20h"),
    Tenant(
        "llm-train", "pretrain-30b-0", "h200-01", 8, "0,1,2,3,4,5,6,7",
        "99,98,97,97,96,95,99,98", "90,95,93,92,95,94,93,92", "5d8h",
    ),
    Tenant("vision", "detect-train-0", "a100-01", 4, "0,1,2,3", "73,75,85,72", "74,72,73,74",
           "2d1h"),
    Tenant("search", "index-build-0", "a100-01", 2, "4,5", "0", "52", "9h20m"),
    Tenant("search", "vllm-8b-0", "l40s-01", 1, "0", "55", "78", "12d", "StatefulSet"),
    Tenant("search", "vllm-8b-1", "l40s-01", 1, "1", "61", "78", "12d", "StatefulSet"),
    Tenant("search", "vllm-8b-2", "l40s-01", 1, "2", "48", "77", "12d", "StatefulSet"),
    Tenant("sandbox", "whisper-0", "t4-01", 1, "0", "35", "40", "8d", "StatefulSet"),
    Tenant("sandbox", "whisper-1", "t4-01", 1, "1", "30", "40", "8d", "StatefulSet"),
    Tenant("vision", "ocr-canary-5d8f-w2xn", "t4-01", 1, "2", "22", "51", "3d", "ReplicaSet"),
    Tenant("vision", "edge-test-0", "gb10-01", 1, "0", "12", "", "3d"),
)  # fmt: skip
_SLICED = (
    Tenant("vision", "ocr-batch-6c9d-xk2p", "h100-02", 1, "4", "72", "70", "52m", "ReplicaSet",
           _MIG + "2g.20gb"),
    Tenant("search", "rerank-5f7b-q8wz", "h100-02", 1, "4", "31", "66", "12d", "ReplicaSet",
           _MIG + "2g.20gb"),
    Tenant("vision", "segment-train-0", "h100-02", 1, "4", "84", "88", "1d6h", "Job",
           _MIG + "3g.40gb"),
    Tenant("sandbox", "scratch-omar", "h100-02", 1, "5", "8", "30", "3h", "StatefulSet",
           _MIG + "1g.10gb"),
    Tenant("vision", "label-ui-58df-c6rb", "h100-02", 1, "6", "11", "19", "2d", "ReplicaSet",
           _MIG + "7g.80gb.shared"),
    Tenant("search", "canary-6b44-zz8p", "h100-02", 1, "6", "11", "19", "2d", "ReplicaSet",
           _MIG + "7g.80gb.shared"),
)  # fmt: skip
_WAITING = (
    Tenant("llm-train", "pretrain-13b-0", "", 8, age="2h14m"),
    Tenant("vision", "ocr-batch-6c9d-m4tr", "", 1, age="52m", owner="ReplicaSet",
           resource=_MIG + "2g.20gb"),
    Tenant("vision", "ocr-batch-6c9d-p7vd", "", 1, age="52m", owner="ReplicaSet",
           resource=_MIG + "2g.20gb"),
    Tenant("search", "embed-next-0", "", 1, age="31m", owner="StatefulSet",
           resource=_MIG + "1g.5gb"),
    Tenant("vision", "segment-eval-0", "", 2, age="18m",
           selector=("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3")),
    Tenant("llm-train", "sft-llama-2", "", 8, age="6m", scheduler="train-queue"),
)  # fmt: skip


def tenants() -> list[Tenant]:
    """Everybody: those that hold something and those that wait."""
    return [*_WHOLE, *_SLICED, *_embedders(), *_a100_slices(), *_l40s_slots(), *_WAITING]


def pod(tenant: Tenant) -> Value:
    """The pod to create. One that holds something is bound already, to the node it is meant for."""
    owner = tenant.name.rpartition("-")[0]
    annotations = {marks.AGE: tenant.age, marks.CARDS: tenant.cards, marks.LOAD: tenant.load}
    if tenant.memory:
        annotations[marks.MEMORY] = tenant.memory
    limits = {tenant.resource: str(tenant.count)}
    container = {
        "name": "main",
        "image": _IMAGES[tenant.owner],
        "resources": {"limits": {**limits, "cpu": "2", "memory": "8Gi"}},
    }
    spec: Value = {
        "containers": [container],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    if tenant.node:
        spec["nodeName"] = tenant.node
    if tenant.selector:
        spec["nodeSelector"] = dict([tenant.selector])
    if tenant.scheduler:
        spec["schedulerName"] = tenant.scheduler
    reference = {
        "apiVersion": _KINDS[tenant.owner],
        "kind": tenant.owner,
        "name": owner,
        "uid": str(made_up_id("owner", tenant.namespace, owner)),
        "controller": True,
    }
    metadata = {
        "name": tenant.name,
        "labels": {"app": owner},
        "annotations": annotations,
        "ownerReferences": [reference],
    }
    return {"metadata": metadata, "spec": spec}


def _embedders() -> list[Tenant]:
    """Four of the seven slices of h100-02's GPU 5."""
    found = (("2vhn", "44"), ("9sxk", "52"), ("fj4d", "39"), ("tq7m", "47"))
    return [
        Tenant("search", f"embed-74c8-{suffix}", "h100-02", 1, "5", load, "62", "6d",
               "ReplicaSet", _MIG + "1g.10gb")
        for suffix, load in found
    ]  # fmt: skip


def _a100_slices() -> list[Tenant]:
    """38 of a100-03's 56 slices."""
    names = (("search", "embed-91b2"), ("vision", "caption-5d77"), ("sandbox", "course-77f4"))
    found: list[Tenant] = []
    for card, held in enumerate((5, 5, 5, 5, 5, 5, 4, 4)):
        for number in range(held):
            namespace, name = names[(card + number) % len(names)]
            suffix = made_up_id(card, number).hex[:4]
            load, age = str(15 + made_up_id("load", card, number).int % 70), f"{2 + card}d"
            found.append(
                Tenant(namespace, f"{name}-{suffix}", "a100-03", 1, str(card), load, "48", age,
                       "ReplicaSet", _MIG + "1g.10gb")
            )  # fmt: skip
    return found


def _l40s_slots() -> list[Tenant]:
    """18 slots of l40s-02, given out when each card had six; now each has four."""
    found: list[Tenant] = []
    cards = (("63", "82", 5), ("71", "85", 5), ("40", "66", 4), ("38", "61", 4))
    for card, (load, memory, held) in enumerate(cards):
        for number in range(held):
            namespace, name = (("search", "tagger-6d9c"), ("sandbox", "lab-4f21"))[number % 2]
            suffix = made_up_id("slot", card, number).hex[:4]
            part, used = str(round(int(load) / held)), str(int(memory) // held)
            found.append(
                Tenant(namespace, f"{name}-{suffix}", "l40s-02", 1, str(card), part, used, "4d",
                       "ReplicaSet", GPU + ".shared")
            )  # fmt: skip
    return found
