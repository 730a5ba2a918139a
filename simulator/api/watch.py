"""Lists in pages and watches, both through one selector."""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from simulator.api.errors import ApiError, expired
from simulator.api.kinds import Kind
from simulator.api.selectors import Matcher
from simulator.api.store import Document, Event, Key, Store

BOOKMARK_SECONDS = 60.0
FIRST_BOOKMARK_SECONDS = 1.0
DEFAULT_TIMEOUT_SECONDS = 1800
KEPT_SNAPSHOTS = 32

Entries = list[tuple[Key, Document]]


class Pages:
    """Lists with limit and continue: the pages of one list are one snapshot."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: OrderedDict[str, tuple[int, Entries]] = OrderedDict()
        self._numbers = itertools.count(1)

    def page(self, kind: Kind, namespace: str, matches: Matcher, limit: int, token: str) -> bytes:
        """One page as bytes. Raises 400 for a token that is none, 410 for one that expired."""
        if token:
            version, entries = self._resume(token)
        else:
            version, listed = self._store.version, self._store.list(kind, namespace)
            entries = [entry for entry in listed if matches(entry[1].value)]
        page, rest = (entries[:limit], entries[limit:]) if limit else (entries, [])
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if rest:
            metadata |= {"continue": self._keep(version, rest), "remainingItemCount": len(rest)}
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
        items = b",".join(document.raw for _, document in page)
        return msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}"

    def _keep(self, version: int, rest: Entries) -> str:
        name = f"{next(self._numbers)}:{version}"
        self._snapshots[name] = (version, rest)
        if len(self._snapshots) > KEPT_SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return base64.urlsafe_b64encode(name.encode()).decode()

    def _resume(self, token: str) -> tuple[int, Entries]:
        try:
            name = base64.urlsafe_b64decode(token.encode()).decode()
            version = int(name.partition(":")[2])
        except ValueError:
            raise ApiError(400, "continue key is not valid") from None
        self._store.since(version)  # 410 after the log was forgotten
        if name not in self._snapshots:
            raise expired(version, self._store.version)
        return self._snapshots[name]


class Watch:
    """One watch: the changes after a version, then each change as it happens."""

    def __init__(
        self, store: Store, kind: Kind, namespace: str, matches: Matcher, version: str
    ) -> None:
        """Raises 400 for a version that is no number, 410 for one that is too old."""
        self._store = store
        self._kind = kind
        self._namespace = namespace
        self._matches = matches
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        if version in ("", "0"):
            for _, document in store.list(kind, namespace):
                if matches(document.value):
                    self._lines.put_nowait(_line("ADDED", document.raw))
        elif not version.isdigit():
            raise ApiError(400, f'invalid resource version: "{version}"')
        else:
            for event in store.since(int(version)):
                self._take(event)
        self.close = store.subscribe(self._take)

    async def lines(self, timeout_seconds: float, *, bookmarks: bool) -> AsyncIterator[bytes]:
        """Event lines until the time is over; bookmarks soon after the start and each minute."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_seconds
        bookmark = loop.time() + FIRST_BOOKMARK_SECONDS if bookmarks else end
        while loop.time() < end:
            try:
                async with asyncio.timeout_at(min(end, bookmark)):
                    line = await self._lines.get()
                yield line + self._waiting()
            except TimeoutError:
                if bookmarks and loop.time() >= bookmark:
                    bookmark = loop.time() + BOOKMARK_SECONDS
                    yield self._waiting() + self._bookmark()

    def _waiting(self) -> bytes:
        return b"".join(self._lines.get_nowait() for _ in range(self._lines.qsize()))

    def _take(self, event: Event) -> None:
        """An object that stops matching is deleted for this watcher, one that starts is added."""
        if event.kind is not self._kind or self._namespace not in ("", event.key[0]):
            return
        was = event.before is not None and self._matches(event.before.value)
        now = event.change != "DELETED" and self._matches(event.document.value)
        if was or now:
            change = "MODIFIED" if was and now else "ADDED" if now else "DELETED"
            self._lines.put_nowait(_line(change, event.document.raw))

    def _bookmark(self) -> bytes:
        head = {"kind": self._kind.kind, "apiVersion": self._kind.api_version}
        value = head | {"metadata": {"resourceVersion": str(self._store.version)}}
        return _line("BOOKMARK", msgspec.json.encode(value))


def _line(change: str, raw: bytes) -> bytes:
    return b'{"type":"' + change.encode() + b'","object":' + raw + b"}\n"
