"""Celery's side of the poll: thin, idempotent, and outdated work expires (C43)."""

from __future__ import annotations

from collections import Counter

from celery import shared_task
from django.conf import settings

from gpuadmin.collect.poll import begin_cycle, end_cycle, poll_shard, shards
from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.queries import clusters


@shared_task(ignore_result=True)
def poll() -> None:
    """One cycle over every cluster: small ones here, the shards of large ones each as a task."""
    begin_cycle()
    for cluster in clusters():
        found = shards(cluster)
        for shard in found[1:]:
            poll_nodes.apply_async((shard,), expires=settings.POLL_SECONDS)
        outcome = poll_shard(found[0]) if found else Counter[str]()
        end_cycle(Cluster.objects.get(pk=cluster.pk), outcome)


@shared_task(ignore_result=True)
def poll_nodes(node_ids: list[int]) -> None:
    """One further shard of a cycle."""
    poll_shard(node_ids)
