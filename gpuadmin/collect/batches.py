"""One batch of changes from both streams, applied in the watcher's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from gpuadmin.collect.agents import AgentBook
from gpuadmin.collect.objects import UNREADABLE, T, Unreadables, apply_nodes, apply_pods, fold
from gpuadmin.collect.reading import SeenNode, SeenPod
from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.fleet.services import beat, sync_findings
from gpuadmin.kube.stream import Change, Changed, Listed, Trouble
from gpuadmin.workloads.services import recount

WATCH_EXPECTED_SECONDS = 75  # the API server sends a bookmark about once a minute
KINDS = ("nodes", "pods")
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

    change: Change[SeenNode]
    kind = "nodes"


@dataclass(frozen=True)
class FromPods:
    """A change of the stream of pods."""

    change: Change[SeenPod]
    kind = "pods"


FromStream = FromNodes | FromPods


class Batch:
    """Keeps what must outlive a batch: which pods are our agents, what can't be read, and which
    nodes wait to be counted.

    Nodes are counted once both streams have spoken, with a list or with trouble: the first lists
    of 5,000 nodes and their pods come within seconds of each other, and counting is dear.
    """

    def __init__(self, find_daemonset: Callable[[], tuple[str | None, str]]) -> None:
        self._book = AgentBook(find_daemonset)
        self._unreadable = Unreadables()
        self._silent = set(KINDS)
        self._dirty: set[str] = set()
        self._count_all = True

    def apply(self, cluster: Cluster, changes: list[FromStream], now: datetime) -> None:
        """Apply the changes in order, then count each dirty node once."""
        knew_pods = cluster.pods_observed_at is not None and not cluster.pods_forbidden
        nodes = (item.change for item in changes if isinstance(item, FromNodes))
        pods = (item.change for item in changes if isinstance(item, FromPods))
        nodes_changed = self._nodes(cluster, nodes, now)
        self._pods(cluster, pods, now)
        for item in changes:
            self._heard(cluster, item, now)
        knows_pods = cluster.pods_observed_at is not None and not cluster.pods_forbidden
        self._count_all |= knew_pods != knows_pods
        if "pods" not in self._silent:
            self._book.store(cluster, now, nodes_changed=nodes_changed)
        cluster.save(update_fields=_OURS)
        if not self._silent:
            self._sync_unreadable(cluster, now)
            self._count(cluster, now)
        for kind in {item.kind for item in changes}:
            self._beat(cluster, kind, now)

    def _nodes(self, cluster: Cluster, changes: Iterable[Change[SeenNode]], now: datetime) -> bool:
        changed = False
        for run in _runs(changes):
            folded = fold(run, "node", self._unreadable)
            dirty = apply_nodes(cluster, folded, self._unreadable, now)
            changed |= bool(dirty or folded.gone or folded.listed is not None)
            self._dirty |= dirty
        return changed

    def _pods(self, cluster: Cluster, changes: Iterable[Change[SeenPod]], now: datetime) -> None:
        for run in _runs(changes):
            folded = fold(run, "pod", self._unreadable)
            self._book.note(folded.last.values(), complete=folded.listed is not None)
            self._book.forget(folded.gone)
            self._dirty |= apply_pods(cluster, folded, self._unreadable, now)

    def _count(self, cluster: Cluster, now: datetime) -> None:
        if self._count_all:
            present = Node.objects.filter(cluster=cluster, gone_at__isnull=True)
            self._dirty |= set(present.values_list("name", flat=True))
        if self._dirty:
            recount(cluster, self._dirty, now)
        self._dirty, self._count_all = set(), False

    def _heard(self, cluster: Cluster, item: FromStream, now: datetime) -> None:
        self._silent.discard(item.kind)
        if isinstance(item.change, Trouble):
            self._trouble(cluster, item.kind, item.change)
        else:
            self._seen(cluster, item.kind, now)

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

    def _sync_unreadable(self, cluster: Cluster, now: datetime) -> None:
        if self._unreadable.changed:
            sync_findings(cluster, [UNREADABLE], self._unreadable.facts.values(), now)
            self._unreadable.changed = False


def _runs(changes: Iterable[Change[T]]) -> Iterator[list[Listed[T] | Changed[T]]]:
    """Runs of changes that may be folded: a list begins a new one."""
    run: list[Listed[T] | Changed[T]] = []
    for change in changes:
        if isinstance(change, Listed) and run:
            yield run
            run = []
        if isinstance(change, Listed | Changed):
            run.append(change)
    if run:
        yield run
