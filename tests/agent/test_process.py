"""The agent as a process of its own: settings, signals, ports."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent import __version__
from agent.config import ConfigError, from_environment
from agent.contract.report import TOKEN_HEADER, decode_report
from simulator import hardware
from tests.agent.door import NODE_NAME, POD_UID, SECRET, good_token, wait_until
from tests.agent.world import card, node

ROOT = Path(__file__).parents[2]
GOOD = {
    "NODE_NAME": NODE_NAME,
    "POD_UID": POD_UID,
    "AGENT_TOKEN_SECRET": SECRET.decode(),
    "AGENT_BIND": "127.0.0.1",
}


class AgentProcess:
    """A simulated agent in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port

    def get(self, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path, headers={TOKEN_HEADER: good_token()})
            return connection.getresponse().read()
        finally:
            connection.close()

    def answers(self) -> bool:
        try:
            return b"ok" in self.get("/healthz")
        except OSError:
            return False


@contextmanager
def agent_process(folder: Path) -> Iterator[AgentProcess]:
    """An agent that answers; whatever happens, it is gone in the end."""
    hardware.write(folder / "hw.json", node(card(0), card(1)))
    port = free_port()
    environ = GOOD | {"AGENT_PORT": str(port), "AGENT_HOST_ROOT": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.agent.simulated", str(folder / "hw.json")],
        cwd=ROOT,
        env=os.environ | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    agent = AgentProcess(process, port)
    try:
        wait_until(agent.answers, seconds=30)
        yield agent
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_c18_a_signal_lets_go_of_nvml_and_ends_well(tmp_path: Path, stop: signal.Signals) -> None:
    with agent_process(tmp_path) as agent:
        assert decode_report(agent.get("/v1/report")).state == "ok"
        agent.process.send_signal(stop)
        counts, _ = agent.process.communicate(timeout=10)

        assert (agent.process.returncode, counts) == (0, "1 1\n")


def test_the_agent_stops_although_a_client_stays_connected(tmp_path: Path) -> None:
    with (
        agent_process(tmp_path) as agent,
        socket.create_connection(("127.0.0.1", agent.port)),
    ):
        agent.process.send_signal(signal.SIGTERM)

        assert agent.process.wait(timeout=10) == 0


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        finished = run_agent(GOOD | {"AGENT_PORT": str(holder.getsockname()[1])})

    assert finished.returncode == 1
    assert "can't listen on 127.0.0.1" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_bad_setting_is_one_sentence_and_status_2() -> None:
    finished = run_agent(GOOD | {"AGENT_PORT": "http"})

    assert finished.returncode == 2
    assert finished.stderr == (
        "gpuadmin agent: AGENT_PORT is 'http': it must be a number from 1 to 65535.\n"
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"NODE_NAME": ""}, "spec.nodeName"),
        ({"POD_UID": " "}, "metadata.uid"),
        ({"AGENT_TOKEN_SECRET": "short"}, "at least 16"),
        ({"AGENT_TOKEN_SECRET_FILE": "/nowhere/token"}, "/nowhere/token can't be read"),
        ({"AGENT_PORT": "0"}, "AGENT_PORT"),
        ({"AGENT_PORT": "65536"}, "AGENT_PORT"),
        ({"AGENT_PORT": "\u0663"}, "AGENT_PORT"),
        ({"AGENT_HOST_ROOT": "/nowhere"}, "AGENT_HOST_ROOT"),
        ({"AGENT_HOST_PID": "maybe"}, "AGENT_HOST_PID"),
    ],
)
def test_each_bad_setting_says_which_and_what_to_do(change: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        from_environment(GOOD | change)


def test_good_settings_are_taken_over(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(SECRET + b"\n")
    config = from_environment(
        {
            "NODE_NAME": NODE_NAME,
            "POD_UID": POD_UID,
            "AGENT_TOKEN_SECRET_FILE": str(tmp_path / "token"),
            "AGENT_HOST_ROOT": str(tmp_path),
            "AGENT_HOST_PID": "true",
            "AGENT_KUBELET_SOCKET": "/run/kubelet.sock",
        }
    )

    assert (config.secret, config.port, config.host_root) == (SECRET, 9477, tmp_path)
    assert (config.host_pid, str(config.kubelet_socket)) == (True, "/run/kubelet.sock")


def test_the_agents_version_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["version"] == __version__


def run_agent(environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agent"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
