"""The product as an installation runs it: web, worker with beat, watcher, each a process.

What tests see of it comes through its public doors: REST with a token, pages after a sign-in.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

from dev import processes
from dev.first_steps import USER
from dev.processes import Command
from tests.conftest import AGENT_SECRET, SECRET_KEY, Services
from tests.controlplane.client import CALL_SECONDS, Answer, Document
from tests.controlplane.waiting import until
from tests.support.processes import ROOT

START_SECONDS = 60.0
LEASE_SECONDS = 20
STOP_SECONDS = 10.0


class Console:
    """A running console. ``start`` brings it up, ``stop`` ends every process of it."""

    def __init__(
        self, services: Services, folder: Path, kubeconfig: Path, *, worker_kubeconfig: Path
    ) -> None:
        self.folder = folder
        self._port = _free_port()
        self._environ = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.cluster.settings",
            "GPUADMIN_DATABASE_URL": services.postgres.url,
            "GPUADMIN_REDIS_URL": services.valkey.url,
            "GPUADMIN_SECRET_KEY": SECRET_KEY,
            "GPUADMIN_AGENT_SECRET": AGENT_SECRET,
            "GPUADMIN_LOOPBACK_AGENTS": "true",
            "GPUADMIN_KUBECONFIG": str(kubeconfig),
            "GPUADMIN_POLL_SECONDS": "5",
            "GPUADMIN_OPERATION_LEASE_SECONDS": str(LEASE_SECONDS),
            "PYTHONPATH": str(ROOT),
        }
        self._worker = {"GPUADMIN_KUBECONFIG": str(worker_kubeconfig)}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._browser = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar())
        )

    def start(self) -> None:
        """Bring up database, processes and a signed-in browser, or raise what went wrong."""
        password = secrets.token_urlsafe(12)
        (self.folder / "password").write_text(password)
        steps = [sys.executable, "-m", "dev.first_steps", str(self.folder)]
        subprocess.run(steps, cwd=ROOT, env=self._environ, check=True, timeout=START_SECONDS)
        for name in ("web", "worker", "watcher"):
            self._spawn(name)
        until(self._is_ready, START_SECONDS, f"the console to be ready, see {self.folder}")
        self._sign_in(password)

    def stop(self) -> None:
        """End the processes."""
        for process in self._running.values():
            process.terminate()
        for name in list(self._running):
            self._end(name)

    @contextmanager
    def without_watcher(self) -> Iterator[None]:
        """Nobody watches the cluster in this block; then the watcher starts anew."""
        self._end("watcher")
        try:
            yield
        finally:
            self._spawn("watcher")

    def kill_worker(self) -> None:
        """kill -9, so that it says nothing more to anybody."""
        os.killpg(self._running["worker"].pid, signal.SIGKILL)

    def restart_worker(self) -> None:
        """Another worker in the place of one that was killed."""
        self._end("worker")
        self._spawn("worker")

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One REST call below /api/v1 as an administrator, whatever its status."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=CALL_SECONDS)
        sent = {"Authorization": f"Bearer {(self.folder / 'token').read_text()}"}
        sent |= {"Content-Type": "application/json"} | dict(headers or {})
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1{path}", payload, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode())
        finally:
            connection.close()

    def get(self, path: str) -> Document:
        """What REST has at ``path``, which must be there."""
        answer = self.call("GET", path)
        assert answer.status == 200, f"{path}: {answer.status} {answer.text}"
        return answer.body

    def all(self, noun: str) -> list[Document]:
        """Every item of a list."""
        found: list[Document] = self.get(f"/{noun}?page_size=500")["results"]
        return found

    def page(self, path: str) -> str:
        """A page's HTML, as the signed-in browser gets it."""
        with self._browser.open(self._url(path), timeout=CALL_SECONDS) as answer:
            html: str = answer.read().decode()
        return html

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._port}{path}"

    def _sign_in(self, password: str) -> None:
        form = self.page("/sign-in")
        mark = 'name="csrfmiddlewaretoken" value="'
        token = form.split(mark, 1)[1].split('"', 1)[0]
        sent = {"username": USER, "password": password, "csrfmiddlewaretoken": token}
        data = urlencode(sent).encode()
        with self._browser.open(self._url("/sign-in"), data, CALL_SECONDS) as answer:
            assert answer.url == self._url("/"), answer.url

    def _spawn(self, name: str) -> None:
        command = self._commands()[name]
        self._running[name] = processes.spawn(command, self.folder / f"{name}.log")

    def _end(self, name: str) -> None:
        process = self._running.pop(name)
        processes.stop(process, self._commands()[name].stop_signal, STOP_SECONDS)

    def _commands(self) -> dict[str, Command]:
        web = ["gunicorn", "gpuadmin.wsgi", "--bind", f"127.0.0.1:{self._port}"]
        web += ["--worker-class", "gthread", "--threads", "4", "--no-control-socket"]
        web += ["--worker-tmp-dir", tempfile.gettempdir(), "--graceful-timeout", "1"]
        worker = ["celery", "-A", "gpuadmin", "worker", "--beat", "--pool", "threads"]
        worker += ["--scheduler", "celery.beat:Scheduler", "--queues", "poll,operations,default"]
        python = [sys.executable, "-m"]
        watcher = [sys.executable, str(ROOT / "manage.py"), "watch"]
        return {
            "web": Command("web", [*python, *web], self._environ),
            "worker": Command("worker", [*python, *worker], self._environ | self._worker),
            "watcher": Command("watcher", watcher, self._environ),
        }

    def _is_ready(self) -> bool:
        for name, process in self._running.items():
            log = processes.tail(self.folder / f"{name}.log")
            assert process.poll() is None, f"{name} ended:\n{log}"
        try:
            clusters = self.all("clusters")
        except OSError:  # it does not listen yet
            return False
        return bool(clusters) and clusters[0]["pods_observed_at"] is not None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
