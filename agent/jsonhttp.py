"""HTTP for few clients and hostile bytes: JSON only, capped bodies, bounded connections."""

from __future__ import annotations

import contextlib
import logging
import socket
import socketserver
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

import msgspec

MAX_BODY_BYTES = 4096
MAX_CONNECTIONS = 32
IDLE_SECONDS = 120  # longer than a poll interval, so that connections are kept

log = logging.getLogger("agent")


class BadRequestError(Exception):
    """The request can't be served; ``status`` and the message are the answer."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class JsonHandler(BaseHTTPRequestHandler):
    """One connection. Subclasses answer in ``route``; every error is ``{"error": sentence}``."""

    protocol_version = "HTTP/1.1"
    server_version = "gpuadmin-agent"
    sys_version = ""
    timeout = IDLE_SECONDS
    wbufsize = -1  # one packet for head and body
    server: BoundedServer

    def route(self) -> None:
        """Answer ``self.command`` on ``self.path``. Raises ``BadRequestError``."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer a GET; a body that nobody reads must not pass for the next request."""
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True
        self._answer()

    def do_POST(self) -> None:
        """Answer a POST."""
        self._answer()

    def body(self) -> bytes:
        """The request's body. Raises ``BadRequestError`` when it has no length or is too long."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise BadRequestError(HTTPStatus.LENGTH_REQUIRED, "Content-Length is needed.")
        if len(length) > 9 or int(length) > MAX_BODY_BYTES:
            message = f"The body may have at most {MAX_BODY_BYTES} bytes."
            raise BadRequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        return self.rfile.read(int(length))

    def send_json(self, status: HTTPStatus, content: Any) -> None:
        """Answer ``content`` as JSON."""
        self.send_body(status, msgspec.json.encode(content))

    def send_body(
        self, status: HTTPStatus, body: bytes, content_type: str = "application/json"
    ) -> None:
        """Answer ``body``, which should be of that type."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """An error as JSON. The connection ends: who knows what else the client has sent."""
        self.close_connection = True
        status = HTTPStatus(code)
        self.send_json(status, {"error": message or explain or status.phrase})

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """No line per request: the server asks every few seconds."""

    def _answer(self) -> None:
        try:
            self.route()
        except BadRequestError as error:
            self.send_error(error.status, str(error))
        except OSError:
            raise  # the client is gone
        except Exception:
            log.exception("%s %s failed", self.command, self.path)
            message = "The agent failed on this request; its log says how."
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, message)


class BoundedServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A thread per connection, at most 32 of them, and no wake-ups while nobody asks.

    When it is full, the oldest connection without a good token goes first, then the one whose
    token is the oldest: clients that drip bytes or say nothing can't keep the real one out.
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, bind: str, port: int, handler: type[JsonHandler]) -> None:
        """Listen on ``bind``, an IPv4 or IPv6 address. Raises ``OSError``."""
        self.address_family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        self._guard = threading.Lock()
        self._connections: dict[Any, tuple[bool, float]] = {}  # (good token, since when)
        super().__init__((bind, port), handler)

    def trust(self, connection: socket.socket) -> None:
        """Note that this connection has just shown a good token."""
        with self._guard:
            if connection in self._connections:
                self._connections[connection] = (True, time.monotonic())

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a new connection, at the cost of another one when there are too many."""
        with self._guard:
            if len(self._connections) >= MAX_CONNECTIONS:
                worst = min(self._connections, key=lambda each: self._connections[each])
                del self._connections[worst]
                _hang_up(worst)
            self._connections[request] = (False, time.monotonic())
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that has ended."""
        with self._guard:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def shutdown(self) -> None:
        """Stop accepting, hang up on everybody, and return when ``serve_forever`` has."""
        _hang_up(self.socket)  # wakes the select that serve_forever sits in
        super().shutdown()
        with self._guard:
            for connection in self._connections:
                _hang_up(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news; anything else is a fault of ours."""
        if not isinstance(sys.exc_info()[1], OSError):
            log.exception("serving %s failed", client_address)


def _hang_up(connection: Any) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
