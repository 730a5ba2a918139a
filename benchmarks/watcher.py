"""The watcher against a replayed API server: its first sync, and a stream of events.

``python -m benchmarks.watcher [first|stream]`` prints one line a figure, with the budget of
issue 3. PostgreSQL, the watcher and the API server are processes of their own; CPU is the watcher's
and PostgreSQL's, from the watcher's first list on.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks import generate, peer, replay
from benchmarks.processes import cpu_seconds, peak_mib
from dev.processes import Command, spawn, stop, tail, wait_until
from dev.services import Postgres, prepare_postgres

ROOT = Path(__file__).resolve().parent.parent
NODES, PODS, GPU_SHARE = 5_000, 50_000, 0.3
RATE, STREAM_SECONDS = 500, 60
SECRET = "a benchmark's secret, long enough for the check"  # noqa: S105 - of no worth


@dataclass(frozen=True)
class World:
    """A database of our own, and where the processes' logs are."""

    home: Path
    postgres: Postgres
    server: subprocess.Popen[bytes]

    @property
    def environ(self) -> dict[str, str]:
        return os.environ | {
            "DJANGO_SETTINGS_MODULE": "gpuadmin.settings",
            "GPUADMIN_DATABASE_URL": self.postgres.url,
            "GPUADMIN_REDIS_URL": "unix:///nowhere.sock",
            "GPUADMIN_SECRET_KEY": SECRET,
            "GPUADMIN_AGENT_SECRET": SECRET,
            "GPUADMIN_KUBECONFIG": str(self.home / "kubeconfig"),
        }

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            return connection.execute(sql.encode()).fetchall()

    @contextmanager
    def running(self, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
        log = self.home / "process.log"
        command = Command(argv[0], [sys.executable, *argv], self.environ)
        process = spawn(command, log)
        try:
            yield process
        finally:
            stop(process, command.stop_signal, seconds=10)
            print(tail(log), end="", file=sys.stderr)


@contextmanager
def world() -> Iterator[World]:
    """PostgreSQL with our tables and nothing in them; gone at the end."""
    home = Path(tempfile.mkdtemp(prefix="gpuadmin-bench-"))
    home.chmod(0o755)  # PostgreSQL's user has to enter
    postgres = prepare_postgres(home, home / "pg", durable=True)
    command = postgres.command()
    argv = [*command.argv, "-c", "track_commit_timestamp=on"]
    server = spawn(dataclasses.replace(command, argv=argv), home / "postgres.log")
    try:
        if not wait_until(postgres.is_ready, seconds=20):
            sys.exit(tail(home / "postgres.log"))
        made = World(home, postgres, server)
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=ROOT, env=made.environ, check=True)
        yield made
    finally:
        stop(server, command.stop_signal, seconds=10)
        shutil.rmtree(home)


@contextmanager
def replayed(home: Path, *arguments: str) -> Iterator[str]:
    """A replay server in a process of its own; its URL."""
    argv = [sys.executable, "-m", "benchmarks.replay", *arguments]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout  # noqa: S101  a pipe was asked for
            url = process.stdout.readline().removeprefix("ready: ").strip()
            replay.kubeconfig(home / "kubeconfig", url)
            yield url
        finally:
            process.terminate()


def first_sync() -> None:
    """5,000 nodes and 50,000 pods, read and stored for the first time."""
    size = ["--nodes", str(NODES), "--pods", str(PODS), "--gpu-share", str(GPU_SHARE)]
    with world() as here, replayed(here.home, *size) as url:
        with here.running("manage.py", "watch") as watcher:
            wait_until(lambda: bool(_stats(url)["listed"]), seconds=60, pause=0.02)
            before, begun = cpu_seconds(here.server.pid), time.monotonic()
            start = cpu_seconds(watcher.pid)
            if not wait_until(lambda: _synced(here), seconds=180, pause=1.0):
                sys.exit("The first sync did not end.")
            took = time.monotonic() - begun
            ours = cpu_seconds(watcher.pid) - start
            theirs = cpu_seconds(here.server.pid) - before
            memory = peak_mib(watcher.pid)
        print(f"first sync of {NODES} nodes and {PODS} pods: {took:.1f} s")
        print(
            f"  CPU {ours + theirs:.1f} s: watcher {ours:.1f}, PostgreSQL {theirs:.1f} (budget 6)"
        )
        print(f"  memory of the watcher, VmHWM: {memory:.0f} MiB (budget 250 MB)", flush=True)
        plain = peer.parse_all(url)
    print(
        f"  the official client's models, parsing alone: {plain.cpu_seconds:.1f} s, "
        f"{plain.peak_mib:.0f} MiB; ours is 1/{plain.cpu_seconds / (ours + theirs):.0f} "
        "(budget 1/8)"
    )


def stream() -> None:
    """A recorded stream of events at a fixed rate, onto a fleet of a thousand nodes."""
    told = ["--nodes", "1000", "--pods", "10000", "--gpu-share", str(GPU_SHARE)]
    told += ["--rate", str(RATE), "--events", str(RATE * STREAM_SECONDS)]
    with (
        world() as here,
        replayed(here.home, *told) as url,
        here.running("manage.py", "watch") as watcher,
    ):
        if not wait_until(lambda: _stats(url)["began"] is not None, seconds=60):
            sys.exit("The watch did not begin.")
        before, begun = cpu_seconds(watcher.pid) + cpu_seconds(here.server.pid), time.monotonic()
        wait_until(lambda: bool(_stats(url)["done"]), seconds=STREAM_SECONDS + 30, pause=0.5)
        used = cpu_seconds(watcher.pid) + cpu_seconds(here.server.pid) - before
        share = used / (time.monotonic() - begun)
        time.sleep(3)
        lags = _lags(here, url)
        late = _stats(url)["late_seconds"]
    p95 = statistics.quantiles(lags, n=20)[-1]
    print(f"{RATE} events a second for {STREAM_SECONDS} s, {GPU_SHARE:.0%} of GPU pods:")
    print(
        f"  sent to committed, {len(lags)} pods: median {statistics.median(lags):.2f} s, "
        f"p95 {p95:.2f} s (budget 2); the sender was at most {late:.2f} s late"
    )
    print(f"  watcher and PostgreSQL: {share:.2f} of a core (budget 0.8)")


def _synced(here: World) -> bool:
    asked = "SELECT count(*), sum(requested) FROM fleet_noderesource WHERE requested IS NOT NULL"
    [(rows, cards)] = here.ask(asked)
    [(agents,)] = here.ask("SELECT count(*) FROM fleet_agentstate")
    wanted = sum(generate.PODS_PER_NODE)
    return (rows, agents) == (NODES, NODES) and cards == wanted * NODES


def _stats(url: str) -> dict[str, float | bool | None]:
    with urllib.request.urlopen(f"{url}/replay/stats") as answer:  # noqa: S310 - ours
        found: dict[str, float | bool | None] = json.load(answer)
    return found


def _lags(here: World, url: str) -> list[float]:
    """Of each pod that was deleted: from when its last event was sent until it was committed."""
    sent = _stats(url)["began"]
    rows = here.ask(
        "SELECT name, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 "
        "FROM workloads_pod WHERE gone_at IS NOT NULL"
    )
    return [
        float(str(at)) - float(sent or 0) - replay.deleted_at(_number(name) - 10_000) / RATE
        for name, at in rows
    ]


def _number(name: object) -> int:
    return int(str(name).rpartition("-")[2])


def main() -> None:
    wanted = sys.argv[1:] or ["first", "stream"]
    for name in wanted:
        {"first": first_sync, "stream": stream}[name]()


if __name__ == "__main__":
    main()
