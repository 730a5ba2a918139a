"""Operations by real Celery workers on a real queue, and several workers at one operation."""

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from gpuadmin.accounts.models import AuditEntry
from gpuadmin.celery import app
from gpuadmin.operations import engine, nudge
from gpuadmin.operations.models import Operation, State, Step
from tests.operations.conftest import Make
from tests.operations.world import World

pytestmark = pytest.mark.django_db(transaction=True)
MAINT = {"key": "maint", "effect": "NoSchedule"}


def test_c41_copies_of_a_message_at_the_same_moment_have_one_effect(
    world: World, make: Make
) -> None:
    operation = make("taint.add", nodes=[world.node("h100-01")], **MAINT)
    start = threading.Barrier(3)

    def deliver(number: int) -> None:
        start.wait()
        try:
            engine.run(operation.pk, worker=f"w{number}", client=world.client)
        finally:
            connection.close()

    _all_at_once(deliver)
    operation.refresh_from_db()
    assert (operation.state, operation.fence) == (State.SUCCEEDED, 1)
    assert AuditEntry.objects.filter(object_name="h100-01", outcome="done").count() == 1
    assert world.taints("h100-01") == [MAINT]


def test_two_operations_on_one_node_never_run_together(world: World, make: Make) -> None:
    uid = world.node("h100-01")
    operations = [make("taint.add", nodes=[uid], key=f"k{n}", effect="NoSchedule") for n in "abc"]
    start = threading.Barrier(3)

    def deliver(number: int) -> None:
        start.wait()
        try:
            for _ in range(40):
                engine.run(operations[number].pk, worker=f"w{number}", client=world.client)
                time.sleep(0.05)
        finally:
            connection.close()

    _all_at_once(deliver)
    rows = list(Operation.objects.order_by("created_at"))
    assert [row.state for row in rows] == [State.SUCCEEDED] * 3
    for first, second in itertools.pairwise(rows):
        verified = Step.objects.get(target__operation=first, name=Step.Name.VERIFY).finished_at
        assert verified is not None
        assert second.started_at is not None
        assert verified <= second.started_at  # the lock is freed once nothing more is written
    assert [taint["key"] for taint in world.taints("h100-01")] == ["ka", "kb", "kc"]


def test_a_real_worker_takes_up_a_message_that_comes_three_times(
    world: World,
    make: Make,
    process_environ: dict[str, str],
    api_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    real_nudge: Callable[..., None],
) -> None:
    operation = make("taint.add", nodes=[world.node("h100-01")], **MAINT)
    url = process_environ["GPUADMIN_REDIS_URL"].replace("unix://", "redis+socket://", 1)
    monkeypatch.setattr(nudge, "app", _app_on(url))
    for _ in range(3):
        real_nudge(operation.pk)
    command = [sys.executable, "-m", "celery", "-A", "gpuadmin", "worker"]
    command += ["--queues", "operations", "--pool", "threads", "--concurrency", "2"]
    environ = process_environ | {"GPUADMIN_KUBECONFIG": str(api_folder / "kubeconfig")}
    worker = subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)
    try:
        _until(lambda: Operation.objects.get().is_final, seconds=40)
    finally:
        worker.terminate()
        worker.wait(20)
    operation.refresh_from_db()
    assert (operation.state, operation.fence) == (State.SUCCEEDED, 1)
    assert operation.worker.startswith("celery@")
    assert world.taints("h100-01") == [MAINT]


def _app_on(url: str) -> Any:
    """Our Celery application, speaking to the tests' own queue."""
    other = type(app)("gpuadmin")
    other.config_from_object("django.conf:settings", namespace="CELERY")
    other.conf.update(broker_url=url)
    return other


def _all_at_once(deliver: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=deliver, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def _until(done: Callable[[], bool], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "the worker did not come to an end"
        time.sleep(0.2)
