"""One task runs the controllers when something changed that concerns them."""

from __future__ import annotations

import asyncio
import contextlib

from simulator.api.kinds import BUDGETS, DAEMONSETS, NODES, PODS, Kind
from simulator.api.objects import Objects
from simulator.api.store import Event
from simulator.control.budgets import keep_budgets
from simulator.control.daemonsets import keep_daemons
from simulator.control.evictions import Evictions
from simulator.control.lifecycle import keep_taints
from simulator.control.matching import Value
from simulator.control.scheduler import schedule

SETTLE_SECONDS = 0.02  # a burst of changes is one pass


class Controllers:
    """Node lifecycle, taint manager, DaemonSets, budgets and scheduler over one store."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._evictions = Evictions(objects)
        self._dirty = asyncio.Event()
        objects.store.subscribe(self._notice)

    async def run(self) -> None:
        """Until cancelled."""
        next_eviction: float | None = None
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._dirty.wait(), next_eviction)
            await asyncio.sleep(SETTLE_SECONDS)
            self._dirty.clear()
            next_eviction = self.reconcile()

    def reconcile(self) -> float | None:
        """One pass. Answers the seconds until a pod must be evicted, None when none must."""
        objects = self._objects
        keep_taints(objects, self._values(NODES))
        next_eviction = self._evictions.evict(self._values(NODES), self._values(PODS))
        keep_daemons(objects, self._values(NODES), self._values(PODS))
        keep_budgets(objects, self._values(PODS))
        schedule(objects, self._values(NODES), self._values(PODS))
        return next_eviction

    def _values(self, kind: Kind) -> list[Value]:
        return [document.value for _, document in self._objects.store.list(kind)]

    def _notice(self, event: Event) -> None:
        if event.kind in (NODES, PODS, DAEMONSETS, BUDGETS):
            self._dirty.set()
