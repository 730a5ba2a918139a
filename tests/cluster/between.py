"""A pass-through to an API server in which somebody else can write just before us.

It makes "at the same moment" certain: the other write lands after our read and before our write.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.controlplane.client import CALL_SECONDS

PASSED_ON = ("Accept", "Authorization", "Content-Type")


class Between:
    """``with Between(url, authority) as between``: plain HTTP on loopback, TLS to ``url``."""

    def __init__(self, url: str, authority: Path) -> None:
        self.address = urlsplit(url)
        self.tls = ssl.create_default_context(cafile=str(authority))
        self._waiting: dict[tuple[str, str], Callable[[], None]] = {}
        self._answered: dict[tuple[str, str], Callable[[], None]] = {}
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"between": self})
        )
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Between:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, of: Path, path: Path) -> Path:
        """Write to ``path`` the kubeconfig ``of`` the same user, by way of this pass-through."""
        config = json.loads(of.read_text())
        config["clusters"][0]["cluster"] = {
            "server": f"http://127.0.0.1:{self._server.server_port}"
        }
        path.write_text(json.dumps(config))
        return path

    def before(self, method: str, path: str, act: Callable[[], None]) -> None:
        """Run ``act`` once, just before the next such request is passed on, whatever its query."""
        self._waiting[method, path] = act

    def after(self, method: str, path: str, act: Callable[[], None]) -> None:
        """Run ``act`` once, when the next such request is answered and its answer not given on."""
        self._answered[method, path] = act

    def acted(self, method: str, path: str) -> bool:
        """Whether what was to happen around such a request has happened."""
        return (method, path) not in {*self._waiting, *self._answered}

    def happen(self, method: str, path: str, *, answered: bool = False) -> None:
        """What waits for this request or for its answer, if anything."""
        waiting = self._answered if answered else self._waiting
        if act := waiting.pop((method, path), None):
            act()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    between: Between

    def log_message(self, *_: object) -> None:
        """Tests print what they have to say themselves."""

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
        self.between.happen(self.command, self.path.partition("?")[0])
        address = self.between.address
        upstream = http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=CALL_SECONDS, context=self.between.tls
        )
        try:
            upstream.request(self.command, self.path, body or None, headers)
            answer = upstream.getresponse()
            data = answer.read()
        finally:
            upstream.close()
        self.between.happen(self.command, self.path.partition("?")[0], answered=True)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = pass_on  # noqa: N815  http.server's names
