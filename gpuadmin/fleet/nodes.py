"""Writing many nodes at once: what the API server says of them, their agents, their counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from django.db import models
from django.db.models import Q

from gpuadmin.fleet.models import AgentState, Cluster, Node, NodeResource
from gpuadmin.fleet.upsert import Upsert, present
from gpuadmin.planning.facts import ResourceRow
from gpuadmin.planning.labels import MIG_STATE

_NODES = Upsert(
    Node,
    key=("cluster_id", "uid"),
    told="name",
    # A label has no time of its own: it is as old as we have seen it read so.
    merged={
        "mig_state_since": f"CASE WHEN t.labels->>'{MIG_STATE}' = EXCLUDED.labels->>'{MIG_STATE}' "
        "THEN t.mig_state_since ELSE EXCLUDED.mig_state_since END"
    },
)
_RESOURCES = Upsert(NodeResource, key=("node_id", "name"), told="name")
_PLACES = Upsert(
    AgentState,
    key=("node_id",),
    columns=("status", "reason", "since", "pod_uid", "pod_name", "address", "port"),
    told="status",
)


def store_nodes(cluster: Cluster, rows: Sequence[bytes], now: datetime) -> set[str]:
    """Insert or update nodes, JSON with their uids; the names of those where anything has changed.

    Raises DataError or IntegrityError for what the table refuses.
    """
    always = present(cluster.pk, now)
    return _NODES.write(rows, always=always, once={"first_seen": now})


def take_names(cluster: Cluster, holders: Mapping[str, str], now: datetime) -> None:
    """A name's former holder goes when a new uid takes it (C40). ``holders``: name → uid."""
    held = Node.objects.filter(cluster=cluster, gone_at__isnull=True, name__in=list(holders))
    others = held.exclude(uid__in=list(holders.values()))
    others.update(gone_at=now)


def place_agents(states: Iterable[AgentState]) -> None:
    """Where agents are, many at once; of what they reported nothing is touched."""
    columns = (*_PLACES.key, *_PLACES.columns)
    _PLACES.write([_row(state, columns) for state in states], always={})


def store_counts(counts: Mapping[int, Iterable[ResourceRow]], now: datetime) -> None:
    """Make the resource rows of these nodes, by their ids, be what was just counted."""
    rows, kept = [], Q(pk__in=[])
    names: dict[str, list[int]] = {}
    for node_id, counted in counts.items():
        for row in counted:
            names.setdefault(row.name, []).append(node_id)
            rows.append(_resource(node_id, row))
    for name, node_ids in names.items():
        kept |= Q(name=name, node__in=node_ids)
    NodeResource.objects.filter(node__in=list(counts)).exclude(kept).delete()
    _RESOURCES.write(rows, always={"observed_at": now})


def _resource(node_id: int, row: ResourceRow) -> bytes:
    columns = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    return msgspec.json.encode({**columns, "node_id": node_id, "note": row.note or ""})


def _row(model: models.Model, columns: Iterable[str]) -> bytes:
    return msgspec.json.encode({name: getattr(model, name) for name in columns})
