"""What the API server asks a kubelet: a container's log, and a command run in it.

Plain HTTP and the real kubelet's paths, ``/containerLogs`` and ``/run``. The real API server would
want TLS and asks other questions for exec, so it gets neither from simulated nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from simulator.nodes import logs
from simulator.nodes.client import Value
from simulator.nodes.commands import Result

FOLLOW_SECONDS = 0.5
Read = Callable[[str, str], Awaitable[Value]]  # (namespace, name) → the pod; raises KubeError
Execute = Callable[[Value, list[str]], Result]  # a pod of this node and a command


class KubeletServer:
    """One node's server. ``port`` is known after ``start``."""

    def __init__(self, address: str, read: Read, execute: Execute) -> None:
        self.address = address
        self.port = 0
        self._read = read
        self._execute = execute
        application = web.Application()
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._log)
        application.router.add_post("/run/{namespace}/{pod}/{container}", self._run)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )

    async def start(self) -> None:
        """Listen on a free port of the node's address."""
        await self._runner.setup()
        await web.TCPSite(self._runner, self.address, 0).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening; those who follow a log are cut off."""
        await self._runner.cleanup()

    async def _pod(self, request: web.Request) -> Value:
        return await self._read(request.match_info["namespace"], request.match_info["pod"])

    async def _log(self, request: web.Request) -> web.StreamResponse:
        container, options = request.match_info["container"], request.query
        start, pod = logs.now(), await self._pod(request)
        try:
            asked = logs.query(options, start)
            previous = options.get("previous") == "true"
            lines = logs.written(pod, container, start, previous=previous)
        except (logs.LogError, ValueError) as error:
            return web.Response(status=400, text=str(error))
        body = asked.encode(logs.select(lines, asked))
        if options.get("follow") != "true" or previous:
            limit = options.get("limitBytes")
            return web.Response(body=body[: int(limit)] if limit else body)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(body)
        while not logs.over(pod):
            await asyncio.sleep(FOLLOW_SECONDS)
            pod, now = await self._pod(request), logs.now()
            lines = logs.written(pod, container, now)
            # The end is dated in whole seconds, perhaps before what was written last.
            new = [line for line in lines if line.at > start or line.text == logs.DONE]
            await response.write(asked.encode(new))
            start = now
        return response

    async def _run(self, request: web.Request) -> web.Response:
        result = self._execute(await self._pod(request), request.query.getall("cmd"))
        body = msgspec.json.encode(result)
        return web.Response(body=body, content_type="application/json")
