"""Reading what was: the last hours of each card, in steps that a chart can show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection

# Range and step. A step is at least two polls of 15 s, and a range at most 180 steps.
RANGES = {
    "1h": (timedelta(hours=1), timedelta(seconds=30)),
    "6h": (timedelta(hours=6), timedelta(minutes=2)),
    "24h": (timedelta(hours=24), timedelta(minutes=10)),
    "48h": (timedelta(hours=48), timedelta(minutes=20)),
}
DEFAULT_RANGE = "6h"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SQL = """
SELECT gpu_id, date_bin(%s::interval, at, %s) AS step, count(*),
       round(avg(utilization_percent), 1)::float8,
       round(avg(memory_used_bytes))::bigint, max(temperature_celsius), avg(power_watts)::float8
FROM ledger_reading
WHERE gpu_id = ANY(%s) AND at >= %s AND at < %s
GROUP BY gpu_id, step ORDER BY gpu_id, step
"""


@dataclass(frozen=True)
class Step:
    """One card over one step: means, but the temperature's highest. None: it was not measured."""

    at: datetime  # where the step begins
    samples: int
    utilization_percent: float | None
    memory_used_bytes: int | None
    temperature_celsius: int | None
    power_watts: float | None


@dataclass(frozen=True)
class Readings:
    """Steps by the card's row id. A step in which nothing was read is not there: a gap."""

    since: datetime
    until: datetime
    step: timedelta
    of: dict[int, list[Step]]


def readings(gpus: Sequence[int], span: str, now: datetime) -> Readings:
    """The last hours of some cards, one query. ``span`` is a key of RANGES. Steps begin at
    multiples of their length, so that a later call gives the same ones."""
    length, step = RANGES[span]
    until = now - (now - _EPOCH) % step + step
    since = until - length
    found: dict[int, list[Step]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_SQL, [f"{step.total_seconds()} s", _EPOCH, list(gpus), since, until])
        for gpu, *columns in cursor.fetchall():
            found[gpu].append(Step(*columns))
    return Readings(since, until, step, dict(found))
