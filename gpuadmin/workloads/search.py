"""Finding things by what people have at hand: a node's name, a card's UUID or serial, a pod, a
namespace. Page, box and REST share it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from gpuadmin.fleet.models import Cluster, Gpu, MigInstance, Node
from gpuadmin.workloads.models import Pod
from gpuadmin.workloads.queries import present_pods

SHORTEST, LONGEST = 2, 100  # characters
MOST = 8  # of each kind


@dataclass(frozen=True)
class Found:
    """At most eight of each kind, by name. ``more`` names the kinds of which there are more."""

    text: str
    nodes: list[Node]
    gpus: list[Gpu]
    pods: list[Pod]
    namespaces: list[str]
    more: list[str]

    @property
    def count(self) -> int:
        return len(self.nodes) + len(self.gpus) + len(self.pods) + len(self.namespaces)


def search(cluster: Cluster, text: str) -> Found:
    """Everything present whose name has ``text`` in it, in either case; nothing for less than two
    characters. A MIG device is found by the card that carries it. Five queries."""
    text = text.strip()[:LONGEST]
    if len(text) < SHORTEST or "\0" in text:
        return Found(text, [], [], [], [], [])
    nodes = Node.objects.filter(cluster=cluster, gone_at=None, name__icontains=text)
    pods = present_pods(cluster)
    kinds: dict[str, QuerySet[Node] | QuerySet[Gpu] | QuerySet[Pod]] = {
        "nodes": nodes.order_by("name"),
        "gpus": _gpus(cluster, text),
        "pods": pods.filter(name__icontains=text),
    }
    found = {kind: list(query[: MOST + 1]) for kind, query in kinds.items()}
    namespaces = list(
        pods.filter(namespace__icontains=text)
        .order_by("namespace")
        .values_list("namespace", flat=True)
        .distinct()[: MOST + 1]
    )
    counts = {kind: len(rows) for kind, rows in found.items()} | {"namespaces": len(namespaces)}
    return Found(
        text=text,
        nodes=found["nodes"][:MOST],  # type: ignore[arg-type]  # each kind has its own model
        gpus=found["gpus"][:MOST],  # type: ignore[arg-type]
        pods=found["pods"][:MOST],  # type: ignore[arg-type]
        namespaces=namespaces[:MOST],
        more=[kind for kind, number in counts.items() if number > MOST],
    )


def _gpus(cluster: Cluster, text: str) -> QuerySet[Gpu]:
    present = Gpu.objects.filter(node__cluster=cluster, node__gone_at=None).select_related("node")
    cut = MigInstance.objects.filter(uuid__icontains=text).values("gpu")
    named = Q(uuid__icontains=text) | Q(serial__icontains=text) | Q(pk__in=cut)
    return present.filter(named).order_by("node__name", "index")
