"""Celery's side of the poll: thin, idempotent, and outdated work expires (C43)."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from gpuadmin.collect.cluster import note_components
from gpuadmin.collect.findings import refresh_findings
from gpuadmin.collect.poll import begin_cycle, end_shard, forget_shards, poll_shard, shards
from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.queries import the_cluster
from gpuadmin.fleet.services import take_poll_turn


@shared_task(ignore_result=True)
def poll(*, at_once: bool = False) -> None:
    """One cycle: a small cluster's agents here, each further shard of a large one as a task.

    ``at_once``: somebody wants it now, whoever else has just begun one.
    """
    begin_cycle()
    cluster = the_cluster()
    if cluster is None:
        return  # the watcher makes the row when it first runs
    if not take_poll_turn(cluster, timezone.now(), settings.POLL_SECONDS) and not at_once:
        return
    first, *more = shards(cluster) or [[]]
    forget_shards(cluster, 1 + len(more))
    for number, shard in enumerate(more, start=1):
        poll_nodes.apply_async((cluster.pk, number, shard), expires=settings.POLL_SECONDS)
    end_shard(cluster, 0, poll_shard(first))
    refresh_findings(cluster, timezone.now())


@shared_task(ignore_result=True)
def rights() -> None:
    """Ask which components of deploy/ our account holds, for the pages."""
    cluster = the_cluster()
    if cluster is not None:
        note_components(cluster, timezone.now())


@shared_task(ignore_result=True)
def poll_nodes(cluster_id: int, number: int, node_ids: list[int]) -> None:
    """One further shard of a cycle."""
    end_shard(Cluster.objects.get(pk=cluster_id), number, poll_shard(node_ids))
