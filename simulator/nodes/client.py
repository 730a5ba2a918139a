"""A small Kubernetes client for the simulated nodes: JSON over one aiohttp session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Self

import aiohttp
import msgspec

from simulator.kubeconfig import Connection

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
WATCH_SECONDS = 300
MAX_BACKOFF_SECONDS = 10.0

log = logging.getLogger(__name__)

Value = dict[str, Any]


class KubeError(Exception):
    """The API server refused; ``code`` is its HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Kube:
    """Calls on paths such as ``/api/v1/nodes/x``. Every call raises ``KubeError`` when refused."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        token = self._connection.token
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {token}"} if token else {},
            connector=aiohttp.TCPConnector(ssl=self._connection.tls or True, limit=16),
            timeout=aiohttp.ClientTimeout(total=15),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def get(self, path: str) -> Value:
        """One object, or a list whole."""
        return await self._call("GET", path)

    async def create(self, path: str, value: Value) -> Value:
        """POST to a collection."""
        return await self._call("POST", path, value)

    async def create_once(self, path: str, value: Value) -> Value | None:
        """Like ``create``; None when it is there already."""
        try:
            return await self.create(path, value)
        except KubeError as error:
            if error.code == 409:
                return None
            raise

    async def update(self, path: str, value: Value) -> Value:
        """PUT."""
        return await self._call("PUT", path, value)

    async def patch(self, path: str, value: Value, kind: str = MERGE_PATCH) -> Value:
        """PATCH, merge or strategic."""
        return await self._call("PATCH", path, value, kind)

    async def delete(self, path: str, uid: str | None = None, grace: int | None = None) -> None:
        """DELETE; an object that is gone, or another one by that name, is no error."""
        options: Value = {} if grace is None else {"gracePeriodSeconds": grace}
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            await self._call("DELETE", path, options)
        except KubeError as error:
            if error.code not in (404, 409):
                raise

    async def follow(self, path: str) -> AsyncIterator[tuple[str, Value]]:
        """ADDED, MODIFIED and DELETED for ever: lists, watches, and lists again when it must.

        An object that vanished between two watches is DELETED; "SYNCED" follows each list.
        """
        known: dict[str, Value] = {}
        backoff = 0.2
        while True:
            try:
                listed = await self.get(path)
                fresh = {each["metadata"]["uid"]: each for each in listed.get("items") or []}
                for uid in known.keys() - fresh.keys():
                    yield "DELETED", known[uid]
                for value in fresh.values():
                    yield "ADDED", value
                known = fresh
                yield "SYNCED", {}
                backoff = 0.2
                version = listed["metadata"]["resourceVersion"]
                async for change, value in self._watch(path, version):
                    uid = value["metadata"]["uid"]
                    if change == "DELETED":
                        known.pop(uid, None)
                    else:
                        known[uid] = value
                    yield change, value
            except (KubeError, aiohttp.ClientError, TimeoutError) as error:
                log.warning("following %s: %s; again in %.1f s", path, error, backoff)
                await asyncio.sleep(backoff)
                backoff = min(MAX_BACKOFF_SECONDS, backoff * 2)

    async def _watch(self, path: str, version: str) -> AsyncIterator[tuple[str, Value]]:
        """Watches on from version to version; returns when one is too old to go on from."""
        assert self._session is not None  # noqa: S101 - only used inside ``async with``
        while True:
            query = {
                "watch": "true",
                "resourceVersion": version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": str(WATCH_SECONDS),
            }
            timeout = aiohttp.ClientTimeout(total=WATCH_SECONDS + 15, sock_read=120)
            url = self._connection.server + path
            async with self._session.get(url, params=query, timeout=timeout) as response:
                if response.status != 200:
                    raise KubeError(response.status, "the watch was refused")
                async for line in _lines(response.content):
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        return
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield event["type"], event["object"]

    async def _call(
        self, method: str, path: str, value: Value | None = None, kind: str = "application/json"
    ) -> Value:
        assert self._session is not None  # noqa: S101 - only used inside ``async with``
        body = None if value is None else msgspec.json.encode(value)
        headers = {"Content-Type": kind}
        url = self._connection.server + path
        async with self._session.request(method, url, data=body, headers=headers) as response:
            answer: Value = msgspec.json.decode(await response.read() or b"{}")
        if response.status >= 400:
            raise KubeError(response.status, str(answer.get("message", response.reason)))
        return answer


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Whole lines of any length: aiohttp's own iterator refuses long ones."""
    rest = b""
    async for chunk in stream.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line
