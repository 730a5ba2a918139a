"""One cycle of asking agents: whom, in shards; each answer stored as it comes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from gpuadmin.agents.client import Endpoint, ask
from gpuadmin.collect.findings import refresh_findings
from gpuadmin.collect.reports import take
from gpuadmin.fleet.models import AgentState, Cluster
from gpuadmin.fleet.services import beat
from gpuadmin.ledger.services import keep_partitions

log = logging.getLogger(__name__)
SHARD_NODES = 250
ASKABLE_WITHOUT_ADDRESS = (AgentState.Status.MISSING, AgentState.Status.NOT_RUNNING)


def shards(cluster: Cluster) -> list[list[int]]:
    """The ids of nodes to ask, in shards of at most 250."""
    found = AgentState.objects.filter(
        node__cluster=cluster, node__gone_at__isnull=True, address__isnull=False, port__isnull=False
    ).exclude(status__in=ASKABLE_WITHOUT_ADDRESS)
    ids = list(found.order_by("node__uid").values_list("node_id", flat=True))
    return [ids[i : i + SHARD_NODES] for i in range(0, len(ids), SHARD_NODES)]


def poll_shard(node_ids: Iterable[int]) -> Counter[str]:
    """Ask these nodes' agents. Returns how many ended with each status.

    A node whose answer can't be stored is logged and left to the next cycle; the others go on.
    """
    states = AgentState.objects.filter(node_id__in=list(node_ids)).select_related("node")
    by_pod = {state.pod_uid: state for state in states if state.address and state.port}
    endpoints = [
        Endpoint(state.pod_uid, state.node.name, state.address or "", state.port or 0)
        for state in by_pod.values()
    ]
    outcome: Counter[str] = Counter()
    answers = ask(
        endpoints,
        secret=settings.AGENT_SECRET,
        unix_seconds=timezone.now().timestamp(),
        timeout_seconds=settings.AGENT_TIMEOUT_SECONDS,
    )
    for answer in answers:
        node_id = by_pod[answer.endpoint.pod_uid].node_id
        try:
            outcome[take(node_id, answer, timezone.now())] += 1
        except DatabaseError:
            log.exception("The report of node %s could not be stored", answer.endpoint.node_name)
            outcome["not stored"] += 1
    return outcome


def begin_cycle() -> None:
    """Make sure that today's partition is there before readings come."""
    keep_partitions(timezone.now(), settings.RAW_HOURS)


def end_cycle(cluster: Cluster, outcome: Counter[str]) -> None:
    """Findings, and the heartbeat that proves the cycle was done."""
    now = timezone.now()
    error = "Some reports could not be stored." if outcome["not stored"] else ""
    beat(cluster, "poll", now, expected_seconds=settings.POLL_SECONDS, error=error)
    refresh_findings(cluster, now)
