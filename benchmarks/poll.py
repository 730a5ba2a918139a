"""A whole cycle of the poll over 1,000 agents, beside a plain one in the same run.

``python -m benchmarks.poll``: CPU of our own process and of PostgreSQL for asking every agent and
storing raw and latest readings, durably; then how a cycle ends with 2 % of the agents hanging. The
agents are one process (`benchmarks.agents`), whose CPU is not counted. The plain cycle is what one
would write first: aiohttp, json, ``bulk_create`` and ``bulk_update``.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.names import BOOT, address, node_name, pod_uid
from benchmarks.processes import cpu_seconds
from benchmarks.watcher import World, world

ROOT = Path(__file__).resolve().parent.parent
NODES, HANGING, CYCLES = 1000, 20, 5
BUDGET_SECONDS, BUDGET_RATIO = 0.6, 0.5
DEADLINE_SECONDS = 3.0


@contextmanager
def agents(hanging: int = 0) -> Iterator[int]:
    """The agents' port."""
    argv = [sys.executable, "-m", "benchmarks.agents"]
    argv += ["--nodes", str(NODES), "--hanging", str(hanging)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout  # noqa: S101  a pipe was asked for
            yield int(process.stdout.readline().removeprefix("ready: "))
        finally:
            process.terminate()


def prepare(port: int) -> None:
    """Rows of a thousand nodes whose agents are at ``port``."""
    from django.utils import timezone  # noqa: PLC0415  after django.setup()

    from gpuadmin.fleet.models import AgentState, Cluster, Node  # noqa: PLC0415
    from gpuadmin.ledger.services import keep_partitions  # noqa: PLC0415

    now = timezone.now()
    keep_partitions(now, 48)
    cluster, _ = Cluster.objects.get_or_create(name="default")
    if not Node.objects.exists():
        made = Node.objects.bulk_create(
            Node(
                cluster=cluster,
                uid=f"uid-{number}",
                name=node_name(number),
                observed_at=now,
                ready=True,
                is_gpu_node=True,
                info={"bootID": BOOT},
                capacity={"nvidia.com/gpu": 8},
                allocatable={"nvidia.com/gpu": 8},
            )
            for number in range(NODES)
        )
        AgentState.objects.bulk_create(
            AgentState(node=node, status="unreachable", since=now, pod_uid=pod_uid(number),
                       address=address(number), port=port)
            for number, node in enumerate(made)
        )  # fmt: skip
    AgentState.objects.update(port=port)


def cycle() -> None:
    """What the poll's tasks do, one shard after the other."""
    from gpuadmin.collect import poll  # noqa: PLC0415
    from gpuadmin.fleet.models import Cluster  # noqa: PLC0415

    cluster = Cluster.objects.get()
    for number, shard in enumerate(poll.shards(cluster)):
        poll.end_shard(cluster, number, poll.poll_shard(shard))


@lru_cache(maxsize=1)
def _reading_model() -> Any:
    """The table of raw readings as a model, which the product has no use for."""
    from django.db import models  # noqa: PLC0415

    class Reading(models.Model):
        at = models.DateTimeField(primary_key=True)
        gpu_id = models.BigIntegerField()
        memory_used_bytes = models.BigIntegerField(null=True)
        power_watts = models.FloatField(null=True)
        utilization_percent = models.SmallIntegerField(null=True)
        temperature_celsius = models.SmallIntegerField(null=True)

        class Meta:
            app_label, managed, db_table = "ledger", False, "ledger_reading"

        def __str__(self) -> str:
            return f"{self.gpu_id} at {self.at}"

    return Reading


def plain_cycle() -> None:
    """The peer."""
    from django.db import connection, transaction  # noqa: PLC0415
    from django.utils import timezone  # noqa: PLC0415

    from gpuadmin.fleet.models import AgentState, Gpu  # noqa: PLC0415

    names = ("memory_used_bytes", "power_watts", "utilization_percent", "temperature_celsius")
    places = AgentState.objects.values_list("address", "port")
    bodies = asyncio.run(_get_all([f"http://{host}:{port}/v1/report" for host, port in places]))
    reading = _reading_model()
    by_uuid = {gpu.uuid: gpu for gpu in Gpu.objects.all()}
    now = timezone.now()
    touched, rows = [], []
    for body in bodies:
        for told in json.loads(body)["gpus"]:
            gpu = by_uuid[told["uuid"]]
            values = {name: told.get(name) for name in names}
            gpu.__dict__.update(values, read_at=now)
            touched.append(gpu)
            rows.append(reading(at=now, gpu_id=gpu.pk, **values))
    with transaction.atomic():
        reading.objects.bulk_create(rows)
        Gpu.objects.bulk_update(touched, [*names, "read_at"], batch_size=500)
        AgentState.objects.update(asked_at=now, reported_at=now)
    connection.close()


async def _get_all(urls: list[str]) -> list[bytes]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=256)) as session:

        async def get(url: str) -> bytes:
            async with session.get(url) as answer:
                return await answer.read()

        return await asyncio.gather(*map(get, urls))


def cost(here: World, work: Callable[[], None], times: int) -> tuple[float, float]:
    """CPU seconds of one run of ``work``: in this process, and in PostgreSQL."""
    ours, theirs = time.process_time(), cpu_seconds(here.server.pid)
    for _ in range(times):
        work()
    return (
        (time.process_time() - ours) / times,
        (cpu_seconds(here.server.pid) - theirs) / times,
    )


def measure(here: World) -> None:
    with agents() as port:
        prepare(port)
        print(f"first cycle, every report whole: {sum(cost(here, cycle, 1)):.1f} s of CPU")
        cycle()  # plans and caches
        ours, theirs = cost(here, cycle, CYCLES)
        plain = sum(cost(here, plain_cycle, 2))
    print(
        f"cycle of {NODES} agents, 8 cards each: {ours + theirs:.2f} s of CPU "
        f"(ours {ours:.2f}, PostgreSQL {theirs:.2f}; budget {BUDGET_SECONDS})"
    )
    ratio = (ours + theirs) / plain
    print(f"  a plain cycle: {plain:.2f} s; ratio {ratio:.2f} (budget {BUDGET_RATIO})")
    with agents(HANGING) as port:
        prepare(port)
        cycle()
        begun = time.monotonic()
        seen: list[float] = []
        done = threading.Event()
        watching = threading.Thread(target=_watch, args=(here, begun, seen, done))
        watching.start()
        cycle()
        took = time.monotonic() - begun
        done.set()
        watching.join()
    print(f"with {HANGING} agents hanging: {took:.2f} s (budget {1.1 * DEADLINE_SECONDS:.1f})")
    visible = f"{seen[0]:.2f} s" if seen else "the end"
    print(f"  all others were visible after {visible} (budget 2)")


def _watch(here: World, begun: float, seen: list[float], done: threading.Event) -> None:
    """When all nodes but the hanging ones have a report of this cycle."""
    [(since,)] = here.ask("SELECT now()")
    while not done.wait(0.05):
        asked = f"SELECT count(*) FROM fleet_agentstate WHERE reported_at >= '{since}'"  # noqa: S608
        [(count,)] = here.ask(asked)
        if count == NODES - HANGING and not seen:
            seen.append(time.monotonic() - begun)


def main() -> None:
    import django  # noqa: PLC0415

    with world() as here:
        os.environ.update(here.environ)
        django.setup()
        from django.db import connections  # noqa: PLC0415

        try:
            measure(here)
        finally:
            connections.close_all()


if __name__ == "__main__":
    main()
