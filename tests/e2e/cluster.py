"""A small simulated cluster behind the console, and a worker beside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from queue import SimpleQueue
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.kube.client import KubeClient
from gpuadmin.operations import clients, engine, nudge
from tests.operations.world import World
from tests.web.world import beat

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATES_GPU = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def small_cluster(client: KubeClient, now: datetime) -> World:
    """Two nodes with cards, and pods on the first: a job's, a bare one, and one that tolerates."""
    cluster = Cluster.objects.create(
        name="lab", simulated=True, nodes_observed_at=now, pods_observed_at=now
    )
    beat(cluster, now)
    world = World(client, cluster)
    world.clear()
    world.make_namespaces("team", "gpuadmin")
    world.node("h100-01", taints=[GPU_TAINT])
    world.node("h100-02")
    world.pod("train-0", "h100-01", gpu=2, tolerations=TOLERATES_GPU)
    world.pod("scratch", "h100-01", gpu=1, tolerations=TOLERATES_GPU, owner=None)
    world.pod("monitor", "h100-01", tolerations=[{"operator": "Exists"}])
    sync(world)
    return world


def sync(world: World) -> None:
    """What the watcher does: our rows follow the cluster."""
    for node in Node.objects.filter(cluster=world.cluster):
        amount = {"nvidia.com/gpu": 8}
        node.ready, node.is_gpu_node = True, True
        node.capacity = node.allocatable = amount
        node.taints = world.taints(node.name)
        node.unschedulable = bool(world.get_node(node.name)["spec"].get("unschedulable"))
        node.observed_at = timezone.now()
        node.save()


@contextmanager
def worker(client: KubeClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs operations as Celery's worker does, in a thread with a connection of its own."""
    queue: SimpleQueue[UUID | None] = SimpleQueue()
    monkeypatch.setattr(clients, "_client", lambda *arguments: client)
    monkeypatch.setattr(nudge, "send", lambda operation_id, **_: queue.put(operation_id))
    thread = threading.Thread(target=_work, args=(queue, client), daemon=True)
    thread.start()
    try:
        yield
    finally:
        queue.put(None)
        thread.join(20)


def _work(queue: SimpleQueue[Any], client: KubeClient) -> None:
    try:
        while (operation_id := queue.get()) is not None:
            again = engine.run(operation_id, worker="e2e", client=client)
            if again is not None:
                timer = threading.Timer(min(again, 0.5), queue.put, [operation_id])
                timer.daemon = True
                timer.start()
    finally:
        connection.close()
