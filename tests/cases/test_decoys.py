"""A pod that looks like our agent and is none gets no request: a label would buy the token."""

from __future__ import annotations

import socket
from threading import Thread

import pytest

from tests.cases.line import StartLine, agent_pod
from tests.support.console import Console

pytestmark = pytest.mark.django_db(transaction=True)


class Trap:
    """A port that counts who connects."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.visits = 0
        Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.visits += 1
            connection.close()

    def close(self) -> None:
        self.socket.close()


def test_a_decoy_pod_with_our_label_in_another_namespace_gets_no_request(
    line: StartLine, console: Console
) -> None:
    trap = Trap()
    decoy = agent_pod(trap.port)
    decoy["metadata"] |= {"namespace": "tenant", "uid": "decoy", "name": "gpuadmin-agent-decoy"}
    started = line(pods=[decoy])
    started.poll()
    trap.close()
    assert trap.visits == 0
    assert started.node["agent"]["status"] == "ok"
