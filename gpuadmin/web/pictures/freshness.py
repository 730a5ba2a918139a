"""How old a page's numbers are, and what to say when they are late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.queries import Freshness

KINDS = {
    "watch-nodes": "the cluster's nodes",
    "watch-pods": "the cluster's pods",
    "poll": "the agents",
}


@dataclass(frozen=True)
class Heart:
    """``agents`` and ``cluster`` are when each source was last read well; None: never."""

    agents: datetime | None
    cluster: datetime | None
    late: bool
    warnings: list[str]

    @property
    def collected(self) -> datetime | None:
        """What the head of a page says: the agents', where any has ever been read."""
        return self.agents or self.cluster


def heart(cluster: Cluster, beats: Iterable[Freshness], now: datetime) -> Heart:
    """From the heartbeats of one cluster; a cycle that never beat is late."""
    by_kind = {beat.kind: beat for beat in beats}
    read = {kind: _read_at(by_kind.get(kind), now) for kind in KINDS}
    watched = [at for kind in ("watch-nodes", "watch-pods") if (at := read[kind])]
    # That we may not list pods is a right that is missing, not lateness: pages say it apart.
    kinds = [kind for kind in KINDS if not (cluster.pods_forbidden and kind == "watch-pods")]
    warnings = [_warning(kind, by_kind.get(kind)) for kind in kinds]
    pods_error = "" if cluster.pods_forbidden else cluster.pods_error
    warnings += [error for error in (cluster.nodes_error, pods_error) if error]
    said = list(dict.fromkeys(text for text in warnings if text))
    return Heart(
        agents=read["poll"],
        cluster=min(watched, default=None),
        late=bool(said),
        warnings=said,
    )


def _read_at(beat: Freshness | None, now: datetime) -> datetime | None:
    if beat is None or beat.age_seconds is None:
        return None
    return now - timedelta(seconds=beat.age_seconds)


def _warning(kind: str, beat: Freshness | None) -> str:
    what = KINDS[kind]
    if beat is None or beat.age_seconds is None:
        reason = beat.message if beat and beat.message else "Is its process running?"
        return f"Never read {what} yet. {reason}"
    if beat.late or not beat.ok:
        return beat.message or f"Reading {what} is late. Is its process running?"
    return ""
