"""What was found, in groups, each with the page that it leads to."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from gpuadmin.web.pictures.text import plain, short_uuid
from gpuadmin.workloads.models import Pod
from gpuadmin.workloads.search import Found


@dataclass(frozen=True)
class Hit:
    words: str
    detail: str
    href: str


@dataclass(frozen=True)
class Group:
    title: str
    hits: list[Hit]
    more: bool


def groups(found: Found) -> list[Group]:
    """Nodes, cards, pods, namespaces; only those of which there are any."""
    nodes = [Hit(node.name, "", _node(node.name)) for node in found.nodes]
    gpus = [
        Hit(
            f"{gpu.node.name} GPU {gpu.index}",
            " · ".join(filter(None, [short_uuid(gpu.uuid), gpu.serial])),
            f"{_node(gpu.node.name)}#gpu-{gpu.index}",
        )
        for gpu in found.gpus
    ]
    pods = [
        Hit(plain(pod.name), f"{plain(pod.namespace)} · {_where(pod)}", _pod(pod))
        for pod in found.pods
    ]
    namespaces = [
        Hit(plain(name), "nodes on which it holds cards", _namespace(name))
        for name in found.namespaces
    ]
    kinds = {"nodes": nodes, "gpus": gpus, "pods": pods, "namespaces": namespaces}
    titles = {"nodes": "Nodes", "gpus": "Cards", "pods": "Pods", "namespaces": "Namespaces"}
    return [Group(titles[kind], hits, kind in found.more) for kind, hits in kinds.items() if hits]


def _node(name: str) -> str:
    return reverse("node", args=[name])


def _where(pod: Pod) -> str:
    return f"{pod.phase.lower()} on {pod.node_name}" if pod.node_name else "waits for a node"


def _pod(pod: Pod) -> str:
    return f"{_node(pod.node_name)}#pods" if pod.node_name else reverse("overview") + "#waits"


def _namespace(name: str) -> str:
    return f"{reverse('nodes')}?{urlencode({'namespace': name})}"
