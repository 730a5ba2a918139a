"""The stream on a server's bad days (C37; faults 8 to 12): never a busy loop, never half a list."""

from __future__ import annotations

import inspect
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpuadmin.kube import structs
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.connection import Connection, from_kubeconfig
from gpuadmin.kube.errors import Unauthorized
from gpuadmin.kube.objects import reader
from gpuadmin.kube.stream import Change, Listed, Trouble, stream
from tests.support.scripted_api import ScriptedApi, node


def changes(
    api: ScriptedApi, pauses: list[float], *, silence: float = 30.0, jitter: float = 1.0
) -> Iterator[Change[structs.Node]]:
    """The stream of nodes; pauses are noted, not slept."""

    def sleep(seconds: float) -> bool:
        pauses.append(seconds)
        return False

    client = KubeClient(Connection(api.url, lambda: None))
    return stream(
        client,
        "/api/v1/nodes",
        reader(structs.Node),
        sleep=sleep,
        silence_seconds=silence,
        jitter=lambda: jitter,
    )


def test_c37_a_watch_that_says_nothing_is_left_and_taken_up_where_it_was() -> None:
    pauses: list[float] = []
    with ScriptedApi() as api:
        listed, trouble, again = itertools.islice(changes(api, pauses, silence=0.3), 3)
        assert api.nodes.lists == 1
    assert isinstance(listed, Listed)
    assert isinstance(trouble, Trouble)
    assert isinstance(again, Trouble)
    assert "broke off" in trouble.sentence
    assert pauses == [1]


def test_c37_silence_is_noticed_within_90_seconds_by_default() -> None:
    assert inspect.signature(stream).parameters["silence_seconds"].default <= 90


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
def test_c37_a_server_that_fails_is_asked_a_bounded_number_of_times_a_minute(jitter: float) -> None:
    pauses: list[float] = []
    with ScriptedApi() as api:
        api.nodes.pages = [500]
        list(itertools.islice(changes(api, pauses, jitter=jitter), 30))
    starts = list(itertools.accumulate(pauses))
    assert max(pauses) <= 60
    busiest = max(sum(start <= other < start + 60 for other in starts) for start in starts)
    assert busiest <= 8
    assert sum(start >= starts[-1] - 60 for start in starts) <= 3


def test_c38_a_continue_token_that_expires_in_the_middle_gives_no_part_of_a_list() -> None:
    pauses: list[float] = []
    with ScriptedApi() as api:
        api.nodes.pages = [[node("a")], 410]
        threading.Timer(0.5, lambda: api.nodes.pages.__setitem__(1, [node("b")])).start()

        def patiently(seconds: float) -> bool:
            pauses.append(seconds)
            threading.Event().wait(0.2)
            return False

        client = KubeClient(Connection(api.url, lambda: None))
        source = stream(client, "/api/v1/nodes", reader(structs.Node), sleep=patiently)
        first = next(source)
    assert isinstance(first, Listed)
    assert len(first.items) == 2
    assert pauses


def test_a_410_within_a_watch_lists_once_and_goes_on() -> None:
    with ScriptedApi() as api:

        def expire() -> None:
            while not api.nodes.watches:
                pass
            api.relist(api.nodes)

        threading.Thread(target=expire, daemon=True).start()
        found = list(itertools.islice(changes(api, []), 2))
        assert all(isinstance(change, Listed) for change in found)
        assert api.nodes.lists == 2


@contextmanager
def guarded(token: str) -> Iterator[tuple[str, list[str | None]]]:
    """A server that wants ``token``; what each request brought."""
    brought: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            brought.append(self.headers.get("Authorization"))
            self.send_response(200 if brought[-1] == f"Bearer {token}" else 401)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_port}", brought
    finally:
        http.shutdown()
        http.server_close()


def kubeconfig(folder: Path, server: str, user: dict[str, str]) -> Path:
    named = {"name": "c"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [named | {"context": {"cluster": "c", "user": "c"}}],
        "clusters": [named | {"cluster": {"server": server}}],
        "users": [named | {"user": user}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def test_c37_a_token_file_that_was_rotated_is_read_again_after_a_401(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    with guarded("new") as (server, brought):
        client = KubeClient(
            from_kubeconfig(kubeconfig(tmp_path, server, {"tokenFile": str(token)}))
        )
        with pytest.raises(Unauthorized):
            client.get("/version")
        token.write_text("new")
        assert client.get("/version") == b"{}"
        before = len(brought)
        client.get("/version")
        assert brought[before:] == ["Bearer new"]
    assert before == 4  # twice in vain, then once with the old and once with the new


def test_c37_a_kubeconfig_that_was_rewritten_is_read_again_after_a_401(tmp_path: Path) -> None:
    with guarded("new") as (server, _):
        client = KubeClient(from_kubeconfig(kubeconfig(tmp_path, server, {"token": "old"})))
        kubeconfig(tmp_path, server, {"token": "new"})
        assert client.get("/version") == b"{}"
        (tmp_path / "kubeconfig").unlink()
        assert client.get("/version") == b"{}"
