"""One cycle of asking agents: whom, in shards; each answer stored as it comes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, OperationalError
from django.utils import timezone

from gpuadmin.agents.client import Answer, Endpoint, ask
from gpuadmin.collect.releases import releases
from gpuadmin.collect.reports import refuse, take
from gpuadmin.collect.steady import Came, steady, store
from gpuadmin.fleet.models import AgentState, Cluster, Heartbeat
from gpuadmin.fleet.services import beat
from gpuadmin.ledger.services import keep_partitions

log = logging.getLogger(__name__)
SHARD_NODES = 1000
# Of a thousand nodes their labels and capacities cost more than all their agents' rows.
READ = (
    *(field.name for field in AgentState._meta.concrete_fields if field.name != "node"),
    "node__name",
    "node__info",
)
NOT_ASKED = (AgentState.Status.MISSING, AgentState.Status.NOT_RUNNING)


def shards(cluster: Cluster) -> list[list[int]]:
    """The ids of nodes to ask, in shards of at most a thousand."""
    found = AgentState.objects.filter(
        node__cluster=cluster, node__gone_at__isnull=True, address__isnull=False, port__isnull=False
    ).exclude(status__in=NOT_ASKED)
    ids = list(found.order_by("node__uid").values_list("node_id", flat=True))
    return [ids[i : i + SHARD_NODES] for i in range(0, len(ids), SHARD_NODES)]


def poll_shard(node_ids: Iterable[int]) -> Counter[str]:
    """Ask these nodes' agents. Returns how many ended with each status.

    A node whose answer can't be stored is logged and left to the next cycle; the others go on.
    """
    states = (
        AgentState.objects.filter(node_id__in=list(node_ids)).select_related("node").only(*READ)
    )
    now = timezone.now()
    by_pod = {state.pod_uid: state for state in states if state.address and state.port}
    to_release = releases((state.node_id for state in by_pod.values()), now)
    endpoints = [
        Endpoint(
            state.pod_uid,
            state.node.name,
            state.address or "",
            state.port or 0,
            to_release.get(state.node_id),
        )
        for state in by_pod.values()
    ]
    outcome: Counter[str] = Counter()
    answers = ask(
        endpoints,
        secret=settings.AGENT_SECRET,
        unix_seconds=now.timestamp(),
        timeout_seconds=settings.AGENT_TIMEOUT_SECONDS,
    )
    for handful in answers:
        outcome.update(_store(by_pod, handful))
    return outcome


def _store(by_pod: Mapping[str, AgentState], handful: list[Answer]) -> Iterator[str]:
    """The status of each answer: steady reports together, the others one by one."""
    now = timezone.now()
    calm = {}
    for answer in handful:
        came = _steady(by_pod[answer.endpoint.pod_uid], answer, now)
        if came is not None:
            calm[came.known.node_id] = came
    stored = _store_calm(list(calm.values()))
    for answer in handful:
        node_id = by_pod[answer.endpoint.pod_uid].node_id
        yield AgentState.Status.OK if node_id in stored else _take(node_id, answer)


def _steady(state: AgentState, answer: Answer, now: datetime) -> Came | None:
    """Whatever an agent sent, looking at it must not stop the cycle (fault 14)."""
    try:
        return steady(state, answer.report, now) if answer.report is not None else None
    except Exception:
        log.exception("The report of node %s is odd", answer.endpoint.node_name)
        return None


def _store_calm(calm: list[Came]) -> set[int]:
    """What can't be stored together goes the whole way, where one report's trouble is its own."""
    try:
        return store(calm) if calm else set()
    except DatabaseError:
        log.exception("%d steady reports could not be stored together", len(calm))
        return set()


def _take(node_id: int, answer: Answer) -> str:
    """One answer's trouble is its own: it is noted, and the others are stored."""
    try:
        return take(node_id, answer, timezone.now())
    except OperationalError:
        log.exception("The report of node %s could not be stored", answer.endpoint.node_name)
        return "not stored"
    except Exception as error:  # whatever an agent sent, it must not stop the cycle (fault 14)
        log.exception("The report of node %s can't be stored", answer.endpoint.node_name)
        refuse(node_id, f"Its report can't be stored: {type(error).__name__}.", timezone.now())
        return AgentState.Status.BAD_ANSWER


def begin_cycle() -> None:
    """Make sure that today's partition is there before readings come."""
    keep_partitions(timezone.now(), settings.RAW_HOURS)


def end_shard(cluster: Cluster, number: int, outcome: Counter[str]) -> None:
    """The heartbeat that proves a shard was asked: ``poll``, ``poll-1`` … (fleet.queries)."""
    error = "Some reports could not be stored." if outcome["not stored"] else ""
    kind = f"poll-{number}" if number else "poll"
    beat(cluster, kind, timezone.now(), expected_seconds=settings.POLL_SECONDS, error=error)


def forget_shards(cluster: Cluster, count: int) -> None:
    """Heartbeats of shards that there are no longer must not look late."""
    kinds = ["poll", *(f"poll-{number}" for number in range(1, count))]
    old = Heartbeat.objects.filter(cluster=cluster, kind__startswith="poll")
    old.exclude(kind__in=kinds).delete()
