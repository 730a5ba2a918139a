"""The HTTP side: a request becomes a verb on a resource, and meets the allow-list."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp import web

from simulator.api import discovery, tables
from simulator.api.allowlist import AllowList
from simulator.api.errors import ApiError
from simulator.api.kinds import BY_PATH, PODS, Kind
from simulator.api.kubelets import Kubelets
from simulator.api.objects import Objects
from simulator.api.patches import apply_patch
from simulator.api.selectors import matcher
from simulator.api.users import SIMULATOR, user_of, who_am_i
from simulator.api.validation import require_object
from simulator.api.watch import DEFAULT_TIMEOUT_SECONDS, Pages, Watch
from simulator.control.budgets import evict
from simulator.faults.denials import Denials
from simulator.faults.moods import Moods
from simulator.faults.situations import NAMESPACE

MAX_BODY_BYTES = 3 * 1024 * 1024  # as a real API server
NO_RESOURCE = "the server could not find the requested resource"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class Target:
    """What a path names. ``kind`` is None for a resource that isn't served at all."""

    kind: Kind | None
    resource: str
    namespace: str
    name: str
    subresource: str


def parse_path(parts: list[str]) -> Target:
    """``["api", "v1", "namespaces", "x", "pods", "y", "status"]`` and the like; raises 404."""
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise ApiError(404, NO_RESOURCE)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", ""][:3]
    kind = BY_PATH.get((group, version, plural))
    resource = f"{plural}.{group}" if group else plural
    return Target(kind, resource, namespace, name, subresource)


class Api:
    """One API server. Everything it knows is in its store."""

    def __init__(self, objects: Objects, allowed: AllowList, tokens: dict[str, str]) -> None:
        """``tokens``: token → user name."""
        self._objects = objects
        self._allowed = allowed
        self._tokens = tokens
        self._denials = Denials(objects.store)
        self._moods = Moods(objects.store)
        self._pages = Pages(objects.store)
        self._kubelets = Kubelets(objects)

    def application(self) -> web.Application:
        """The aiohttp application; ``/simulator/used`` tells which rows of the allow-list were."""
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.router.add_get("/simulator/used", self._used)
        application.router.add_route("*", "/{path:.*}", self.handle)
        return application

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Any request; a refusal becomes a Status body."""
        try:
            return await self._handle(request)
        except ApiError as error:
            return _json(error.status(), error.code, error.headers)
        except msgspec.DecodeError as error:
            return _json(ApiError(400, f"the body cannot be read: {error}").status(), 400)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        user = user_of(request.headers.get("Authorization", ""), self._tokens)
        parts = [unquote(part) for part in request.rel_url.raw_path.split("/") if part]
        if request.method == "GET" and (found := discovery.answer(parts, self._allowed)):
            return web.Response(text=found) if isinstance(found, str) else _json(found)
        target = parse_path(parts)
        verb = self._verb(request, target)
        if "dryRun" in request.query:  # to write after all would be worse than to refuse
            raise ApiError(501, "The simulator does not do this: dryRun. Use a real control plane.")
        self._allowed.check(verb, target.resource, target.subresource)
        if target.kind is None:
            raise ApiError(404, NO_RESOURCE)
        if user != SIMULATOR:
            self._denials.check(user, verb, target.resource, target.subresource, target.name)
            if target.namespace != NAMESPACE:  # ctl must get through, to end it
                await self._moods.meet(request, verb, target.resource)
        if verb in ("list", "watch"):
            return await self._list(request, verb, target.kind, target, user)
        if target.kind is PODS and target.subresource in ("eviction", "log", "exec", "proxy"):
            return await self._of_pod(request, target)
        return await self._one(request, verb, target.kind, target, user)

    @staticmethod
    def _verb(request: web.Request, target: Target) -> str:
        if request.method == "GET":
            many = "watch" if request.query.get("watch") in ("true", "1") else "list"
            return "get" if target.name else many
        verb = _VERBS.get(request.method, request.method)
        return verb if target.name or verb != "delete" else "deletecollection"

    async def _list(
        self, request: web.Request, verb: str, kind: Kind, target: Target, user: str
    ) -> web.StreamResponse:
        query = request.query
        matches = matcher(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        if verb == "list":
            limit, token = _number(query.get("limit", "0")), query.get("continue", "")
            page = self._pages.page(kind, target.namespace, matches, limit, token)
            return _raw(_as_asked(request, kind, page))
        if "sendInitialEvents" in query:
            raise ApiError(422, "sendInitialEvents is forbidden for watch unless WatchList is on")
        version = query.get("resourceVersion", "")
        watch = Watch(self._objects.store, kind, target.namespace, matches, version)
        try:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            seconds = _number(query.get("timeoutSeconds", "")) or DEFAULT_TIMEOUT_SECONDS
            bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
            async for lines in watch.lines(seconds, bookmarks=bookmarks):
                if user != SIMULATOR and self._moods.are_silent(kind.resource):
                    await asyncio.Event().wait()  # until the watcher has had enough
                await response.write(lines)
        except ConnectionResetError:
            pass  # the watcher went away
        finally:
            watch.close()
        return response

    async def _of_pod(self, request: web.Request, target: Target) -> web.StreamResponse:
        """The pods' subresources that are no documents."""
        key = (target.namespace, target.name)
        match target.subresource:
            case "log":
                return await self._kubelets.log(request, key)
            case "exec":
                return await self._kubelets.execute(request, key)
            case "proxy":
                path = request.rel_url.raw_path.split("/", 8)[8:]
                return await self._kubelets.proxy(request, *key, *(path or [""]))
        evict(self._objects, key, require_object(await _body(request, required=True)))
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return _json(done | {"code": 201}, 201)

    async def _one(
        self, request: web.Request, verb: str, kind: Kind, target: Target, user: str
    ) -> web.Response:
        objects, key = self._objects, (target.namespace, target.name)
        body: Any = None if verb == "get" else await _body(request, required=verb != "delete")
        if kind.kind == "SelfSubjectAccessReview":
            return _json(self._denials.review(body), 201)
        if kind.kind == "SelfSubjectReview":
            return _json(who_am_i(user, body), 201)
        if verb == "create":
            return _raw(objects.create(kind, target.namespace, body).raw, 201)
        if verb == "get":
            return _raw(_as_asked(request, kind, objects.get(kind, key).raw))
        if verb == "delete":
            options = dict(body) if isinstance(body, dict) else {}
            if grace := request.query.get("gracePeriodSeconds"):
                options["gracePeriodSeconds"] = _number(grace)
            document = objects.delete(kind, key, options)
        else:
            if verb == "patch":
                body = apply_patch(request.content_type, objects.get(kind, key).value, body)
            document = objects.update(kind, key, body, status=target.subresource == "status")
        return _raw(document.raw)

    async def _used(self, _: web.Request) -> web.Response:
        return _json(sorted(self._allowed.used))


async def _body(request: web.Request, *, required: bool) -> Any:
    if request.content_type == "application/vnd.kubernetes.protobuf":
        raise ApiError(415, "the simulator reads JSON only, not protobuf")
    raw = await request.read()
    return msgspec.json.decode(raw) if raw or required else {}


def _as_asked(request: web.Request, kind: Kind, raw: bytes) -> bytes:
    """An object or list as it is, or as the table that kubectl prints."""
    if not tables.wanted(request.headers.get("Accept", "")):
        return raw
    return tables.table(kind, raw, request.query.get("includeObject", "Metadata"))


def _number(text: str) -> int:
    if text and not text.isdigit():
        raise ApiError(400, f'"{text}" is not a number')
    return int(text or 0)


def _json(value: object, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return _raw(msgspec.json.encode(value), code, headers)


def _raw(body: bytes, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=body, status=code, headers=headers, content_type="application/json")
