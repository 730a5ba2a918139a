"""Every write to pods, to who holds what, and to the counts that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction

from agent.contract.report import PodDevices
from gpuadmin.fleet.fitting import plain
from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.fleet.nodes import store_counts
from gpuadmin.fleet.upsert import Upsert, present
from gpuadmin.planning.resources import recognise
from gpuadmin.workloads.facts import records
from gpuadmin.workloads.models import Pod, PodDevice

MAX_DEVICE_ID = 1000
RECOUNT_AT_ONCE = 500  # nodes: what counting them takes in memory has a bound
_PODS = Upsert(
    Pod,
    key=("cluster_id", "uid"),
    told="node_name",
    # A finish is final: a later flip of a finished pod to another phase doesn't reopen it (C04).
    merged={"finished_at": "COALESCE(t.finished_at, EXCLUDED.finished_at)"},
)


def store_pods(cluster: Cluster, rows: Sequence[bytes], now: datetime) -> set[str]:
    """Insert or update pods, JSON with their uids, a statement a thousand, however they come (C25).

    A bound pod never moves, so the names of nodes whose counts may have changed, which come back,
    are those of the new rows. Raises DataError or IntegrityError for what the table refuses.
    """
    return _PODS.write(rows, always=present(cluster.pk, now)) - {""}


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
    named = Node.objects.filter(cluster=cluster, name__in=list(node_names), gone_at__isnull=True)
    locked = named.select_for_update().order_by("uid").values_list("name", flat=True)
    found = list(locked)
    for start in range(0, len(found), RECOUNT_AT_ONCE):
        names = found[start : start + RECOUNT_AT_ONCE]
        counted = records(cluster, now, names=names, lean=True)
        store_counts({record.node.pk: record.account.rows for record in counted}, now)


def _key(holder: PodDevices, device_id: str) -> tuple[str, str, str, str, str]:
    names = (holder.namespace, holder.pod, holder.container)
    namespace, pod, container = (plain(name)[:253] for name in names)
    return namespace, pod, container, holder.resource, plain(device_id)[:MAX_DEVICE_ID]
