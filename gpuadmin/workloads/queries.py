"""What Overview, Nodes, a node's page and the API show: one set of queries for all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Count, F, Min, QuerySet, When

from gpuadmin.fleet.models import AgentState, Cluster, Finding
from gpuadmin.fleet.queries import Freshness, freshness, open_findings
from gpuadmin.planning.facts import Use
from gpuadmin.workloads.facts import NodeRecord, records
from gpuadmin.workloads.models import Pod, PodDevice


@dataclass(frozen=True)
class Amount:
    """Free and all of one unit. ``free`` is None when requests are not known."""

    free: int | None
    total: int


@dataclass(frozen=True)
class Totals:
    """The five figures and the partition that adds up to ``owned`` (design.md section 9).

    ``allocated`` is None when it is unknown of a card; slices and slots are counted apart.
    """

    nodes: int
    owned: int
    working: int
    allocated: int | None
    uses: Counter[Use]
    slices: Amount
    slots: Amount
    not_observed: int  # cards known only by the API's counts, or by an agent that is silent now

    @property
    def busy(self) -> int:
        return self.uses[Use.BUSY]

    @property
    def idle(self) -> int:
        return self.uses[Use.IDLE]


@dataclass(frozen=True)
class Overview:
    """All that the overview shows, of one moment."""

    cluster: Cluster
    records: list[NodeRecord]  # GPU nodes only
    totals: Totals
    reporting: int  # nodes whose agent answers
    findings: list[Finding]
    waiting: list[Pod]
    freshness: list[Freshness]


@dataclass(frozen=True)
class PodGroup:
    """Pods of one owner in one state; ``first`` stands for all. ``owner`` is "" where none is."""

    namespace: str
    owner: str
    count: int
    first: Pod


def gpu_records(cluster: Cluster, now: datetime) -> list[NodeRecord]:
    """Nodes that have, or advertise, or once had accelerators."""
    return [r for r in records(cluster, now) if r.node.is_gpu_node or r.gpus]


def totals(found: list[NodeRecord]) -> Totals:
    """Sum up nodes. Stale names and data faults are left out of slices and slots (C01, C02)."""
    uses: Counter[Use] = Counter()
    for record in found:
        uses.update(record.account.uses)
    allocated = [record.account.allocated for record in found]
    return Totals(
        nodes=len(found),
        owned=sum(record.account.owned for record in found),
        working=sum(record.account.working for record in found),
        allocated=None if None in allocated else sum(a for a in allocated if a is not None),
        uses=uses,
        slices=_amount(found, "slice"),
        slots=_amount(found, "slot"),
        not_observed=sum(record.account.not_observed for record in found),
    )


def overview(cluster: Cluster, now: datetime) -> Overview:
    """Everything for the overview in a fixed number of queries."""
    found = gpu_records(cluster, now)
    return Overview(
        cluster=cluster,
        records=found,
        totals=totals(found),
        reporting=sum(record.agent_current for record in found),
        findings=list(open_findings(cluster)),
        waiting=list(waiting_pods(cluster)),
        freshness=freshness(cluster, now),
    )


def node_record(cluster: Cluster, name: str, now: datetime) -> NodeRecord | None:
    """One node by the name of its current holder; None when there is none."""
    found = records(cluster, now, names=[name])
    return found[0] if found else None


def waiting_pods(cluster: Cluster) -> QuerySet[Pod]:
    """Pods that ask for accelerators and have no node yet, the longest wait first."""
    return Pod.objects.filter(
        cluster=cluster, gone_at__isnull=True, phase="Pending", node_name=""
    ).order_by("created_at", "namespace", "name")


def present_pods(cluster: Cluster) -> QuerySet[Pod]:
    """Stored pods that still exist in the cluster, finished ones included."""
    return Pod.objects.filter(cluster=cluster, gone_at__isnull=True).order_by("namespace", "name")


def waiting_groups(cluster: Cluster) -> list[PodGroup]:
    """Waiting pods by owner; one that nothing owns is a group of its own."""
    alone = Case(When(owner_name="", then=F("name")), default=F("owner_name"))
    return _groups(waiting_pods(cluster), alone)


def failed_groups(cluster: Cluster) -> list[PodGroup]:
    """Failed pods by owner; those of a namespace that nothing owns are one group (C25)."""
    return _groups(present_pods(cluster).filter(phase="Failed"), F("owner_name"))


def _groups(pods: QuerySet[Pod], owner: Case | F) -> list[PodGroup]:
    """Counted by the database: two queries, however many pods."""
    counted = list(
        pods.annotate(group=owner)
        .order_by("namespace", "group")
        .values("namespace", "group")
        .annotate(pods=Count("pk"), first=Min("pk"))
    )
    firsts = Pod.objects.in_bulk([row["first"] for row in counted])
    return [
        PodGroup(row["namespace"], row["group"], row["pods"], firsts[row["first"]])
        for row in counted
        if row["first"] in firsts
    ]


def devices_of(cluster: Cluster, pods: Iterable[Pod]) -> dict[str, list[PodDevice] | None]:
    """What each pod's containers hold, by the pod's uid; None where its node's kubelet doesn't
    tell. Two queries, however many pods.
    """
    pods = list(pods)
    told = AgentState.objects.filter(
        node__cluster=cluster, node__gone_at=None, reported_at__isnull=False, pods_error=""
    )
    names = set(told.values_list("node__name", flat=True))
    held: dict[tuple[str, str, str], list[PodDevice]] = defaultdict(list)
    for device in PodDevice.objects.filter(
        node__cluster=cluster, node__gone_at=None, pod_name__in={pod.name for pod in pods}
    ).select_related("node"):
        held[device.node.name, device.namespace, device.pod_name].append(device)
    return {
        pod.uid: held[pod.node_name, pod.namespace, pod.name]
        if pod.node_name in names or not pod.node_name
        else None
        for pod in pods
    }


def _amount(found: list[NodeRecord], unit: str) -> Amount:
    rows = [r for record in found for r in record.account.rows if r.unit == unit and not r.note]
    free = [row.free_now for row in rows if row.allocatable is not None]
    return Amount(
        free=None if None in free else sum(f for f in free if f is not None),
        total=sum(row.allocatable or 0 for row in rows),
    )
