"""The whole product in processes of its own, so that a test may kill any of them.

PostgreSQL, the queue, web, watcher, workers and beats are real; the Kubernetes API says what it
is told (tests.support), and so do the agents, which are this process's threads.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from dev import processes
from dev.processes import Command
from dev.services import Postgres, Valkey, prepare_postgres
from tests.faults.agents import NODES, Agents
from tests.support.processes import ROOT, eventually
from tests.support.scripted_api import Json, ScriptedApi

POLL_SECONDS = 5  # the shortest that an installation may set
SECRET = "the agents' secret of the tests"


@dataclass(frozen=True)
class Told:
    """What an address answered, and how long that took. ``status`` 0: nothing came."""

    status: int
    headers: dict[str, str]
    body: Any
    seconds: float


class House:
    """``with House() as house``: started, polled once. Every process may be killed by name."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gpuadmin-faults-"))
        self.folder.chmod(0o755)  # PostgreSQL's user has to enter
        self.api, self.agents = ScriptedApi(), Agents(SECRET)
        self.valkey = Valkey(self.folder / "valkey.sock")
        self.commands: dict[str, Command] = {}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._stack = ExitStack()

    def __enter__(self) -> House:
        self._stack.callback(self._clear)
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # --- processes

    def start(self, name: str, like: str = "") -> None:
        """Start the process, or another one of the kind ``like`` under that name."""
        command = self.commands[like or name]
        if name == "postgres":
            self._prepare()
        self.running[name] = processes.spawn(command, self.log(name))

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End the process by this signal, and wait for its end."""
        process = self.running.pop(name)
        process.send_signal(number)
        process.wait(30)

    def tend(self) -> None:
        """Start anew what ended by itself, as Kubernetes and compose do."""
        for name, process in list(self.running.items()):
            if process.poll() is not None and name in self.commands:
                self.start(name)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    # --- what an administrator sees

    def get(self, path: str, *, seconds: float = 10) -> Told:
        """One request with an administrator's token."""
        token = (self.folder / "token").read_text()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {token}"}
        )
        begun = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310
                text = answer.read()
                return Told(answer.status, dict(answer.headers), _body(text), _since(begun))
        except urllib.error.HTTPError as error:
            return Told(error.code, dict(error.headers), _body(error.read()), _since(begun))
        except OSError as error:
            return Told(0, {}, str(error), _since(begun))

    def read_at(self) -> dict[str, datetime]:
        """When each card was read last, by its UUID."""
        cards = self.get("/api/v1/gpus?page_size=500").body["results"]
        return {card["uuid"]: datetime.fromisoformat(card["reading"]["observed_at"])
                for card in cards}  # fmt: skip

    def polled_since(self, moment: datetime) -> bool:
        """Whether every card was read after that moment."""
        self.tend()
        told = self.get("/api/v1/gpus?page_size=500")
        if told.status != 200 or len(told.body["results"]) != 8 * len(NODES):
            return False
        times = [card["reading"]["observed_at"] for card in told.body["results"]]
        return all(at and datetime.fromisoformat(at) > moment for at in times)

    def wait_for_a_cycle(self, seconds: float) -> float:
        """How long it took until every card had been read anew."""
        begun, since = time.monotonic(), datetime.now(UTC)
        eventually(partial(self.polled_since, since), seconds=seconds, what="a whole cycle")
        return time.monotonic() - begun

    def sql(self, statement: str) -> list[list[str]]:
        """Rows of the database, for what no page shows: the raw readings of one cycle."""
        programs = self.postgres.programs
        told = subprocess.run(
            [programs / "psql", "-XqAtF", "|", "-d", self.postgres.url, "-c", statement],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return [line.split("|") for line in told.stdout.splitlines()]

    # --- beginning and end

    def _begin(self) -> None:
        self._stack.enter_context(self.agents)
        self.api.daemonset = {"metadata": {"name": "gpuadmin-agent", "uid": "ds"}}
        self.api.nodes.pages = [self.agents.nodes()]
        self.api.pods.pages = [self.agents.pods()]
        self._stack.enter_context(self.api)
        self._prepare()
        self._describe()
        for name, ready in (("postgres", self.postgres.is_ready), ("valkey", self.valkey.is_ready)):
            self.start(name)
            assert processes.wait_until(ready, seconds=30), processes.tail(self.log(name))
        (self.folder / "password").write_text("a password of the faults")
        environ = self.commands["web"].environ
        for arguments in (["-m", "dev.first_steps", str(self.folder)],
                          ["manage.py", "collectstatic", "--noinput", "-v", "0"]):  # fmt: skip
            subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environ, check=True)
        for name in ("web", "watcher", "worker", "beat"):
            self.start(name)
        eventually(
            partial(self.polled_since, datetime.fromtimestamp(0, UTC)), seconds=60, what="a poll"
        )

    def _prepare(self) -> None:
        self.postgres: Postgres = prepare_postgres(self.folder, self.folder / "pg", durable=True)

    def _describe(self) -> None:
        environ = os.environ | {
            "DJANGO_SETTINGS_MODULE": "gpuadmin.settings",
            "GPUADMIN_DATABASE_URL": self.postgres.url,
            "GPUADMIN_REDIS_URL": self.valkey.url,
            "GPUADMIN_SECRET_KEY": "the sessions' secret of the tests, long enough",
            "GPUADMIN_AGENT_SECRET": SECRET,
            "GPUADMIN_LOOPBACK_AGENTS": "true",
            "GPUADMIN_KUBECONFIG": str(self.api.kubeconfig(self.folder / "kubeconfig")),
            "GPUADMIN_POLL_SECONDS": str(POLL_SECONDS),
            "PYTHONPATH": str(ROOT),
        }
        web = ["-m", "gunicorn", "gpuadmin.wsgi", "--bind", f"127.0.0.1:{self.port}"]
        web += ["--worker-class", "gthread", "--threads", "4", "--no-control-socket"]
        worker = ["-m", "celery", "-A", "gpuadmin", "worker", "--queues", "poll,operations,default"]
        worker += ["--pool", "threads", "--concurrency", "4", "--without-gossip"]
        worker += ["--without-mingle", "--without-heartbeat", "--hostname", "w@%h"]
        beat = ["-m", "celery", "-A", "gpuadmin", "beat", "--scheduler", "celery.beat:Scheduler"]
        beat += ["--schedule", str(self.folder / "schedule"), "--pidfile="]
        python = {
            "web": web,
            "worker": worker,
            "beat": beat,
            "watcher": [str(ROOT / "manage.py"), "watch"],
        }
        self.commands = {
            name: Command(name, [sys.executable, *argv], environ) for name, argv in python.items()
        }
        self.commands |= {"postgres": self.postgres.command(), "valkey": self.valkey.command()}

    def _clear(self) -> None:
        for name in reversed(list(self.running)):
            self.running[name].send_signal(signal.SIGCONT)
            processes.stop(self.running[name], signal.SIGTERM, seconds=5)
        subprocess.run(["rm", "-rf", self.folder], check=True)


def _since(begun: float) -> float:
    return time.monotonic() - begun


def _body(text: bytes) -> Json | str:
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except ValueError:
        return text.decode(errors="replace")
