"""An API server that replays: lists in ready pages, and a watch whose events come at a fixed rate.

``python -m benchmarks.replay --nodes 5000 --pods 50000`` prints ``ready: URL`` on its first line.
It is a process of its own, so that its CPU is in nobody's figures.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benchmarks import generate

BOOKMARK_SECONDS = 5.0
BOOKMARK = {"metadata": {"resourceVersion": str(10 * generate.FIRST_VERSION)}}
SETTLE_SECONDS = 8.0  # after the first list, before the first event
AT_ONCE = 100  # pods that live at the same time
EVENTS_PER_POD = 4  # pending, bound, its container says something, deleted


class Replay:
    """Pages of nodes and pods; a stream of ``events`` at ``rate`` a second once a watch is open.

    ``began`` is when event 0 was due (Unix time); ``late_seconds`` how far the sender ever was
    behind its own schedule. ``listed``: a list was asked for.
    """

    def __init__(
        self,
        nodes: list[bytes],
        pods: list[bytes],
        events: Sequence[bytes] = (),
        rate: int = 0,
        settle_seconds: float = 0.0,
    ) -> None:
        self.pages = {"nodes": nodes, "pods": pods}
        self.events = events
        self.rate = rate
        self.settle_seconds = settle_seconds
        self.began: float | None = None
        self.late_seconds = 0.0
        self.listed = False
        self._begun = threading.Lock()
        self.done = threading.Event()
        handler = type("Handler", (_Handler,), {"replay": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Replay:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.server.shutdown()
        self.server.server_close()

    def stats(self) -> dict[str, Any]:
        return {
            "listed": self.listed,
            "began": self.began,
            "late_seconds": self.late_seconds,
            "done": self.done.is_set(),
        }

    def lines(self, kind: str) -> Iterator[bytes]:
        """What a watch says, as it is due; bookmarks for ever after."""
        if kind == "pods" and self.events and self._begun.acquire(blocking=False):
            yield from self._paced()
        while True:
            yield generate.event("BOOKMARK", BOOKMARK)
            time.sleep(BOOKMARK_SECONDS)

    def _paced(self) -> Iterator[bytes]:
        yield generate.event("BOOKMARK", BOOKMARK)
        time.sleep(self.settle_seconds)
        self.began = began = time.time()
        for number, line in enumerate(self.events):
            due = began + number / self.rate
            if (early := due - time.time()) > 0:
                time.sleep(early)
            else:
                self.late_seconds = max(self.late_seconds, -early)
            yield line
        self.done.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    replay: Replay

    def log_message(self, *_: Any) -> None:
        """The benchmark prints what there is to say."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        kind = url.path.rpartition("/")[2]
        if url.path == "/replay/stats":
            self._answer(200, json.dumps(self.replay.stats()).encode())
        elif url.path == "/version":
            self._answer(200, b'{"gitVersion": "v1.33.4"}')
        elif kind not in self.replay.pages:
            self._answer(404, b'{"kind": "Status", "code": 404, "message": "not here"}')
        elif "watch" in query:
            self._watch(kind)
        else:
            self.replay.listed = True
            self._answer(200, self.replay.pages[kind][int(query.get("continue", "0"))])

    def do_POST(self) -> None:
        """Reviews of who we are and what we may do."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        user = {"username": "replay", "groups": []}
        self._answer(201, json.dumps({"status": {"userInfo": user, "allowed": True}}).encode())

    def _watch(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for line in self.replay.lines(kind):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
        except OSError:
            self.close_connection = True

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def lives(count: int, gpu_share: float, node_count: int, first: int) -> list[bytes]:
    """``count`` events of pods that are made, bound, change and are deleted, EVENTS_PER_POD each.

    Pods are interleaved, AT_ONCE at a time, as a cluster's are; numbers start at ``first``.
    """
    found: list[bytes] = []
    for start in range(0, count // EVENTS_PER_POD, AT_ONCE):
        group = [_life(first + start + one, gpu_share, node_count) for one in range(AT_ONCE)]
        found += [life[step] for step in range(EVENTS_PER_POD) for life in group]
    return found[:count]


def deleted_at(number: int) -> int:
    """Which event deletes pod ``number`` of `lives`, both counted from 0."""
    group, one = divmod(number, AT_ONCE)
    return group * AT_ONCE * EVENTS_PER_POD + (EVENTS_PER_POD - 1) * AT_ONCE + one


def _life(number: int, gpu_share: float, node_count: int) -> list[bytes]:
    cards = int((number + 1) * gpu_share) > int(number * gpu_share)
    where = generate.node_name(number % node_count)
    bound = generate.pod(number, where, int(cards))
    return [
        generate.event("ADDED", generate.pod(number, "", int(cards))),
        generate.event("MODIFIED", bound),
        generate.event("MODIFIED", generate.pod(number, where, int(cards), message="ready")),
        generate.event("DELETED", bound),
    ]


def kubeconfig(path: Path, server: str) -> Path:
    """Write a kubeconfig for a replay server."""
    named = {"name": "replay"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "replay",
        "contexts": [named | {"context": {"cluster": "replay", "user": "replay"}}],
        "clusters": [named | {"cluster": {"server": server}}],
        "users": [named | {"user": {"token": "of-no-worth"}}],
    }
    path.write_text(json.dumps(config))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--gpu-share", type=float, default=0.3)
    parser.add_argument("--events", type=int, default=0)
    parser.add_argument("--rate", type=int, default=500)
    told = parser.parse_args()
    nodes = generate.pages(generate.nodes(told.nodes), "NodeList")
    pods = generate.pages(generate.pods(told.pods, told.gpu_share, told.nodes), "PodList")
    events = lives(told.events, told.gpu_share, told.nodes, told.pods)
    with Replay(nodes, pods, events, told.rate, SETTLE_SECONDS) as replay:
        print(f"ready: {replay.url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
