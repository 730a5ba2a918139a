"""The agent's door: routes, keep-alive, hostile bytes."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import msgspec
import pytest

from agent import __version__
from agent.jsonhttp import MAX_CONNECTIONS
from tests.agent.conftest import OpenDoor
from tests.agent.door import NODE_NAME, POD_UID, Door, good_token, wait_until
from tests.agent.world import card

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


def talk(door: Door, data: bytes, seconds: float = 5.0) -> bytes:
    """What comes back until the agent hangs up."""
    with socket.create_connection(("127.0.0.1", door.port), timeout=seconds) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


def test_healthz_needs_no_token_and_names_the_instance(open_door: OpenDoor) -> None:
    door = open_door(card(0))

    status, answer = door.ask("GET", "/healthz", token="")

    assert (status, answer["status"]) == (200, "ok")
    assert answer["instance"] == door.report().agent_instance


def test_a_report_says_who_speaks(open_door: OpenDoor, tmp_path: Path) -> None:
    random = tmp_path / "proc/sys/kernel/random"
    random.mkdir(parents=True)
    (random / "boot_id").write_text("0d1c4a6e-2f5b-4a57-9f0a-6a1f0f6f7a10\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("5f0c0de5f0c0de5f0c0de5f0c0de5f0c\n")
    door = open_door(card(0))

    first, second = door.report(), door.report()

    assert (first.node_name, first.pod_uid) == (NODE_NAME, POD_UID)
    assert first.boot_id == "0d1c4a6e-2f5b-4a57-9f0a-6a1f0f6f7a10"
    assert first.machine_id == "5f0c0de5f0c0de5f0c0de5f0c0de5f0c"
    assert (first.driver_version, first.cuda_version) == ("580.82.07", "13.0")
    assert (first.sequence, second.sequence) == (1, 2)
    assert first.agent_instance == second.agent_instance
    assert first.agent_version == __version__
    assert abs(first.sent_at - time.time()) < 10


def test_a_host_without_ids_is_no_error(open_door: OpenDoor) -> None:
    report = open_door(card(0)).report()

    assert (report.state, report.boot_id, report.machine_id) == ("ok", None, None)


def test_a_connection_is_kept(open_door: OpenDoor) -> None:
    door = open_door(card(0))

    answer = talk(door, HEALTH * 3)

    assert answer.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/report/", 404),
        ("GET", "/v1/release", 405),
        ("POST", "/v1/report", 405),
        ("POST", "/healthz", 405),
        ("DELETE", "/v1/report", 501),
    ],
)
def test_other_routes_and_methods_are_refused_with_a_sentence(
    open_door: OpenDoor, method: str, path: str, status: int
) -> None:
    code, answer = open_door(card(0)).ask(method, path)

    assert code == status
    assert answer["error"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\xff\xfe\x16\x03\x01\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/x\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"GET /healthz HTTP/1.1\r\na: " + b"b" * 70_000 + b"\r\n\r\n",
        b"HEAD /healthz HTTP/1.1\r\n\r\n",
        b"\xff\xff /\xff HTTP/1.1\r\n\r\n",
    ],
)
def test_bytes_that_are_no_request_get_an_error_and_harm_nothing(
    open_door: OpenDoor, data: bytes
) -> None:
    door = open_door(card(0))

    answer = talk(door, data)

    head, _, body = answer.partition(b"\r\n\r\n")
    content = msgspec.json.decode(body or head)
    assert content["error"]
    assert door.ask("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"", b"411"),
        (b"Content-Length: -1\r\n", b"411"),
        (b"Content-Length: \xb2\r\n", b"411"),
        (b"Content-Length: 5000\r\n", b"413"),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n", b"413"),
        (b"Transfer-Encoding: chunked\r\n", b"411"),
        (b"Content-Length: 100\r\n", b"400"),  # announced, and never sent
    ],
)
def test_a_body_without_a_sane_length_is_refused(
    open_door: OpenDoor, headers: bytes, status: bytes
) -> None:
    token = f"X-Gpuadmin-Token: {good_token()}\r\n".encode()

    answer = talk(open_door(card(0)), b"POST /v1/release HTTP/1.1\r\n" + token + headers + b"\r\n")

    assert answer.startswith(b"HTTP/1.1 " + status)


def test_a_body_on_a_get_does_not_pass_for_the_next_request(open_door: OpenDoor) -> None:
    smuggled = b"GET /healthz HTTP/1.1\r\nContent-Length: 38\r\n\r\n" + HEALTH

    assert talk(open_door(card(0)), smuggled).count(b"HTTP/1.1 ") == 1


def test_silent_connections_do_not_keep_the_server_out(open_door: OpenDoor) -> None:
    door = open_door(card(0))
    door.report()  # the server's own connection, with a good token
    silent = [
        socket.create_connection(("127.0.0.1", door.port)) for _ in range(MAX_CONNECTIONS + 8)
    ]
    try:
        silent[0].settimeout(5)
        assert silent[0].recv(1) == b""  # the oldest had to go
        assert door.report().state == "ok"  # on its kept connection
        assert talk(door, HEALTH).startswith(b"HTTP/1.1 200")
    finally:
        for connection in silent:
            connection.close()


def test_a_fault_of_our_own_is_an_error_and_not_a_dead_agent(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    door = open_door(card(0))
    with monkeypatch.context() as patch:
        patch.setattr("agent.cards.TEMPERATURE_GPU", object())
        status, answer = door.ask("GET", "/v1/report")

    assert (status, "log" in answer["error"]) == (500, True)
    assert "/v1/report failed" in caplog.text
    wait_until(lambda: door.report().state == "ok")
