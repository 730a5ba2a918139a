"""New readings of cards that are otherwise as they were: many nodes in three statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from gpuadmin.fleet.models import AgentState


@dataclass(frozen=True)
class Standing:
    """What the last whole store of a node's report left (`planning.steady`): the digests, and the
    ids of its cards and instances in the report's order."""

    node_id: int
    digest: str
    processes_digest: str
    card_ids: list[int]
    instance_ids: list[int]


@dataclass(frozen=True)
class AgentRow:
    """One agent that reported as before: ``digest`` must still be the stored one."""

    node_id: int
    at: datetime
    digest: str
    processes_digest: str
    clock_skew_seconds: float


class CardRow(NamedTuple):
    """One card's readings; None is unknown. ``idle``: True held and unused, False not, None not
    known, so that what was known stays (C28)."""

    gpu_id: int
    at: datetime
    memory_used_bytes: int | None
    utilization_percent: int | None
    temperature_celsius: int | None
    power_watts: float | None
    idle: bool | None


_AGENTS = """
UPDATE fleet_agentstate AS known
   SET asked_at = came.at, reported_at = came.at, processes_digest = came.processes,
       clock_skew_seconds = came.skew
  FROM unnest(%s::bigint[], %s::timestamptz[], %s::text[], %s::text[], %s::float8[])
       AS came(node_id, at, digest, processes, skew), fleet_node AS node
 WHERE known.node_id = came.node_id AND known.status = 'ok' AND known.digest = came.digest
   AND node.id = came.node_id AND node.gone_at IS NULL
RETURNING known.node_id
"""
# The readings travel once: latest and raw ones are both taken from this table.
CAME = "came_readings"
_TABLE = f"""
CREATE TEMPORARY TABLE IF NOT EXISTS {CAME} (
    gpu_id bigint, at timestamptz, memory_used_bytes bigint, utilization_percent smallint,
    temperature_celsius smallint, power_watts float8, idle boolean
) ON COMMIT DELETE ROWS;
DELETE FROM {CAME};
"""  # noqa: S608 - the name is ours
_CARDS = f"""
UPDATE fleet_gpu AS card
   SET read_at = came.at, memory_used_bytes = came.memory_used_bytes,
       utilization_percent = came.utilization_percent,
       temperature_celsius = came.temperature_celsius, power_watts = came.power_watts,
       idle_since = CASE WHEN came.idle THEN COALESCE(card.idle_since, came.at)
                         WHEN came.idle IS NULL THEN card.idle_since END
  FROM {CAME} AS came
 WHERE card.id = came.gpu_id
"""  # noqa: S608 - the name is ours
_INSTANCES = """
UPDATE fleet_miginstance AS each SET memory_used_bytes = came.memory
  FROM unnest(%s::bigint[], %s::bigint[]) AS came(id, memory)
 WHERE each.id = came.id AND each.memory_used_bytes IS DISTINCT FROM came.memory
"""
_PROCESSES = """
UPDATE fleet_gpu AS card SET processes = came.processes, unreadable_processes = came.unreadable
  FROM unnest(%s::bigint[], %s::jsonb[], %s::int[]) AS came(id, processes, unreadable)
 WHERE card.id = came.id
"""


def note_standing(node_id: int, standing: Standing) -> None:
    """Remember what a whole store left, so that the next report may be a steady one."""
    AgentState.objects.filter(node_id=node_id).update(
        digest=standing.digest,
        processes_digest=standing.processes_digest,
        card_ids=standing.card_ids,
        instance_ids=standing.instance_ids,
    )


def still_standing(rows: Sequence[AgentRow]) -> set[int]:
    """Date the agents' rows; returns the nodes that still are as their report assumes. The others
    have changed meanwhile: their report has to go the whole way.
    """
    ordered = sorted(rows, key=lambda row: row.node_id)
    with connection.cursor() as cursor:
        cursor.execute(
            _AGENTS,
            [
                [row.node_id for row in ordered],
                [row.at for row in ordered],
                [row.digest for row in ordered],
                [row.processes_digest for row in ordered],
                [row.clock_skew_seconds for row in ordered],
            ],
        )
        return {node_id for (node_id,) in cursor.fetchall()}


def store_latest(cards: Iterable[CardRow]) -> None:
    """The cards' latest readings. Until the end of the transaction they are in the table CAME."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLE)
        with cursor.copy(f"COPY {CAME} FROM STDIN") as copy:
            for card in cards:
                copy.write_row(card)
        cursor.execute(_CARDS)


def store_instance_memory(used: Sequence[tuple[int, int | None]]) -> None:
    """Memory in use by instance id; rows that are so already are left alone."""
    _run(_INSTANCES, [[pk for pk, _ in used], [memory for _, memory in used]])


def store_processes(found: Sequence[tuple[int, str | None, int]]) -> None:
    """Card id, its processes as JSON (None: not readable), how many entries were unreadable."""
    _run(_PROCESSES, [list(column) for column in zip(*found, strict=True)] or [[]])


def _run(statement: str, columns: list[list[Any]]) -> None:
    if columns[0]:
        with connection.cursor() as cursor:
            cursor.execute(statement, columns)
