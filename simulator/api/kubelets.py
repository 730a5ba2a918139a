"""What an API server passes on: logs and commands to a kubelet, the pods' proxy to a pod."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from simulator.api.errors import ApiError, not_found
from simulator.api.kinds import NODES, PODS
from simulator.api.objects import Objects

STDOUT, STDERR, ERROR = b"\x01", b"\x02", b"\x03"  # channels of a v4 or v5 stream
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
CHUNK_BYTES = 65536
# Headers that speak of one connection, or carry the caller's rights to the API server.
_NOT_PASSED = {"host", "connection", "authorization", "content-length", "transfer-encoding"}
_WAIT = aiohttp.ClientTimeout(total=None, connect=5)

Value = dict[str, Any]


class Kubelets:
    """Requests to simulated kubelets and pods, by the addresses that stand in the store."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def log(self, request: web.Request, key: tuple[str, str]) -> web.StreamResponse:
        """A container's log, streamed. Raises 400 and 404 in the real words."""
        pod = self._objects.get(PODS, key).value
        if not pod["spec"].get("nodeName"):
            return web.Response(text="")  # as upstream: no host, no log, no error
        url = self._url(pod, "containerLogs", _container(pod, request.query.get("container")))
        query = {name: text for name, text in request.query.items() if name != "container"}
        async with _answer("GET", url, params=query) as answer:
            if answer.status != 200:
                raise ApiError(answer.status, await answer.text())
            return await _pass_back(request, answer, {"Content-Type": "text/plain"})

    async def execute(self, request: web.Request, key: tuple[str, str]) -> web.StreamResponse:
        """One command over a WebSocket, as kubectl opens it; stdin and terminals are not served."""
        pod = self._objects.get(PODS, key).value
        query = request.query
        container = _container(pod, query.get("container"))
        if not pod["spec"].get("nodeName"):
            raise ApiError(400, f"pod {key[1]} does not have a host assigned")
        if (pod.get("status") or {}).get("phase") != "Running":
            text = f'unable to upgrade connection: container not found ("{container}")'
            raise ApiError(500, text, reason="InternalError")
        if any(query.get(name) in ("true", "1") for name in ("stdin", "tty")):
            raise ApiError(501, "The simulator does not do this: exec with stdin or a terminal.")
        if not query.getall("command", []):
            raise ApiError(400, "you must specify at least 1 command for the container")
        socket = web.WebSocketResponse(protocols=PROTOCOLS)
        if not socket.can_prepare(request):
            raise ApiError(400, "Upgrade request required")
        url = self._url(pod, "run", container)
        await socket.prepare(request)
        command = {"params": [("cmd", word) for word in query.getall("command")]}
        async with _answer("POST", url, **command) as answer:
            result = msgspec.json.decode(await answer.read())
        for channel, name in ((STDOUT, "stdout"), (STDERR, "stderr")):
            if result[name] and query.get(name) in ("true", "1"):
                await socket.send_bytes(channel + result[name].encode())
        await socket.send_bytes(ERROR + msgspec.json.encode(_ended(result["code"])))
        await socket.close()
        return socket

    async def proxy(
        self, request: web.Request, namespace: str, target: str, path: str
    ) -> web.StreamResponse:
        """A request to a pod: ``target`` is ``name`` or ``name:port``. Raises 404 and 503."""
        name, _, port = target.partition(":")
        pod = self._objects.get(PODS, (namespace, name)).value
        address = (pod.get("status") or {}).get("podIP")
        ports = [p for each in pod["spec"]["containers"] for p in each.get("ports") or []]
        port = port or str(ports[0]["containerPort"] if ports else 80)
        if not address:
            text = f'no endpoints available for pod "{name}": it has no address'
            raise ApiError(503, text, reason="ServiceUnavailable")
        headers = [(k, v) for k, v in request.headers.items() if k.lower() not in _NOT_PASSED]
        url = f"http://{address}:{port}/{path}"
        query, body = request.query_string, await request.read()
        async with _answer(
            request.method, f"{url}?{query}" if query else url, headers=headers, data=body or None
        ) as answer:
            back = {k: v for k, v in answer.headers.items() if k.lower() not in _NOT_PASSED}
            return await _pass_back(request, answer, back)

    def _url(self, pod: Value, what: str, container: str) -> str:
        """The kubelet's address for this pod. Raises 404 for a node that is gone."""
        name = pod["spec"]["nodeName"]
        node = self._objects.store.get(NODES, ("", name))
        status = (node.value.get("status") or {}) if node else {}
        port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
        found = [a["address"] for a in status.get("addresses") or [] if a["type"] == "InternalIP"]
        if not found or not port:
            raise not_found("nodes", name)
        where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}/{container}"
        return f"http://{found[0]}:{port}/{what}/{where}"


def _container(pod: Value, wanted: str | None) -> str:
    """The container that is meant. Raises 400 for none of the pod's, and for a choice not made."""
    names = [each["name"] for each in pod["spec"]["containers"]]
    name = pod["metadata"]["name"]
    if wanted in names:
        return str(wanted)
    if wanted:
        raise ApiError(400, f"container {wanted} is not valid for pod {name}")
    if len(names) > 1:
        text = f"a container name must be specified for pod {name}, choose one of: "
        raise ApiError(400, f"{text}[{' '.join(names)}]")
    return str(names[0])


def _ended(code: int) -> Value:
    """The Status that closes a stream, with the exit code as its cause."""
    if not code:
        return {"metadata": {}, "status": "Success"}
    cause = {"reason": "ExitCode", "message": str(code)}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [cause]},
    }


@asynccontextmanager
async def _answer(method: str, url: str, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
    """One request onward. Raises 503 when nobody answers there."""
    async with aiohttp.ClientSession(timeout=_WAIT, auto_decompress=False) as session:
        try:
            answer = await session.request(method, url, allow_redirects=False, **options)
        except aiohttp.ClientError as error:
            text = f"error trying to reach service: {error}"
            raise ApiError(503, text, reason="ServiceUnavailable") from None
        async with answer:
            yield answer


async def _pass_back(
    request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str]
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
        await response.write(chunk)
    return response
