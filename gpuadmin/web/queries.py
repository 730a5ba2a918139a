"""Reads that only pages need, on top of the queries that they share with the API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from gpuadmin.fleet.models import Cluster, Heartbeat, Node
from gpuadmin.ledger.models import XidEvent
from gpuadmin.operations.models import FINAL_STATES, Operation, State
from gpuadmin.operations.queries import operations

STUCK_SHOWN_FOR = timedelta(days=1)


def gpu_node_count(cluster: Cluster) -> int:
    """As many as the table of nodes has rows."""
    present = Node.objects.filter(cluster=cluster, gone_at__isnull=True)
    return present.filter(Q(is_gpu_node=True) | Q(gpus__isnull=False)).distinct().count()


def under_way(cluster: Cluster, now: datetime) -> QuerySet[Operation]:
    """Operations that are not over, and those that got stuck within the last day."""
    stuck = Q(state=State.STUCK, finished_at__gte=now - STUCK_SHOWN_FOR)
    return (
        operations(cluster)
        .filter(~Q(state__in=FINAL_STATES) | stuck)
        .prefetch_related("targets__steps")
    )


def xids_of(node: Node, limit: int) -> QuerySet[XidEvent]:
    """The newest XIDs of a node, and the gaps in which nobody listened."""
    return XidEvent.objects.filter(node=node).order_by("-at")[:limit]


def present_nodes(cluster: Cluster, names: Sequence[str]) -> QuerySet[Node]:
    """The nodes that bear these names now, by name."""
    present = Node.objects.filter(cluster=cluster, gone_at__isnull=True, name__in=names)
    return present.order_by("name")


def heartbeats(cluster: Cluster) -> QuerySet[Heartbeat]:
    """What each process last did."""
    return Heartbeat.objects.filter(cluster=cluster).order_by("kind")
