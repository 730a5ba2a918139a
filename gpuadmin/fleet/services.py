"""Every write to what there is now. Each function is one transaction, or part of the caller's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from gpuadmin.fleet.fitting import fit, plain
from gpuadmin.fleet.models import AgentState, Cluster, Finding, Heartbeat, Node

SAME_AGAIN = timedelta(hours=1)  # one that comes back sooner is the same finding, counted
_SAID = ("severity", "object_name", "node_name", "sentence", "advice")
TURN_SHARE = 0.8  # of an interval: a beat's own jitter costs no cycle


@dataclass(frozen=True)
class FindingFact:
    """One thing that is wrong at this moment. Keyed by (code, object_kind, object_uid)."""

    code: str
    severity: str
    object_kind: str
    object_uid: str
    object_name: str
    sentence: str
    advice: str = ""
    node_name: str = ""

    @property
    def uid(self) -> str:
        """``object_uid`` as it is stored: one that is too long is hashed, so that none collide."""
        text = plain(self.object_uid)
        return text if len(text) <= 80 else hashlib.sha256(text.encode()).hexdigest()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.code, self.object_kind, self.uid

    def columns(self) -> dict[str, Any]:
        """What of a finding may change while it is open."""
        return fit(Finding, {name: getattr(self, name) for name in _SAID})


def ensure_cluster(name: str) -> Cluster:
    """The cluster's row, made at first use."""
    return Cluster.objects.get_or_create(name=name)[0]


def take_poll_turn(cluster: Cluster, now: datetime, interval_seconds: float) -> bool:
    """Whether a cycle of the poll may begin: one an interval, however many beats there are and
    however many messages wait (fault 18). Compare-and-set on the cluster's row.

    A date in the future counts for nothing: the clock was set back.
    """
    young = now - timedelta(seconds=TURN_SHARE * interval_seconds)
    turn = Cluster.objects.filter(pk=cluster.pk).exclude(
        poll_began_at__gt=young, poll_began_at__lte=now
    )
    return turn.update(poll_began_at=now) == 1


def beat(
    cluster: Cluster, kind: str, now: datetime, *, expected_seconds: int, error: str = ""
) -> None:
    """Note that one cycle of work ended: well, or with ``error`` (a sentence)."""
    Heartbeat.objects.update_or_create(
        cluster=cluster,
        kind=kind,
        defaults={
            "at": now,
            "ok": not error,
            "message": error,
            "expected_seconds": expected_seconds,
            **({} if error else {"ok_at": now}),
        },
    )


def forget_nodes(cluster: Cluster, now: datetime, *, uids: Iterable[str]) -> None:
    """These nodes are gone. Their rows stay: history hangs on them."""
    Node.objects.filter(cluster=cluster, uid__in=list(uids), gone_at__isnull=True).update(
        gone_at=now
    )


def set_agent(node: Node, status: str, reason: str, now: datetime, **columns: Any) -> AgentState:
    """Note what is known of a node's agent; ``since`` moves only when the status does."""
    state, made = AgentState.objects.get_or_create(
        node=node, defaults={"status": status, "reason": reason, "since": now, **columns}
    )
    if made:
        return state
    if state.status != status:
        columns["since"] = now
    for name, value in {**columns, "status": status, "reason": reason}.items():
        setattr(state, name, value)
    state.save(update_fields=["status", "reason", *columns])
    return state


@transaction.atomic
def sync_findings(
    cluster: Cluster, codes: Iterable[str], facts: Iterable[FindingFact], now: datetime
) -> None:
    """Make the open findings of ``codes`` be ``facts``: open, refresh, resolve.

    One that comes back within an hour is the same row again, counted; ``first_seen`` stays.
    """
    found = {fact.key: fact for fact in facts}
    with connection.cursor() as cursor:  # the poll and the watcher come here at the same time
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('gpuadmin.findings'), %s)", [cluster.pk]
        )
    known = Finding.objects.filter(cluster=cluster, code__in=list(codes))
    ended, changed = [], []
    for row in known.filter(resolved_at__isnull=True):
        fact = found.pop(_key(row), None)
        if fact is None:
            ended.append(row.pk)
        elif _differs(row, fact):
            row.last_seen = now
            changed.append(row)
    known.filter(resolved_at__isnull=True).exclude(pk__in=ended).update(last_seen=now)
    known.filter(pk__in=ended).update(resolved_at=now)
    young = known.filter(resolved_at__isnull=False, last_seen__gt=now - SAME_AGAIN)
    for row in young.order_by("-last_seen") if found else ():
        fact = found.pop(_key(row), None)
        if fact is not None:
            _differs(row, fact)
            row.resolved_at, row.last_seen, row.count = None, now, row.count + 1
            changed.append(row)
    Finding.objects.bulk_update(changed, [*_SAID, "resolved_at", "last_seen", "count"], 500)
    Finding.objects.bulk_create((_new(cluster, fact, now) for fact in found.values()), 500)


def _key(row: Finding) -> tuple[str, str, str]:
    return row.code, row.object_kind, row.object_uid


def _differs(row: Finding, fact: FindingFact) -> bool:
    """Bring ``row`` in line with ``fact``; whether that changed anything."""
    before = [getattr(row, name) for name in _SAID]
    for name, value in fact.columns().items():
        setattr(row, name, value)
    return before != [getattr(row, name) for name in _SAID]


def _new(cluster: Cluster, fact: FindingFact, now: datetime) -> Finding:
    code, kind, uid = fact.key
    return Finding(
        cluster=cluster,
        code=code,
        object_kind=kind,
        object_uid=uid,
        first_seen=now,
        last_seen=now,
        **fact.columns(),
    )
