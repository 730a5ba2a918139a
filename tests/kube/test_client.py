"""The Kubernetes door: configuration that can't be used, answers that are none, pages, watches."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpuadmin.kube import errors, structs
from gpuadmin.kube.client import KubeClient, path_of
from gpuadmin.kube.connection import Connection, connect, from_kubeconfig
from gpuadmin.kube.objects import reader
from gpuadmin.kube.stream import Alive, Change, Changed, Listed, Trouble, stream
from tests.support.scripted_api import ScriptedApi, node

Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def server(*answers: Answer) -> Iterator[tuple[KubeClient, list[Any]]]:
    """Answers each request with the next of ``answers``; keeps what was asked."""
    left, asked = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            asked.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
            status, headers, body = left.pop(0)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield KubeClient(Connection(url, lambda: "Bearer t"), timeout_seconds=1.0), asked
    finally:
        http.shutdown()
        http.server_close()


def status(code: int, message: str = "why", **details: Any) -> bytes:
    return json.dumps({"kind": "Status", "message": message, "code": code, **details}).encode()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, errors.Invalid),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Gone),
        (422, errors.Invalid),
        (429, errors.Busy),
        (500, errors.ServerFault),
        (503, errors.Busy),
        (302, errors.BadAnswer),
    ],
)
def test_each_refusal_has_an_error_of_its_own_with_the_servers_words(
    code: int, kind: type[errors.KubeError]
) -> None:
    with server((code, {"Location": "http://192.0.2.1/"}, status(code, "no card for you"))) as (
        client,
        _,
    ):
        with pytest.raises(kind, match="no card for you") as caught:
            client.get("/api/v1/nodes")
        assert caught.value.status == code


def test_retry_after_is_taken_from_the_header_or_the_body() -> None:
    with server(
        (429, {"Retry-After": "7"}, status(429)),
        (429, {}, status(429, details={"retryAfterSeconds": 9})),
        (503, {}, b"<html>busy</html>"),
        (429, {"Retry-After": "0"}, status(429)),
    ) as (client, _):
        waits = []
        for _ in range(4):
            with pytest.raises(errors.Busy) as caught:
                client.get("/x")
            waits.append(caught.value.retry_after_seconds)
    assert waits == [7, 9, 1, 1]  # 0 means soon: no hot loop


def test_a_list_is_read_in_pages_of_500_and_a_broken_page_gives_nothing() -> None:
    def page(more: str, *names: str) -> bytes:
        meta = {"resourceVersion": "7", "continue": more}
        return json.dumps({"metadata": meta, "items": [{"n": name} for name in names]}).encode()

    with server((200, {}, page("next", "a", "b")), (200, {}, page("", "c"))) as (client, asked):
        found = client.list_all("/api/v1/pods", lambda raw: json.loads(bytes(raw))["n"])
        assert found.items == ["a", "b", "c"]
        assert found.resource_version == "7"
        assert [path for _, path, _, _ in asked] == [
            "/api/v1/pods?limit=500",
            "/api/v1/pods?limit=500&continue=next",
        ]
    cut: Answer = (200, {}, b'{"items": [tru')
    with (
        server((200, {}, page("next", "a")), cut) as (client, _),
        pytest.raises(errors.BadAnswer),
    ):
        client.list_all("/api/v1/pods", bytes)


def test_a_patch_says_which_kind_it_is_and_signs_in() -> None:
    with server((200, {}, b"{}"), (200, {}, b"{}")) as (client, asked):
        client.patch(path_of("api", "v1", "nodes", "a/b c"), {"spec": {}})
        client.patch("/x", [], kind="json")
    methods, paths, headers, _ = zip(*asked, strict=True)
    assert methods == ("PATCH", "PATCH")
    assert paths[0] == "/api/v1/nodes/a%2Fb%20c"
    assert headers[0]["Content-Type"] == "application/merge-patch+json"
    assert headers[1]["Content-Type"] == "application/json-patch+json"
    assert headers[0]["Authorization"] == "Bearer t"


def test_a_token_that_cannot_be_had_is_unreachable_not_the_end_of_reading() -> None:
    def rotated_away() -> str:
        raise FileNotFoundError("/var/run/secrets/token")

    client = KubeClient(Connection("http://127.0.0.1:9", rotated_away))
    with pytest.raises(errors.Unreachable, match="can't sign in"):
        client.get("/version")


def test_a_server_that_is_not_there_is_one_clear_sentence() -> None:
    with server() as (client, _):
        pass
    with pytest.raises(errors.Unreachable, match=r"API server at http://127.0.0.1:\d+ can't be"):
        client.get("/version")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "There is no kubeconfig at"),
        ("", "can't be used"),
        ("{}", "can't be used"),
        ("[1, 2]", "can't be used"),
        ("a: b: c", "is not YAML"),
        ("current-context: x\ncontexts: []\nclusters: []\nusers: []\n", "can't be used"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_says_so(
    tmp_path: Path, text: str | None, sentence: str
) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(errors.BadConfig, match=sentence) as caught:
        from_kubeconfig(path)
    assert "\n" not in caught.value.sentence


def test_without_a_kubeconfig_and_outside_a_cluster_we_say_what_to_set() -> None:
    with pytest.raises(errors.BadConfig, match="GPUADMIN_KUBECONFIG"):
        connect("")


def changes(api: ScriptedApi, count: int, pauses: list[float]) -> list[Change[structs.Node]]:
    """The first ``count`` changes of a stream of nodes that never really sleeps."""

    def sleep(seconds: float) -> bool:
        pauses.append(seconds)
        return False

    client = KubeClient(Connection(api.url, lambda: None))
    source = stream(client, "/api/v1/nodes", reader(structs.Node), sleep=sleep, jitter=lambda: 1.0)
    return list(itertools.islice(source, count))


def test_a_stream_lists_then_follows_events_and_bookmarks() -> None:
    with ScriptedApi() as api:
        api.nodes.pages = [[node("a")]]

        def speak() -> None:
            while not api.nodes.watches:
                pass
            bookmark = {"metadata": {"resourceVersion": "120"}}
            api.send(api.nodes, "MODIFIED", node("a"))
            api.send(api.nodes, "BOOKMARK", bookmark)
            api.send(api.nodes, "DELETED", node("a"))

        threading.Thread(target=speak, daemon=True).start()
        listed, changed, alive, gone = changes(api, 4, [])
    assert isinstance(listed, Listed)
    assert len(listed.items) == 1
    assert isinstance(changed, Changed)
    assert not changed.gone
    assert isinstance(alive, Alive)
    assert isinstance(gone, Changed)
    assert gone.gone


def test_c37_each_failure_waits_longer_and_a_410_lists_again_but_never_spins() -> None:
    with ScriptedApi() as api:
        api.nodes.pages = [500]
        pauses: list[float] = []
        found = changes(api, 8, pauses)
        assert all(isinstance(change, Trouble) for change in found)
        assert pauses == [1, 2, 4, 8, 16, 32, 60]
    with ScriptedApi() as api:
        api.nodes.watch_status = 410
        pauses = []
        assert all(isinstance(change, Listed) for change in changes(api, 6, pauses))
        assert pauses == [0, 1, 2, 4, 8]


def test_without_permission_the_stream_says_so_and_asks_again_after_a_minute() -> None:
    with ScriptedApi() as api:
        api.nodes.pages = [403]
        pauses: list[float] = []
        found = changes(api, 2, pauses)
    assert all(isinstance(change, Trouble) and change.forbidden for change in found)
    assert pauses == [60]
