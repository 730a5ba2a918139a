"""One agent served in this process, asked only through its HTTP door."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from agent.contract.report import TOKEN_HEADER, Report, decode_report
from agent.contract.token import make_token
from agent.server import AgentConfig, AgentServer, RequestHandler
from simulator import hardware, nvml
from simulator.hardware import Hardware

SECRET = b"a secret of the tests, long enough"
NODE_NAME = "h100-01"
POD_UID = "6c1e7a52-3f1d-4f0e-9d58-0f3c6a9b2d11"
OUR_THREADS = {"http", "nvml", "xids"}


def config(folder: Path, **changes: Any) -> AgentConfig:
    """Settings of an agent on loopback, whose host tree is ``folder``."""
    fields: dict[str, Any] = {
        "node_name": NODE_NAME,
        "pod_uid": POD_UID,
        "secret": SECRET,
        "bind": "127.0.0.1",
        "port": 0,
        "host_root": folder,
        "kubelet_socket": folder / "kubelet.sock",
    }
    return AgentConfig(**(fields | changes))


class Door:
    """The agent of one simulated node. Leave it by ``close``."""

    def __init__(
        self,
        folder: Path,
        hardware_: Hardware,
        handler: type[RequestHandler] = RequestHandler,
        **changes: Any,
    ) -> None:
        self.folder = folder
        self._path = folder / "hardware.json"
        self.hardware = hardware_
        self.write()
        self.fake = nvml.install(self._path)
        self._server = AgentServer(config(folder, **changes), handler)
        self._server.start()
        self.port = int(self._server.server_address[1])
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)

    def write(self, **changes: Any) -> None:
        """Change the node's hardware."""
        for name, value in changes.items():
            setattr(self.hardware, name, value)
        hardware.write(self._path, self.hardware)

    def change(self, index: int, **changes: Any) -> None:
        """Change one card."""
        for name, value in changes.items():
            setattr(self.hardware.cards[index], name, value)
        self.write()

    def ask(
        self, method: str, path: str, body: bytes | None = None, token: str | None = None
    ) -> tuple[int, Any]:
        """Status and decoded JSON, with a good token unless another is given."""
        headers = {TOKEN_HEADER: good_token() if token is None else token}
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, msgspec.json.decode(answer.read())

    def report(self) -> Report:
        """A report, which must come."""
        return report_over(self._connection)

    def report_alone(self) -> Report:
        """A report on a connection of its own, for use in another thread."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            return report_over(connection)
        finally:
            connection.close()

    def release(self, seconds: int, reason: str = "a MIG change is pending") -> tuple[int, Any]:
        """Ask the agent to let go of NVML."""
        body = msgspec.json.encode({"seconds": seconds, "reason": reason})
        return self.ask("POST", "/v1/release", body)

    @property
    def nvml_is_open(self) -> bool:
        return self.fake.init_count != self.fake.shutdown_count

    def stop(self) -> bool:
        """Stop the agent; False when NVML hung."""
        self._connection.close()
        return self._server.stop()

    def close(self) -> None:
        """Stop the agent and take its NVML away."""
        self.stop()
        nvml.uninstall()


def report_over(connection: http.client.HTTPConnection) -> Report:
    """A report, which must come."""
    connection.request("GET", "/v1/report", headers={TOKEN_HEADER: good_token()})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    return decode_report(body)


def good_token() -> str:
    """The server's token of this hour."""
    return make_token(SECRET, POD_UID, NODE_NAME, time.time())


def our_threads() -> set[str]:
    """Names of threads of an agent that run in this process."""
    return {thread.name for thread in threading.enumerate()} & OUR_THREADS


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait for ``condition()``; raises ``AssertionError`` when it stays false."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
