"""A Kubernetes API that says what a test tells it to say: lists page by page, watches, errors.

For what a well-behaved server never does. All that a real one does is tried on the simulator and
on the real control plane.
"""

from __future__ import annotations

import json
import queue
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]


@dataclass
class Collection:
    """What a list of one kind answers: pages of items, each page or the whole may be an error."""

    pages: list[list[Json] | int] = field(default_factory=lambda: [[]])
    version: int = 100
    watches: list[queue.Queue[Json | None]] = field(default_factory=list)
    lists: int = 0
    watch_status: int = 200


class ScriptedApi:
    """``with ScriptedApi() as api: api.nodes.pages = [[…]]``; ``api.kubeconfig(path)``."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.nodes = Collection()
        self.pods = Collection()
        self.daemonset: Json | int = 404
        self.events: list[Json] | int = []
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"api": self})
        )
        self._server.daemon_threads = True
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ScriptedApi:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for collection in (self.nodes, self.pods):
            for watch in collection.watches:
                watch.put(None)
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig for this server."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        path.write_text(json.dumps(config))
        return path

    def relist(self, collection: Collection) -> None:
        """End the running watches with 410, so that the client lists again."""
        gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        self.send(collection, "ERROR", gone)

    def send(self, collection: Collection, kind: str, thing: Json) -> None:
        """One event to every open watch."""
        for watch in list(collection.watches):
            watch.put({"type": kind, "object": thing})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: ScriptedApi

    def log_message(self, *_: Any) -> None:
        """Tests print what they have to say themselves."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        if url.path == "/version":
            self.answer(200, {"gitVersion": "v1.36.0-scripted"})
        elif url.path.endswith("/daemonsets/gpuadmin-agent"):
            found = self.api.daemonset
            self.answer(*((found, {}) if isinstance(found, int) else (200, found)))
        elif url.path.endswith("/events"):
            told = self.api.events
            self.answer(*((told, {}) if isinstance(told, int) else (200, {"items": told})))
        elif url.path in ("/api/v1/nodes", "/api/v1/pods"):
            collection = self.api.nodes if url.path.endswith("nodes") else self.api.pods
            (self.watch if "watch" in query else self.list)(collection, query)
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        """Who we are, and that we may do everything."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        user = {"username": "scripted", "groups": []}
        self.answer(201, {"status": {"userInfo": user, "allowed": True}})

    def list(self, collection: Collection, query: dict[str, str]) -> None:
        collection.lists += 1
        number = int(query.get("continue", "0"))
        page = collection.pages[number]
        if isinstance(page, int):
            return self.answer(page, {})
        more = str(number + 1) if number + 1 < len(collection.pages) else ""
        meta = {"resourceVersion": str(collection.version), "continue": more}
        return self.answer(200, {"kind": "List", "metadata": meta, "items": page})

    def watch(self, collection: Collection, query: dict[str, str]) -> None:
        if collection.watch_status != 200:
            return self.answer(collection.watch_status, {})
        events: queue.Queue[Json | None] = queue.Queue()
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        collection.watches.append(events)
        try:
            while (event := events.get()) is not None:
                self.wfile.write(json.dumps(event).encode() + b"\n")
                self.wfile.flush()
                if event["type"] == "ERROR":
                    break
        except OSError:
            return None
        finally:
            collection.watches.remove(events)
        return None

    def answer(self, status: int, body: Json) -> None:
        if status >= 400:
            body = {"kind": "Status", "code": status, "message": f"scripted {status}"}
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def node(name: str, gpus: int = 8, **changes: Any) -> Json:
    """A ready node that advertises ``gpus`` whole cards."""
    counts = {"cpu": "64", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "90"},
        "spec": {},
        "status": {
            "capacity": counts,
            "allocatable": counts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
        **changes,
    }


def pod(name: str, node_name: str = "", gpus: int = 1, **status: Any) -> Json:
    """A pod that asks for ``gpus`` cards; Running when it has a node."""
    amount = {"nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "resourceVersion": "90",
            "creationTimestamp": "2026-11-30T10:00:00Z",
        },
        "spec": {
            "nodeName": node_name,
            "containers": [{"name": "c", "resources": {"requests": amount, "limits": amount}}],
        },
        "status": {"phase": "Running" if node_name else "Pending", **status},
    }
