"""Writing what was: raw readings by COPY into daily partitions, and hardware events.

The partitioned table ``ledger_reading``: at, gpu_id, memory_used_bytes, power_watts,
utilization_percent, temperature_celsius; NULL where it was not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.db import connection, transaction

from gpuadmin.fleet.models import Node
from gpuadmin.ledger.models import XidEvent

_COLUMNS = "at, gpu_id, memory_used_bytes, power_watts, utilization_percent, temperature_celsius"
_PREFIX = "ledger_reading_"


@dataclass(frozen=True)
class ReadingRow:
    """One card at one moment, by the server's clock."""

    at: datetime
    gpu_id: int
    memory_used_bytes: int | None
    power_watts: float | None
    utilization_percent: int | None
    temperature_celsius: int | None


def copy_readings(rows: Sequence[ReadingRow]) -> None:
    """Store readings. The partition of their day must exist: see `keep_partitions`."""
    if not rows:
        return
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY ledger_reading ({_COLUMNS}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(
                (
                    row.at,
                    row.gpu_id,
                    row.memory_used_bytes,
                    row.power_watts,
                    row.utilization_percent,
                    row.temperature_celsius,
                )
            )


def keep_readings(table: str) -> None:
    """Store what is in a table of ours with these columns already. Partitions as above."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO ledger_reading ({_COLUMNS}) SELECT {_COLUMNS} FROM {table}"  # noqa: S608
        )


def keep_partitions(now: datetime, keep_hours: int) -> list[str]:
    """Make today's and the next two days' partitions, drop those past ``keep_hours``.

    Idempotent, and safe to run twice at once. Returns the names of dropped partitions.
    """
    today = now.astimezone(UTC).date()
    oldest = (now - timedelta(hours=keep_hours)).astimezone(UTC).date()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('gpuadmin.ledger.partitions'))")
        for ahead in range(3):
            cursor.execute(_create_sql(today + timedelta(days=ahead)))
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = 'ledger_reading'::regclass"
        )
        found = [str(name) for (name,) in cursor.fetchall()]
        old = sorted(name for name in found if name < _name(oldest))
        for name in old:
            cursor.execute(f'DROP TABLE "{name}"')
    return old


def store_xids(node: Node, events: Sequence[XidEvent]) -> None:
    """Store events once each: a repeated (instance, sequence) is left alone."""
    XidEvent.objects.bulk_create(events, ignore_conflicts=True)


def _name(day: date) -> str:
    return f"{_PREFIX}{day:%Y%m%d}"


def _create_sql(day: date) -> str:
    return (
        f'CREATE TABLE IF NOT EXISTS "{_name(day)}" PARTITION OF ledger_reading'
        f" FOR VALUES FROM ('{day:%Y-%m-%d} 00:00+00')"
        f" TO ('{day + timedelta(days=1):%Y-%m-%d} 00:00+00')"
    )
