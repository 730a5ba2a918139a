"""`make demo` from outside: it gets ready, survives its database, and leaves nothing behind."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.processes import tail, wait_until

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 110  # 20 are promised on an idle machine; here the other tests run beside it


class Demo:
    """A demo with a home and a port of its own, started as `make demo` starts it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = home / "out"

    def start(self) -> None:
        environ = os.environ | {"PORT": str(self.port), "GPUADMIN_DEMO_HOME": str(self.home)}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["make", "demo"], cwd=ROOT, env=environ, stdout=log, stderr=subprocess.STDOUT
            )
        ready = wait_until(
            lambda: "ready: " in self.log.read_text() or self.process.poll() is not None,
            START_SECONDS,
        )
        assert ready, tail(self.log)
        self.ready = self.log.read_text().splitlines()[-1]

    def get(self, path: str) -> Any:
        token = (self.home / "token").read_text()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return json.load(answer)

    def pids(self) -> list[int]:
        """Every process that knows of this demo's home."""
        mark = f"GPUADMIN_DEMO_HOME={self.home}".encode()
        found = []
        for folder in Path("/proc").iterdir():
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except (OSError, ValueError):
                continue
        return found

    def serves(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def demo() -> Iterator[Demo]:
    home = Path(tempfile.mkdtemp(prefix="gpuadmin-test-"))
    home.chmod(0o755)  # PostgreSQL's user has to enter
    started = Demo(home)
    yield started
    for pid in started.pids():
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(home)


@pytest.mark.timeout(300)
def test_the_demo_gets_ready_survives_its_database_and_leaves_nothing(demo: Demo) -> None:
    demo.start()
    password = (demo.home / "password").read_text()
    assert demo.ready == f"ready: http://127.0.0.1:{demo.port} admin {password}"
    nodes = demo.get("/api/v1/nodes?page_size=500")["results"]
    assert len(nodes) == 12
    assert [n["name"] for n in nodes if n["agent"]["reported_at"] is None] == ["t4-01"]
    assert (demo.home / "kubeconfig").exists()

    postgres = int((demo.home / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])
    os.kill(postgres, signal.SIGKILL)
    assert wait_until(lambda: "postgres ended with -9" in demo.log.read_text(), 10)
    assert wait_until(lambda: answers(demo), 30)

    demo.process.send_signal(signal.SIGHUP)
    demo.process.wait(timeout=10)
    assert wait_until(lambda: not demo.pids(), 5)
    assert not demo.serves()


def answers(demo: Demo) -> bool:
    try:
        return bool(demo.get("/api/v1/nodes")["count"] == 12)
    except OSError:
        return False


def test_a_port_in_use_is_one_sentence(demo: Demo) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", demo.port))
        other.listen()
        environ = os.environ | {"PORT": str(demo.port), "GPUADMIN_DEMO_HOME": str(demo.home)}
        ended = subprocess.run(
            ["make", "demo"], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
        )
    assert ended.returncode != 0
    assert ended.stderr.splitlines()[0] == (
        f"The demo cannot go on. Port {demo.port} of 127.0.0.1 is in use: "
        f"choose another, as in PORT=8001 make demo."
    )
