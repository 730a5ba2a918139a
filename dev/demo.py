"""`make demo`: the whole console on a simulated cluster, in one folder and on one port.

Everything lives in var/demo, sockets in a short folder of /tmp. Ctrl-C ends all of it.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shlex
import shutil
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from celery import Celery

from dev import processes
from dev.first_steps import USER
from dev.processes import Command
from dev.services import ServiceError, Valkey, prepare_postgres
from dev.supervisor import ChildError, Stopped, Supervisor, handle_signals, ignore_signals
from simulator.cluster import ClusterError, SimulatedCluster

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("GPUADMIN_DEMO_HOME") or ROOT / "var" / "demo")
NODES, NODES_WITH_READINGS = 12, 11  # t4-01 has no agent
PYTHON = sys.executable


class DemoError(Exception):
    """The demo cannot start; the message is a sentence for the terminal."""


def main() -> int:
    handle_signals()
    try:
        port = _port()
        with _only_one(), _runtime_folder() as runtime:
            _run(port, runtime)
    except Stopped:
        print("demo: stopped", flush=True)
        return 0
    except (DemoError, ServiceError, ChildError, ClusterError) as error:
        print(f"The demo cannot go on. {error}", file=sys.stderr)
        return 1
    return 0


def _run(port: int, runtime: Path) -> None:
    begun = time.monotonic()
    logs = HOME / "log"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    print(f"demo: starting (process {os.getpid()}, logs in {logs})", flush=True)
    environ = _environ(runtime)
    os.environ["GPUADMIN_AGENT_SECRET"] = environ["GPUADMIN_AGENT_SECRET"]
    supervisor = Supervisor(logs)
    cluster = SimulatedCluster(runtime / "sim")
    try:
        environ["GPUADMIN_DATABASE_URL"] = _start_services(supervisor, runtime)
        _write_environ(environ)
        cluster.start()
        shutil.copyfile(cluster.kubeconfig, HOME / "kubeconfig")
        _prepare(environ, logs)
        cluster.wait_ready()
        for command in _console(environ, port):
            supervisor.start(command)
        nodes = NodesInApi(port, environ["GPUADMIN_REDIS_URL"])
        supervisor.wait(nodes.are_filled, "Reading the cluster", seconds=90)
        took = time.monotonic() - begun
        print(f"demo: {NODES} nodes, {NODES_WITH_READINGS} with readings, after {took:.0f} s")
        password = (HOME / "password").read_text()
        print(f"ready: http://127.0.0.1:{port} {USER} {password}", flush=True)
        while True:
            supervisor.tend()
            cluster.check()
            time.sleep(0.5)
    finally:
        ignore_signals()
        supervisor.stop(last=("postgres", "valkey"))
        cluster.stop()
        for log in cluster.run_dir.glob("*.log"):
            shutil.copyfile(log, logs / f"simulated-{log.name}")


# --- the place


def _port() -> int:
    """PORT or 8000; raises DemoError where it is no port or somebody listens there."""
    text = os.environ.get("PORT") or "8000"
    if not (text.isascii() and text.isdigit() and 1024 <= int(text) <= 65535):
        raise DemoError(f"PORT must be a number from 1024 to 65535, but it is {text!r}.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(text)))
        except OSError:
            raise DemoError(
                f"Port {text} of 127.0.0.1 is in use: choose another, as in PORT=8001 make demo."
            ) from None
    return int(text)


@contextlib.contextmanager
def _only_one() -> Iterator[None]:
    """Holds var/demo; raises DemoError where another demo of this checkout does."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError("A demo runs in this checkout already: stop that one first.") from None
        yield


@contextlib.contextmanager
def _runtime_folder() -> Iterator[Path]:
    """A short folder for sockets, whose paths may have 107 bytes at most; gone at the end.

    It is the same each time for this checkout, so that what a killed demo left is cleared.
    """
    mark = HOME.stat()
    folder = Path(tempfile.gettempdir()) / f"gpuadmin-{mark.st_dev:x}-{mark.st_ino:x}"
    if folder.is_symlink() or (folder.exists() and folder.stat().st_uid != os.getuid()):
        raise DemoError(f"{folder} belongs to somebody else: remove it, or set TMPDIR.")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _environ(runtime: Path) -> dict[str, str]:
    """What the console's processes get; its secrets are made once and kept in var/demo."""
    # Nobody waits two hours at a demo to see what a held but idle card looks like.
    return (
        {"GPUADMIN_IDLE_AFTER_SECONDS": "60"}
        | os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "gpuadmin.settings",
            "GPUADMIN_SECRET_KEY": _kept_secret("secret-key"),
            "GPUADMIN_AGENT_SECRET": _kept_secret("agent-secret"),
            "GPUADMIN_LOOPBACK_AGENTS": "true",
            "GPUADMIN_RELEASE_LIMIT_SECONDS": "0",  # its stuck MIG change is older than that
            "GPUADMIN_REDIS_URL": Valkey(runtime / "valkey.sock").url,
            "GPUADMIN_KUBECONFIG": str(HOME / "kubeconfig"),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }
    )


def _write_environ(environ: dict[str, str]) -> None:
    """var/demo/env: what `manage.py` needs to work on this demo from another terminal."""
    file = HOME / "env"
    file.touch(mode=0o600)
    names = sorted(name for name in environ if name.startswith(("GPUADMIN_", "DJANGO_")))
    file.write_text("".join(f"export {name}={shlex.quote(environ[name])}\n" for name in names))


def _kept_secret(name: str) -> str:
    file = HOME / name
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(32 if name != "password" else 12))
    return file.read_text()


# --- the processes


def _start_services(supervisor: Supervisor, runtime: Path) -> str:
    """Starts PostgreSQL and Valkey; the address of the database."""
    prepare = partial(prepare_postgres, HOME, runtime / "pg", durable=True)
    postgres = prepare()
    supervisor.start(postgres.command(), before_start=prepare)
    supervisor.start(Valkey(runtime / "valkey.sock").command())
    supervisor.wait(postgres.is_ready, "Starting PostgreSQL", seconds=30)
    return postgres.url


def _prepare(environ: dict[str, str], logs: Path) -> None:
    """Database and static files, at the same time. Raises DemoError."""
    _kept_secret("password")
    static = [PYTHON, str(ROOT / "manage.py"), "collectstatic", "--noinput", "--clear", "-v", "0"]
    work = [
        Command("static", static, environ),
        Command("first-steps", [PYTHON, "-m", "dev.first_steps", str(HOME)], environ),
    ]
    running = [processes.spawn(command, logs / f"{command.name}.log") for command in work]
    for command, process in zip(work, running, strict=True):
        if process.wait() != 0:
            log = processes.tail(logs / f"{command.name}.log")
            raise DemoError(f"The step {command.name} failed:\n{log}")


def _console(environ: dict[str, str], port: int) -> list[Command]:
    """Web, worker with beat, watcher. One worker process each is plenty for 12 nodes."""
    web = [PYTHON, "-m", "gunicorn", "gpuadmin.wsgi", "--bind", f"127.0.0.1:{port}"]
    web += ["--worker-class", "gthread", "--threads", "4", "--no-control-socket"]
    web += ["--worker-tmp-dir", tempfile.gettempdir(), "--graceful-timeout", "2"]
    worker = [PYTHON, "-m", "celery", "-A", "gpuadmin", "worker", "--beat"]
    worker += ["--scheduler", "celery.beat:Scheduler", "--queues", "poll,operations,default"]
    worker += ["--pool", "threads", "--concurrency", "4", "--loglevel", "INFO"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return [
        Command("web", web, environ),
        Command("worker", worker, environ),
        Command("watcher", [PYTHON, str(ROOT / "manage.py"), "watch"], environ),
    ]


class NodesInApi:
    """What /api/v1/nodes says, and a nudge to the poll, which else begins an interval later."""

    def __init__(self, port: int, redis_url: str) -> None:
        self._since = datetime.now(UTC)
        self._address = f"http://127.0.0.1:{port}/api/v1/nodes?page_size=500"
        self._celery = Celery(broker=redis_url.replace("unix://", "redis+socket://"))
        self._nudged = 0.0

    def are_filled(self) -> bool:
        """Whether every node is there, with a reading of this run wherever there is an agent."""
        nodes = self._nodes()
        if len(nodes) != NODES:
            return False
        times = [node["agent"]["reported_at"] for node in nodes]
        read = [at for at in times if at and datetime.fromisoformat(at) > self._since]
        if len(read) < NODES_WITH_READINGS and time.monotonic() > self._nudged + 2:
            self._nudged = time.monotonic()
            self._celery.send_task(
                "gpuadmin.collect.tasks.poll",
                kwargs={"at_once": True},
                queue="poll",
                expires=15,
            )
        return len(read) == NODES_WITH_READINGS

    def _nodes(self) -> list[Any]:
        token = (HOME / "token").read_text()
        request = urllib.request.Request(  # noqa: S310  our own address
            self._address, headers={"Authorization": f"Bearer {token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=2) as answer:  # noqa: S310
                return list(json.load(answer)["results"])
        except (OSError, ValueError, KeyError):
            return []


if __name__ == "__main__":
    sys.exit(main())
