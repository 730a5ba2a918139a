"""Raw HTTP to one API server: bytes in, bytes out, own errors, no retries of its own.

Whoever calls decides about retrying: a watcher backs off, a page shows the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote, urlencode

import msgspec
import urllib3
from urllib3.exceptions import HTTPError

from gpuadmin.kube import errors
from gpuadmin.kube.connection import Connection
from gpuadmin.kube.guard import guarded_pool

T = TypeVar("T")
PAGE_SIZE = 500
MIN_RETRY_SECONDS = 1.0  # a server that says 0 or less means soon, not at once
MAX_BODY_BYTES = 64 * 1024 * 1024
PatchKind = Literal["merge", "strategic-merge", "json"]
_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic-merge": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


class _Details(msgspec.Struct):
    retryAfterSeconds: float | None = None  # noqa: N815 - the API's own name


class _Status(msgspec.Struct):
    message: str | None = None
    reason: str | None = None
    details: _Details | None = None


class _ListMeta(msgspec.Struct):
    resourceVersion: str | None = None  # noqa: N815
    continue_: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


@dataclass(frozen=True)
class ListResult(Generic[T]):
    """A whole list, and the resource version to watch from."""

    items: list[T]
    resource_version: str


class KubeClient:
    """One API server. Safe to share between threads; keeps its connections open.

    ``timeout_seconds`` bounds connecting and each read. All methods raise ``KubeError``s.
    """

    def __init__(self, connection: Connection, *, timeout_seconds: float = 10.0) -> None:
        self.connection = connection
        self._timeout = urllib3.Timeout(connect=min(5.0, timeout_seconds), read=timeout_seconds)
        tls: dict[str, Any] = {}
        if connection.server.startswith("https"):
            tls = {
                "ca_certs": connection.ca_file,
                "cert_file": connection.cert_file,
                "key_file": connection.key_file,
                "cert_reqs": "CERT_REQUIRED" if connection.verify else "CERT_NONE",
                "ssl_context": connection.tls,
            }
            if connection.server_name:
                tls |= {
                    "server_hostname": connection.server_name,
                    "assert_hostname": connection.server_name,
                }
        self._pool = urllib3.PoolManager(maxsize=8, retries=False, **tls)
        if connection.guard:
            self._pool.pool_classes_by_scheme = {"https": guarded_pool(connection.guard)}

    def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """The body of a GET."""
        return self._call("GET", path, params)

    def post(self, path: str, body: object, params: Mapping[str, str] | None = None) -> bytes:
        """POST ``body`` as JSON (create, or a review)."""
        return self._call("POST", path, params, msgspec.json.encode(body), "application/json")

    def patch(
        self,
        path: str,
        body: object,
        *,
        kind: PatchKind = "merge",
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        """PATCH; put ``metadata.resourceVersion`` into ``body`` to make it conditional (409)."""
        return self._call("PATCH", path, params, msgspec.json.encode(body), _PATCH_TYPES[kind])

    def delete(self, path: str, body: object | None = None) -> bytes:
        """DELETE with an optional DeleteOptions body."""
        data = None if body is None else msgspec.json.encode(body)
        return self._call("DELETE", path, None, data, "application/json")

    def list_all(
        self,
        path: str,
        read: Callable[[msgspec.Raw], T],
        params: Mapping[str, str] | None = None,
    ) -> ListResult[T]:
        """A whole list in pages of 500, or an error: never a part of it (C38 t5).

        Each item goes through ``read`` as its page comes, so that no more than one page of raw
        bytes is ever held (measured.md: 50,000 pods are 310 MB raw).
        """
        items: list[T] = []
        query = {**(params or {}), "limit": str(PAGE_SIZE)}
        while True:
            page = decode(self.get(path, query), _Page)
            items += map(read, page.items or [])
            if not page.metadata.continue_:
                return ListResult(items, page.metadata.resourceVersion or "")
            query["continue"] = page.metadata.continue_

    def watch(
        self,
        path: str,
        resource_version: str,
        *,
        timeout_seconds: int = 300,
        silence_seconds: float = 90.0,
        params: Mapping[str, str] | None = None,
    ) -> Iterator[bytes]:
        """The raw lines of one watch with bookmarks, until the server ends it.

        Raises ``Unreachable`` when nothing at all, not even a bookmark, comes for
        ``silence_seconds`` (C37 a; the API server sends a bookmark about once a minute).
        """
        query = {
            **(params or {}),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        }
        timeout = urllib3.Timeout(connect=5.0, read=silence_seconds)
        response = self._send("GET", path, query, timeout=timeout, preload=False)
        try:
            yield from _lines(response)
        except (HTTPError, OSError) as error:
            raise errors.Unreachable(f"The watch broke off: {_short(error)}") from error
        finally:
            response.close()

    def _call(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: bytes | None = None,
        content_type: str | None = None,
    ) -> bytes:
        response = self._send(method, path, params, body, content_type, timeout=self._timeout)
        return response.data

    def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: bytes | None = None,
        content_type: str | None = None,
        *,
        timeout: urllib3.Timeout,
        preload: bool = True,
    ) -> urllib3.BaseHTTPResponse:
        """One request; after a 401 once more, signed in anew (C37 c)."""
        url = self.connection.server + path + ("?" + urlencode(params) if params else "")

        def request() -> urllib3.BaseHTTPResponse:
            return self._pool.request(
                method,
                url,
                body=body,
                headers=self._headers(content_type),
                timeout=timeout,
                preload_content=preload,
                redirect=False,
            )

        try:
            response = request()
            if response.status == 401 and self._renew():
                response.drain_conn()
                response = request()
            if response.status >= 300:
                raise _error(method, path, response)
        except (HTTPError, OSError) as error:
            raise errors.Unreachable(
                f"The API server at {self.connection.server} can't be reached: {_short(error)}"
            ) from error
        return response

    def _headers(self, content_type: str | None) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "gpuadmin"}
        if authorization := self._authorization():
            headers["Authorization"] = authorization
        if content_type:
            headers["Content-Type"] = content_type
        return headers

    def _renew(self) -> bool:
        """Read again how we sign in; False where that can't be."""
        try:
            fresh = self.connection.renew() if self.connection.renew else None
        except errors.BadConfig:
            return False
        if fresh is None:
            return False
        self.connection = replace(self.connection, authorization=fresh.authorization)
        return True

    def _authorization(self) -> str | None:
        """Raises ``Unreachable`` when the token can't be had: a file that is being rotated, an
        exec plugin that fails. It is no reason to stop reading for ever (C37)."""
        try:
            return self.connection.authorization()
        except Exception as error:  # the kubernetes package's own, or whatever a plugin raises
            raise errors.Unreachable(f"We can't sign in: {_short(error)}") from error


def decode(body: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode JSON into a struct. Raises ``BadAnswer`` when it doesn't fit."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise errors.BadAnswer(f"The API server's answer can't be read: {error}") from error


def path_of(*parts: str) -> str:
    """Join path segments, each quoted: ``path_of("api", "v1", "nodes", name)``."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    # read1 gives what is there; stream() would wait for a full buffer unless the body is chunked
    while chunk := response.read1(65536):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line)
        if len(rest) > MAX_BODY_BYTES:
            raise errors.BadAnswer("The watch sent an event of more than 64 MiB.")


def _error(method: str, path: str, response: urllib3.BaseHTTPResponse) -> errors.KubeError:
    body = response.data  # reads it now when it was not preloaded
    try:
        status = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = _Status(message=body[:200].decode("utf-8", "replace"))
    code, reason = response.status, status.reason or ""
    sentence = f"{method} {path}: {code} {status.message or reason}".strip()
    if code in (429, 503):
        wait = response.headers.get("Retry-After", "")
        seconds = float(wait) if wait.isdigit() else None
        if seconds is None:
            seconds = (status.details and status.details.retryAfterSeconds) or 1.0
        seconds = max(seconds, MIN_RETRY_SECONDS)
        return errors.Busy(sentence, retry_after_seconds=seconds, reason=reason, status=code)
    kinds: dict[int, type[errors.KubeError]] = {
        400: errors.Invalid,
        401: errors.Unauthorized,
        403: errors.Forbidden,
        404: errors.NotFound,
        409: errors.Conflict,
        410: errors.Gone,
        422: errors.Invalid,
    }
    kind = kinds.get(code, errors.ServerFault if code >= 500 else errors.BadAnswer)
    return kind(sentence, reason=reason, status=code)


def _short(error: BaseException) -> str:
    cause = getattr(error, "reason", None) or error
    return str(cause).split("): ", 1)[-1][:200]
