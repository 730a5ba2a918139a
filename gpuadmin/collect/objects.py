"""Applying what was seen of nodes and pods, many objects in few statements.

One object that can't be read, or that the database refuses, is a finding, not a failure (C36).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from django.db import DataError, IntegrityError, transaction

from gpuadmin.collect.reading import SeenNode, SeenPod
from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.fleet.nodes import store_nodes, take_names
from gpuadmin.fleet.services import FindingFact, forget_nodes
from gpuadmin.kube.objects import Unreadable
from gpuadmin.kube.stream import Changed, Listed
from gpuadmin.workloads.models import Pod
from gpuadmin.workloads.services import forget_pods, store_pods

UNREADABLE = "unreadable_object"
# What storing one odd object may raise; trouble of the database itself is none of these.
UNSTORABLE = (DataError, IntegrityError)
T = TypeVar("T", SeenNode, SeenPod)


class Unreadables:
    """The objects that can't be read or stored now, by uid; ``changed`` since it was last asked."""

    def __init__(self) -> None:
        self.facts: dict[str, FindingFact] = {}
        self.changed = True

    def note(self, found: SeenNode | SeenPod | Unreadable, word: str) -> None:
        """This object was seen: as a ``word`` (node, pod) that can, or can't, be read."""
        if isinstance(found, Unreadable):
            self.facts[found.uid or found.name] = _fact(found, word)
            self.changed = True
        else:
            self.forget(found.uid)

    def forget(self, uid: str) -> None:
        """It is gone, or it can be read."""
        if self.facts and self.facts.pop(uid, None) is not None:
            self.changed = True

    def clear(self, word: str) -> None:
        """A new list of nodes or of pods says everything anew."""
        self.facts = {uid: f for uid, f in self.facts.items() if f.object_kind != word}
        self.changed = True


@dataclass(frozen=True)
class Folded(Generic[T]):
    """A run of changes of one kind: the last readable state of each object by uid, the uids of
    those that were deleted, and, where it had a list, all uids of that (None: it had none)."""

    last: dict[str, T]
    gone: set[str]
    listed: set[str] | None


def fold(
    changes: Iterable[Listed[T] | Changed[T]], word: str, unreadable: Unreadables
) -> Folded[T]:
    """Fold a run, which may have a list as its first change. An unreadable object exists, too."""
    last: dict[str, T] = {}
    gone: set[str] = set()
    listed: set[str] | None = None
    for change in changes:
        if isinstance(change, Changed) and change.gone:
            unreadable.forget(change.object.uid or change.object.name)
            gone.add(change.object.uid)
            continue
        if isinstance(change, Listed):
            unreadable.clear(word)
            listed = {item.uid for item in change.items}
        for item in change.items if isinstance(change, Listed) else [change.object]:
            unreadable.note(item, word)
            gone.discard(item.uid)
            if not isinstance(item, Unreadable):
                last[item.uid] = item
    return Folded(last, gone, listed)


def apply_nodes(
    cluster: Cluster, run: Folded[SeenNode], unreadable: Unreadables, now: datetime
) -> set[str]:
    """Store nodes; after a list those not in it are gone (an empty list is 0: C38 t3). Gives the
    names of nodes that are new or changed."""
    seen = {uid: node for uid, node in run.last.items() if uid not in run.gone}

    def store(some: Mapping[str, SeenNode]) -> set[str]:
        take_names(cluster, {node.name: uid for uid, node in some.items()}, now)
        return store_nodes(cluster, [node.row for node in some.values()], now)

    dirty = _storing(seen, "node", unreadable, store)
    stored = Node.objects.filter(cluster=cluster, gone_at__isnull=True)
    gone = set(run.gone)
    if run.listed is not None:
        gone |= set(stored.values_list("uid", flat=True)) - run.listed - set(seen)
    if gone:
        forget_nodes(cluster, now, uids=gone)
    return dirty


def apply_pods(
    cluster: Cluster, run: Folded[SeenPod], unreadable: Unreadables, now: datetime
) -> set[str]:
    """Store pods that ask for accelerators; after a list those not in it no longer exist. One that
    came and went within the run is stored, too: it was there. Gives the names of its nodes."""
    asking = {uid: pod for uid, pod in run.last.items() if pod.row is not None}

    def store(some: Mapping[str, SeenPod]) -> set[str]:
        return store_pods(cluster, [pod.row for pod in some.values() if pod.row], now)

    dirty = _storing(asking, "pod", unreadable, store)
    gone = set(run.gone)
    if run.listed is not None:
        stored = Pod.objects.filter(cluster=cluster, gone_at__isnull=True)
        gone |= set(stored.values_list("uid", flat=True)) - run.listed - set(run.last)
    return dirty | forget_pods(cluster, gone, now) if gone else dirty


def _storing(
    objects: Mapping[str, T],
    word: str,
    unreadable: Unreadables,
    store: Callable[[Mapping[str, T]], set[str]],
) -> set[str]:
    """All at once; where the database refuses that, by halves, so that only the bad one is out."""
    if not objects:
        return set()
    try:
        with transaction.atomic():
            return store(objects)
    except UNSTORABLE as error:
        if len(objects) == 1:
            [found] = objects.values()
            refused = Unreadable(found.uid, found.name, f"not storable: {error}")
            unreadable.note(refused, word)
            return set()
    items = list(objects.items())
    half = len(items) // 2
    return set().union(
        *(_storing(dict(some), word, unreadable, store) for some in (items[:half], items[half:]))
    )


def _fact(found: Unreadable, word: str) -> FindingFact:
    return FindingFact(
        code=UNREADABLE,
        severity="warning",
        object_kind=word,
        object_uid=found.uid or found.name,
        object_name=found.name,
        sentence=f"The {word} {found.name} can't be read and is left out",
        advice=f"Its object is not as the API promises: {found.error[:300]}",
    )
