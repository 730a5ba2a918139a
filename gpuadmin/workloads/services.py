"""Every write to pods, to who holds what, and to the counts that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from agent.contract.report import PodDevices
from gpuadmin.fleet.fitting import plain
from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.fleet.services import store_resources
from gpuadmin.planning.resources import recognise
from gpuadmin.workloads.facts import records
from gpuadmin.workloads.models import Pod, PodDevice

MAX_DEVICE_ID = 1000
_WATCHED = [f.name for f in Pod._meta.fields if f.name not in ("id", "cluster", "uid")]


def store_pods(cluster: Cluster, pods: Mapping[str, Mapping[str, Any]], now: datetime) -> set[str]:
    """Insert or update pods, columns by uid, in two queries a thousand, however they come (C25).

    A finish is final: a later flip of a finished pod to another phase doesn't reopen it (C04).
    Returns the names of nodes whose counts may have changed.
    """
    known = {pod.uid: pod for pod in Pod.objects.filter(cluster=cluster, uid__in=list(pods))}
    rows, dirty = [], set()
    for uid, columns in pods.items():
        row, old = Pod(cluster=cluster, uid=uid, observed_at=now, **columns), known.get(uid)
        if old is not None and old.finished_at is not None:
            row.finished_at = old.finished_at
        rows.append(row)
        dirty |= {row.node_name, old.node_name if old else ""} - {""}
    Pod.objects.bulk_create(
        rows,
        batch_size=1000,
        update_conflicts=True,
        unique_fields=["cluster", "uid"],
        update_fields=_WATCHED,
    )
    return dirty


def forget_pods(cluster: Cluster, uids: Iterable[str], now: datetime) -> set[str]:
    """These pods no longer exist. Returns the names of their nodes."""
    gone = Pod.objects.filter(cluster=cluster, uid__in=list(uids), gone_at__isnull=True)
    names = set(gone.values_list("node_name", flat=True)) - {""}
    gone.update(gone_at=now)
    return names


def store_devices(node: Node, pods: tuple[PodDevices, ...]) -> None:
    """Replace what the node's containers hold; nothing is written when nothing changed."""
    wanted = {
        _key(holder, device.id): device
        for holder in pods
        if recognise(holder.resource)  # the kubelet lists every plugin's devices, not only GPUs
        for device in holder.devices
    }
    known = {
        (d.namespace, d.pod_name, d.container, d.resource, d.device_id): d
        for d in node.pod_devices.all()
    }
    PodDevice.objects.filter(pk__in=[known[k].pk for k in set(known) - set(wanted)]).delete()
    PodDevice.objects.bulk_create(
        PodDevice(
            node=node,
            namespace=key[0],
            pod_name=key[1],
            container=key[2],
            resource=key[3],
            device_id=key[4],
            gpu_uuid=device.gpu_uuid or "",
            mig_uuid=device.mig_uuid or "",
            slot=device.slot,
            recognised=device.recognised,
        )
        for key, device in wanted.items()
        if key not in known
    )


@transaction.atomic
def recount(cluster: Cluster, node_names: Iterable[str], now: datetime) -> None:
    """Count these nodes again, each under its row's lock, in uid order (no deadlocks)."""
    wanted = list(node_names)
    locked = Node.objects.select_for_update().filter(
        cluster=cluster, name__in=wanted, gone_at__isnull=True
    )
    list(locked.order_by("uid").values_list("pk", flat=True))
    for record in records(cluster, now, names=wanted):
        store_resources(record.node, record.account.rows, now)


def _key(holder: PodDevices, device_id: str) -> tuple[str, str, str, str, str]:
    names = (holder.namespace, holder.pod, holder.container)
    namespace, pod, container = (plain(name)[:253] for name in names)
    return namespace, pod, container, holder.resource, plain(device_id)[:MAX_DEVICE_ID]
