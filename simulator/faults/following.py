"""The simulated API follows the situations in its own store."""

from __future__ import annotations

from collections.abc import Callable

from simulator.api.kinds import CONFIGMAPS
from simulator.api.store import Event, Store
from simulator.faults.situations import CONFIGMAP_KEY, Situation, read_configmap


def follow(store: Store, take: Callable[[list[Situation]], None]) -> None:
    """Call ``take`` with all situations whenever they change."""

    def notice(event: Event) -> None:
        if event.kind is CONFIGMAPS and event.key == CONFIGMAP_KEY:
            take(read_configmap({} if event.change == "DELETED" else event.document.value))

    store.subscribe(notice)
