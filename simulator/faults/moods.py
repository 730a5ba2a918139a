"""Bad days of the API server: slow, refusing, cutting connections, silent on its watches."""

from __future__ import annotations

import asyncio

from aiohttp import web

from simulator.api.errors import ApiError
from simulator.api.store import Store
from simulator.faults.following import follow
from simulator.faults.situations import (
    ApiSituation,
    DroppedConnections,
    FailingApi,
    SilentWatches,
    Situation,
    SlowApi,
)

_MESSAGES = {
    429: "the server has received too many requests and has asked us to try again later",
    500: "Internal error occurred: scripted by a situation",
    503: "the server is currently unable to handle the request",
}


class Moods:
    """Follows the situations in the store of the simulated API."""

    def __init__(self, store: Store) -> None:
        self._present: list[ApiSituation] = []
        follow(store, self._take)

    async def meet(self, request: web.Request, verb: str, resource: str) -> None:
        """Wait, cut the connection, or raise the scripted refusal; all that are scripted, in order.

        A connection that was cut ends as a ``ConnectionResetError``.
        """
        for each in self._present:
            if not (each.verb in ("", verb) and each.resource in ("", resource)):
                continue
            if isinstance(each, SlowApi):
                await asyncio.sleep(each.seconds)
            elif isinstance(each, FailingApi):
                message, after = _MESSAGES[each.code], each.retry_after_seconds
                raise ApiError(each.code, message, retry_after_seconds=after)
            elif isinstance(each, DroppedConnections):
                if request.transport:
                    request.transport.abort()
                raise ConnectionResetError("scripted by a situation")

    def are_silent(self, resource: str) -> bool:
        """Whether watches of this resource say nothing."""
        silent = [each for each in self._present if isinstance(each, SilentWatches)]
        return any(each.resource in ("", resource) for each in silent)

    def _take(self, situations: list[Situation]) -> None:
        self._present = [each for each in situations if isinstance(each, ApiSituation)]
