"""Bodies made to fill our memory or our time (faults 13 and 15), by what the process uses."""

from __future__ import annotations

import gzip
import socket
import time
from pathlib import Path

from gpuadmin.agents.client import Outcome
from tests.agents.test_ask import GOOD, answer_of, flood, http, says

MIB = 2**20


def peak_bytes() -> int:
    """The most memory this process has had since `forget_peak`."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def forget_peak() -> int:
    """Begin to measure anew; the memory in use now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def declared_gigabyte(connection: socket.socket, _: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
    while True:
        connection.sendall(b" " * 65536)


def stop_in_the_middle(connection: socket.socket, _: bytes) -> None:
    connection.sendall(GOOD[:-20])
    time.sleep(2)


def test_a_gigabyte_declared_or_not_costs_less_than_20_mib() -> None:
    answer_of(says(GOOD))  # what a first request loads is not the matter
    for speak in (declared_gigabyte, flood):
        before = forget_peak()
        answer = answer_of(speak)
        assert answer.outcome is Outcome.BAD_ANSWER
        assert peak_bytes() - before < 20 * MIB


def test_a_gzip_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * (300 * MIB), compresslevel=9)
    assert len(bomb) < MIB, "it passes the cap on what is sent"
    before = forget_peak()
    answer = answer_of(says(http(bomb, headers="Content-Encoding: gzip\r\n")))
    assert answer.outcome is Outcome.BAD_ANSWER
    assert peak_bytes() - before < 20 * MIB


def test_an_agent_that_stops_in_the_middle_costs_one_timeout() -> None:
    begun = time.monotonic()
    answer = answer_of(stop_in_the_middle)
    assert answer.outcome is Outcome.UNREACHABLE
    assert time.monotonic() - begun < 1.1 + 0.3
