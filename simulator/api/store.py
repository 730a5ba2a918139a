"""One store for every kind: immutable JSON documents, one version counter, one log of changes.

A write replaces a document; nobody changes one in place. So a list is a consistent snapshot by
itself, and a watch can be replayed from the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Literal, NamedTuple

import msgspec

from simulator.api.errors import expired
from simulator.api.kinds import Kind

Key = tuple[str, str]  # namespace ("" for cluster objects), name
Change = Literal["ADDED", "MODIFIED", "DELETED"]
LOG_LENGTH = 4000


class Document(NamedTuple):
    """One version of one object, with its bytes as they go over the wire."""

    value: dict[str, Any]
    raw: bytes
    version: int


class Event(NamedTuple):
    """One change. ``before`` is what a selector saw until now, None for a new object."""

    change: Change
    kind: Kind
    key: Key
    document: Document
    before: Document | None


class Store:
    """Documents by kind and key. Keys are listed in order, as etcd does."""

    def __init__(self, log_length: int = LOG_LENGTH) -> None:
        self.version = 1
        self._documents: dict[Kind, dict[Key, Document]] = {}
        self._log: deque[Event] = deque(maxlen=log_length)
        self._forgotten = 0  # version of the newest change that fell out of the log
        self._listeners: dict[int, Callable[[Event], None]] = {}
        self._numbers = count()

    def get(self, kind: Kind, key: Key) -> Document | None:
        return self._documents.get(kind, {}).get(key)

    def list(self, kind: Kind, namespace: str = "") -> list[tuple[Key, Document]]:
        """All documents of a kind, or those of one namespace, in key order."""
        items = self._documents.get(kind, {}).items()
        return sorted(item for item in items if not namespace or item[0][0] == namespace)

    def put(self, kind: Kind, key: Key, value: dict[str, Any]) -> Document:
        """Store ``value`` as the new version; its metadata must be the caller's own copy."""
        before = self.get(kind, key)
        document = self._stamp(value)
        self._documents.setdefault(kind, {})[key] = document
        self._publish(Event("MODIFIED" if before else "ADDED", kind, key, document, before))
        return document

    def delete(self, kind: Kind, key: Key) -> Document:
        """Remove, and answer the last document, stamped with the version of its end."""
        before = self._documents[kind].pop(key)
        document = self._stamp({**before.value, "metadata": {**before.value["metadata"]}})
        self._publish(Event("DELETED", kind, key, document, before))
        return document

    def since(self, version: int) -> Iterator[Event]:
        """The kept changes after ``version``; raises 410 when some are forgotten."""
        if version < self._forgotten:
            raise expired(version, self._forgotten)
        return (event for event in tuple(self._log) if event.document.version > version)

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``listener`` at each change, at once and in order; answers how to end that."""
        number = next(self._numbers)
        self._listeners[number] = listener

        def stop() -> None:
            self._listeners.pop(number, None)

        return stop

    def _stamp(self, value: dict[str, Any]) -> Document:
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        return Document(value, msgspec.json.encode(value), self.version)

    def _publish(self, event: Event) -> None:
        if len(self._log) == self._log.maxlen:
            self._forgotten = self._log[0].document.version
        self._log.append(event)
        for listener in tuple(self._listeners.values()):
            listener(event)
