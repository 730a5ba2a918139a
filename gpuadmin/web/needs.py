"""Every permission that we need in the cluster, and what for. deploy/rbac grants just these."""

from __future__ import annotations

from django.conf import settings

from gpuadmin.kube.access import Need


def needs() -> list[Need]:
    """In the order of the Set-up page."""
    nodes = "Nodes carry the cards: what there is, its labels, taints and conditions"
    pods = "Pods hold the cards: without them, requested and free stay unknown"
    agents = "A pod is our agent only when our own DaemonSet controls it"
    return [
        *(Need(verb, "nodes", nodes) for verb in ("get", "list", "watch")),
        *(Need(verb, "pods", pods) for verb in ("get", "list", "watch")),
        Need("get", "daemonsets", agents, "apps", settings.NAMESPACE),
        Need("patch", "nodes", "To add and remove taints; without it the pages only show"),
    ]
