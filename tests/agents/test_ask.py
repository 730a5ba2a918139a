"""The door to the agents, on agents that hang, drip, lie or send too much (faults 13 to 15)."""

from __future__ import annotations

import dataclasses
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from agent.contract.report import TOKEN_HEADER, ReleaseRequest, Report
from agent.contract.token import token_hour
from gpuadmin.agents.client import Answer, Endpoint, Outcome, ask

SECRET = "a secret of sixteen"
REPORT = Report(
    agent_version="1", agent_instance="i", sequence=1, node_name="n", pod_uid="u", sent_at=0.0
)
Speak = Callable[[socket.socket, bytes], None]


def http(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


GOOD = http(msgspec.json.encode(REPORT))


@contextmanager
def server(speak: Speak) -> Iterator[Endpoint]:
    """A raw server that reads one request's head and then does what ``speak`` does."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    speak(connection, connection.recv(65536))
                except OSError:
                    continue

    threading.Thread(target=run, daemon=True).start()
    try:
        yield Endpoint("u", "n", "127.0.0.1", listener.getsockname()[1])
    finally:
        listener.close()


def asked(*endpoints: Endpoint, timeout: float = 1.0) -> list[Answer]:
    handfuls = ask(endpoints, secret=SECRET, unix_seconds=7200.0, timeout_seconds=timeout)
    return [answer for handful in handfuls for answer in handful]


def answer_of(speak: Speak) -> Answer:
    with server(speak) as endpoint:
        return asked(endpoint)[0]


def says(data: bytes) -> Speak:
    return lambda connection, _: connection.sendall(data)


def hang(connection: socket.socket, _: bytes) -> None:
    time.sleep(3)


def drip(connection: socket.socket, _: bytes) -> None:
    for byte in GOOD:
        connection.send(bytes([byte]))
        time.sleep(0.1)


def flood(connection: socket.socket, _: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    while True:
        connection.sendall(b"x" * 65536)


def test_a_good_report_is_read_and_asked_for_with_this_nodes_token() -> None:
    requests: list[bytes] = []

    def speak(connection: socket.socket, request: bytes) -> None:
        requests.append(request)
        connection.sendall(GOOD)

    answer = answer_of(speak)
    assert (answer.outcome, answer.report) == (Outcome.OK, REPORT)
    lines = requests[0].decode().split("\r\n")
    assert lines[0] == "GET /v1/report HTTP/1.1"
    token = next(line.split(": ")[1] for line in lines if line.startswith(TOKEN_HEADER))
    assert token_hour(SECRET.encode(), "u", "n", token) == 2


def test_an_agent_that_hangs_or_drips_costs_one_timeout_and_no_other_agent_waits() -> None:
    with server(says(GOOD)) as good, server(hang) as hanging, server(drip) as dripping:
        begun = time.monotonic()
        answers = ask(
            [hanging, dripping, good], secret=SECRET, unix_seconds=0.0, timeout_seconds=1.0
        )
        [first] = next(answers)
        assert (first.endpoint, first.outcome) == (good, Outcome.OK)
        assert time.monotonic() - begun < 0.8
        late = [answer for handful in answers for answer in handful]
        assert time.monotonic() - begun < 1.1 + 0.3
    assert [answer.outcome for answer in late] == [Outcome.UNREACHABLE] * 2
    assert "within 1 s" in late[0].reason


def test_c18_an_agent_is_told_to_let_go_before_it_is_asked_and_a_refusal_does_not_hide_it() -> None:
    said: list[bytes] = []

    def speak(connection: socket.socket, request: bytes) -> None:
        said.append(request)
        connection.sendall(
            http(b"", "503 Busy", "Connection: close\r\n") if request[:4] == b"POST" else GOOD
        )

    with server(speak) as at:
        release = ReleaseRequest(seconds=45, reason="a change")
        [answer] = asked(dataclasses.replace(at, release=release))
    assert answer.outcome is Outcome.OK
    assert [request.split(b" HTTP")[0] for request in said] == [
        b"POST /v1/release",
        b"GET /v1/report",
    ]
    assert b'{"seconds":45,"reason":"a change"}' in said[0]


def test_an_agent_that_hangs_on_a_release_costs_one_timeout_not_two() -> None:
    with server(hang) as at:
        begun = time.monotonic()
        [answer] = asked(dataclasses.replace(at, release=ReleaseRequest(seconds=45, reason="x")))
    assert answer.outcome is Outcome.UNREACHABLE
    assert time.monotonic() - begun < 1.3


def test_an_endless_body_is_cut_at_the_cap() -> None:
    answer = answer_of(flood)
    assert (answer.outcome, answer.reason) == (Outcome.BAD_ANSWER, "It sent more than 1024 KiB.")


def test_a_million_cards_are_cut_at_the_cap_and_not_read() -> None:
    card = b'{"index":0,"uuid":"GPU-0"},'
    whole = msgspec.json.encode(REPORT)
    body = whole.replace(b'"gpus":[]', b'"gpus":[' + (card * 1_000_000)[:-1] + b"]")
    assert len(body) > 20_000_000
    answer = answer_of(says(http(body)))
    assert (answer.outcome, answer.reason) == (Outcome.BAD_ANSWER, "It sent more than 1024 KiB.")


def test_garbage_is_a_bad_answer_with_the_reason() -> None:
    bad = [
        http(b"<html>"),
        http(b"\xff\xfe"),
        http(b"[1, 2]"),
        http(b"{}"),
        http(msgspec.json.encode(REPORT).replace(b'"sent_at":0.0', b'"sent_at":NaN')),
        http(msgspec.json.encode(REPORT).replace(b'"version":1', b'"version":2')),
        http(b"[" * 100_000),
        http(b"x", "500 Oops"),
        http(b"", "302 Found", "Location: http://169.254.169.254/\r\n"),
    ]
    for data in bad:
        answer = answer_of(says(data))
        assert answer.outcome is Outcome.BAD_ANSWER, data[:60]
        assert answer.reason
        assert answer.report is None


def test_a_wrong_token_says_what_to_compare() -> None:
    answer = answer_of(says(http(b"", "401 Unauthorized")))
    assert answer.outcome is Outcome.REFUSED
    assert "GPUADMIN_AGENT_SECRET" in answer.reason


def test_a_closed_port_and_a_broken_answer_are_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        endpoint = Endpoint("u", "n", "127.0.0.1", closed.getsockname()[1])
    assert asked(endpoint)[0].outcome is Outcome.UNREACHABLE
    assert answer_of(says(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")).outcome in (
        Outcome.UNREACHABLE,
    )
    assert answer_of(says(b"not http at all\r\n\r\n")).outcome is Outcome.UNREACHABLE
