"""What pages, API and health checks ask about clusters, findings and the age of the data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Case, IntegerField, QuerySet, Value, When

from gpuadmin.fleet.models import Cluster, Finding, Gpu, Heartbeat
from gpuadmin.planning.unread import why_unread

LATE_AFTER_CYCLES = 3
KINDS = ("watch-nodes", "watch-pods", "poll")
NEW_CLUSTER_SECONDS = 60  # so long may each cycle take to come for the first time
# A card's measured columns, and what the wire calls those whose name differs.
_MEASURED = (
    "memory_total_bytes",
    "memory_used_bytes",
    "utilization_percent",
    "temperature_celsius",
    "power_watts",
    "power_limit_watts",
    "ecc_uncorrectable",
)
_ON_THE_WIRE = {"ecc_uncorrectable": "ecc_uncorrectable_volatile"}


@dataclass(frozen=True)
class Freshness:
    """How old what we show is. ``age_seconds`` is None before the first good cycle."""

    kind: str
    ok: bool
    late: bool
    age_seconds: float | None
    message: str


def clusters() -> QuerySet[Cluster]:
    return Cluster.objects.order_by("name")


def the_cluster(name: str | None = None) -> Cluster | None:
    """The cluster asked for, else that of the settings, else the first (before it is known)."""
    if name:
        return clusters().filter(name=name).first()
    return clusters().filter(name=settings.CLUSTER_NAME).first() or clusters().first()


def freshness(cluster: Cluster, now: datetime) -> list[Freshness]:
    """One entry per kind of cycle, those that never were included; late after three missed ones.

    A poll in several shards (``poll``, ``poll-1`` …) is as fresh as its worst.
    """
    found: dict[str, list[Freshness]] = {kind: [] for kind in KINDS}
    for beat in Heartbeat.objects.filter(cluster=cluster):
        kind = "poll" if beat.kind.startswith("poll-") else beat.kind
        found.setdefault(kind, []).append(_freshness(beat, kind, now))
    young = (now - cluster.created_at).total_seconds() < NEW_CLUSTER_SECONDS
    never = "It has not been seen to work yet."
    return [
        max(each, key=lambda f: (f.late, not f.ok, f.age_seconds or 0))
        if each
        else Freshness(kind, ok=young, late=not young, age_seconds=None, message=never)
        for kind, each in found.items()
    ]


def open_findings(cluster: Cluster) -> QuerySet[Finding]:
    """Worst first, then the newest."""
    rank = Case(
        When(severity=Finding.Severity.CRITICAL, then=Value(0)),
        When(severity=Finding.Severity.WARNING, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    return Finding.objects.filter(cluster=cluster, resolved_at__isnull=True).order_by(
        rank, "-first_seen", "id"
    )


def why_null(gpu: Gpu) -> dict[str, str]:
    """Of each measured column of a card that is null, the reason as a clause."""
    return {
        name: why_unread(
            name,
            gpu.field_errors.get(_ON_THE_WIRE.get(name, name)),
            mig=bool(gpu.mig_mode_current),
            unified=gpu.memory_kind == "unified",
        )
        if gpu.read_at
        else "the card was never read"
        for name in _MEASURED
        if getattr(gpu, name) is None
    }


def _freshness(beat: Heartbeat, kind: str, now: datetime) -> Freshness:
    age = (now - beat.ok_at).total_seconds() if beat.ok_at else None
    late = age is None or age > LATE_AFTER_CYCLES * beat.expected_seconds
    return Freshness(kind, beat.ok, late, age, beat.message)
