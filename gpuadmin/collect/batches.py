"""One batch of changes from both streams, applied in the watcher's transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpuadmin.collect.objects import (
    UNREADABLE,
    Applied,
    PodBook,
    apply_nodes,
    store_agents,
    uid_of,
)
from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.services import FindingFact, beat, forget_nodes, sync_findings
from gpuadmin.kube import structs
from gpuadmin.kube.stream import Alive, Change, Changed, Listed, Trouble
from gpuadmin.workloads.services import recount

WATCH_EXPECTED_SECONDS = 75  # the API server sends a bookmark about once a minute
LOOK_AGAIN = timedelta(seconds=10)  # for our DaemonSet, while there is none
_OURS = (
    "nodes_observed_at",
    "nodes_error",
    "pods_observed_at",
    "pods_error",
    "pods_forbidden",
)


@dataclass(frozen=True)
class FromNodes:
    """A change of the stream of nodes."""

    change: Change[structs.Node]
    kind = "nodes"


@dataclass(frozen=True)
class FromPods:
    """A change of the stream of pods."""

    change: Change[structs.Pod]
    kind = "pods"


FromStream = FromNodes | FromPods


class Batch:
    """Keeps what must outlive a batch: which pods are our agents, what can't be read.

    ``find_daemonset()`` reads our DaemonSet's uid, or a sentence why there is none.
    """

    def __init__(
        self, namespace: str, find_daemonset: Callable[[], tuple[str | None, str]]
    ) -> None:
        self._find_daemonset = find_daemonset
        self._book = PodBook(namespace)
        self._ours: str | None = None
        self._why_none = ""
        self._looked_at: datetime | None = None
        self._looked_among: set[str] = set()
        self._unreadable: dict[str, FindingFact] = {}

    def apply(self, cluster: Cluster, changes: list[FromStream], now: datetime) -> None:
        """Apply the changes in order, then count each dirty node once."""
        applied = Applied()
        for item in changes:
            if isinstance(item.change, Trouble):
                self._trouble(cluster, item.kind, item.change)
                continue
            self._seen(cluster, item.kind, now)
            if isinstance(item, FromNodes):
                self._nodes(cluster, item.change, applied, now)
            else:
                self._pods(cluster, item.change, applied, now)
        looked = self._look_for_daemonset(now)
        if looked or any(not isinstance(item.change, Alive | Trouble) for item in changes):
            store_agents(cluster, self._book.agents(self._ours), self._why_none, now)
        cluster.save(update_fields=_OURS)
        self._sync_unreadable(cluster, applied, now)
        if applied.dirty:
            recount(cluster, applied.dirty, now)
        for kind in {item.kind for item in changes}:
            self._beat(cluster, kind, now)

    def _nodes(
        self, cluster: Cluster, change: Change[structs.Node], applied: Applied, now: datetime
    ) -> None:
        if isinstance(change, Listed):
            self._unreadable = {
                u: f for u, f in self._unreadable.items() if f.object_kind != "node"
            }
            apply_nodes(cluster, change.items, applied, now, complete=True)
        elif not isinstance(change, Changed):
            return
        elif change.gone:
            uid = uid_of(change.object)
            applied.unreadable[uid] = None
            forget_nodes(cluster, now, uids=[uid])
        else:
            apply_nodes(cluster, [change.object], applied, now)

    def _pods(
        self, cluster: Cluster, change: Change[structs.Pod], applied: Applied, now: datetime
    ) -> None:
        if isinstance(change, Listed):
            self._looked_at = None
            self._unreadable = {u: f for u, f in self._unreadable.items() if f.object_kind != "pod"}
            self._book.apply(cluster, change.items, applied, now, complete=True)
        elif not isinstance(change, Changed):
            return
        elif change.gone:
            self._book.forget(cluster, uid_of(change.object), applied, now)
        else:
            self._book.apply(cluster, [change.object], applied, now)

    def _look_for_daemonset(self, now: datetime) -> bool:
        """Read our DaemonSet's uid where it may be another now; whether it was read.

        After each list of pods; at once when a DaemonSet that we have not seen has pods in our
        namespace (ours was made, or made anew); and every 10 s while there is none, since the
        right to read it may have come.
        """
        among = self._book.daemonsets
        stranger = bool(among - self._looked_among - {self._ours})
        if self._looked_at is not None and not stranger:
            waits = now - self._looked_at < LOOK_AGAIN
            if self._ours is not None or waits:
                return False
        self._ours, self._why_none = self._find_daemonset()
        self._looked_at, self._looked_among = now, among
        return True

    def _seen(self, cluster: Cluster, kind: str, now: datetime) -> None:
        if kind == "nodes":
            cluster.nodes_observed_at, cluster.nodes_error = now, ""
        else:
            cluster.pods_observed_at, cluster.pods_error = now, ""
            cluster.pods_forbidden = False

    def _trouble(self, cluster: Cluster, kind: str, trouble: Trouble) -> None:
        """Nothing is deleted and nothing is counted as zero: only the sentence is noted (C38)."""
        if kind == "nodes":
            cluster.nodes_error = trouble.sentence
        else:
            cluster.pods_error = trouble.sentence
            cluster.pods_forbidden = trouble.forbidden

    def _beat(self, cluster: Cluster, kind: str, now: datetime) -> None:
        error = cluster.nodes_error if kind == "nodes" else cluster.pods_error
        beat(cluster, f"watch-{kind}", now, expected_seconds=WATCH_EXPECTED_SECONDS, error=error)

    def _sync_unreadable(self, cluster: Cluster, applied: Applied, now: datetime) -> None:
        before = dict(self._unreadable)
        for uid, fact in applied.unreadable.items():
            if fact is None:
                self._unreadable.pop(uid, None)
            else:
                self._unreadable[uid] = fact
        if self._unreadable or before:
            sync_findings(cluster, [UNREADABLE], self._unreadable.values(), now)
