"""What becomes of an agent's report in the store: C25, C27, C28, C38, C40; faults 14 and 17."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.utils import timezone

from agent.contract.report import Device, Gpu, MigInstance, PodDevices, Process, Report, Xid
from gpuadmin.agents.client import Answer, Endpoint, Outcome
from gpuadmin.collect.reports import take
from gpuadmin.fleet import models
from gpuadmin.fleet.services import ensure_cluster
from gpuadmin.ledger.models import XidEvent
from gpuadmin.ledger.services import keep_partitions
from gpuadmin.planning.facts import Use
from gpuadmin.workloads.facts import NodeRecord
from gpuadmin.workloads.models import Pod
from gpuadmin.workloads.queries import node_record

pytestmark = pytest.mark.django_db
GIB = 2**30
GPU = "nvidia.com/gpu"


class Fleet:
    """One node in the store, and an agent that speaks for it."""

    def __init__(self) -> None:
        self.cluster = ensure_cluster("test")
        self.now = timezone.now()
        self.cluster.pods_observed_at = self.now
        self.cluster.save()
        keep_partitions(self.now, 48)
        columns = {
            "name": "n1",
            "ready": True,
            "info": {"bootID": "boot-1", "machineID": "machine-1"},
            "capacity": {GPU: 4},
            "allocatable": {GPU: 4},
            "is_gpu_node": True,
        }
        models.Node.objects.update_or_create(
            cluster=self.cluster, uid="uid-n1", defaults={**columns, "observed_at": self.now}
        )
        self.node = models.Node.objects.get()
        self.sequence = 0

    def report(self, *gpus: Gpu, **changes: Any) -> str:
        """Take one report, a second later than the last. Returns the agent's status."""
        self.sequence += 1
        self.now += timedelta(seconds=1)
        report = Report(
            agent_version="1",
            agent_instance="i1",
            sequence=self.sequence,
            node_name="n1",
            pod_uid="pod-1",
            sent_at=self.now.timestamp(),
            boot_id="boot-1",
            machine_id="machine-1",
            gpus=gpus,
            pods=(),
        )
        report = msgspec.structs.replace(report, **changes)
        for holder in report.pods or ():
            self.run_pod(holder.pod)
        return take(self.node.pk, Answer(self.endpoint, Outcome.OK, report), self.now)

    def pass_minutes(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)

    def run_pod(self, name: str) -> Pod:
        """A pod of namespace team that asks for a card and is bound to the node."""
        columns = {"phase": "Running", "node_name": "n1", "requests": {GPU: 1}}
        return Pod.objects.update_or_create(
            cluster=self.cluster,
            uid=name,
            defaults={**columns, "namespace": "team", "name": name, "observed_at": self.now},
        )[0]

    endpoint = Endpoint("pod-1", "n1", "127.0.0.1", 9477)

    @property
    def record(self) -> NodeRecord:
        found = node_record(self.cluster, "n1", self.now)
        assert found is not None
        return found

    @property
    def agent(self) -> models.AgentState:
        return models.AgentState.objects.get()

    def gpu(self, uuid: str) -> models.Gpu:
        return models.Gpu.objects.get(uuid=uuid)


def card(index: int, **changes: Any) -> Gpu:
    gpu = Gpu(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA H100 80GB HBM3",
        memory_kind="dedicated",
        memory_total_bytes=80 * GIB,
        memory_used_bytes=8 * GIB,
        utilization_percent=50,
        temperature_celsius=60,
        power_watts=400.0,
        power_limit_watts=700.0,
    )
    return msgspec.structs.replace(gpu, **changes)


def holds(pod: str, *devices: Device, resource: str = GPU) -> PodDevices:
    return PodDevices(namespace="team", pod=pod, container="c", resource=resource, devices=devices)


def readings() -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT gpu_id, utilization_percent, at FROM ledger_reading ORDER BY at")
        return list(cursor.fetchall())


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def test_a_good_report_is_stored_whole_and_dated_by_the_server(fleet: Fleet) -> None:
    sent = fleet.now.timestamp() - 47 * 60
    device = Device(id="GPU-1::3", gpu_uuid="GPU-1", slot=3)
    assert fleet.report(card(0), card(1), pods=(holds("p", device),), sent_at=sent) == "ok"
    gpu = fleet.gpu("GPU-1")
    assert (gpu.utilization_percent, gpu.memory_used_bytes) == (50, 8 * GIB)
    assert gpu.read_at == fleet.agent.reported_at == fleet.now
    assert fleet.agent.clock_skew_seconds == pytest.approx(-47 * 60 - 1, abs=1)
    assert {row[2] for row in readings()} == {fleet.now}
    assert fleet.record.account.allocated == 1


def test_c25_a_lost_card_keeps_its_uuid_and_its_series_ends_in_a_gap(fleet: Fleet) -> None:
    fleet.report(*(card(i) for i in range(4)))
    lost = Gpu(index=2, uuid="GPU-2", state="lost", error="GPU is lost")
    fleet.report(card(0), card(1), lost, card(3))
    since = fleet.gpu("GPU-2").state_since
    fleet.report(card(0), card(1), lost, card(3))
    gpu = fleet.gpu("GPU-2")
    assert (gpu.state, gpu.state_since) == ("lost", since)
    assert sum(row[0] == gpu.pk for row in readings()) == 1
    counted = fleet.record.account
    assert (counted.owned, counted.working) == (4, 3)


def test_c25_a_card_that_is_no_longer_counted_is_missing_and_still_owned(fleet: Fleet) -> None:
    fleet.report(*(card(i) for i in range(4)))
    fleet.report(card(0), card(1), card(3))
    assert fleet.gpu("GPU-2").state == "missing"
    assert (fleet.record.account.owned, fleet.record.account.working) == (4, 3)
    fleet.report(*(card(i) for i in range(4)))
    assert fleet.gpu("GPU-2").state == "ok"


def test_c25_a_card_lost_before_it_told_its_uuid_is_owned_and_named_once_it_tells(
    fleet: Fleet,
) -> None:
    lost = Gpu(index=1, state="lost", error="GPU is lost")
    fleet.report(card(0), lost)
    fleet.report(card(0), lost)
    assert (fleet.record.account.owned, fleet.record.account.working) == (2, 1)
    fleet.report(card(0), card(1))
    assert (fleet.record.account.owned, fleet.record.account.working) == (2, 2)
    assert set(models.Gpu.objects.values_list("uuid", flat=True)) == {"GPU-0", "GPU-1"}


def test_c25_after_an_agents_restart_a_lost_card_is_still_known_by_its_index(fleet: Fleet) -> None:
    fleet.report(card(0), card(1))
    fleet.report(card(0), Gpu(index=1, state="lost", error="GPU is lost"), agent_instance="i2")
    assert fleet.gpu("GPU-1").state == "lost"
    assert models.Gpu.objects.count() == 2


def test_c25_a_driver_that_does_not_answer_leaves_the_last_readings(fleet: Fleet) -> None:
    fleet.report(card(0))
    assert fleet.report(state="error", reason="NVML: Unknown Error") == "nvml_error"
    assert fleet.gpu("GPU-0").utilization_percent == 50
    assert fleet.record.facts.cards is not None
    assert not fleet.record.facts.cards[0].current
    assert fleet.agent.reason == "NVML: Unknown Error"


def test_c27_unified_memory_has_no_total_and_no_zero(fleet: Fleet) -> None:
    gb10 = card(
        0,
        memory_kind="unified",
        memory_total_bytes=None,
        memory_used_bytes=61 * 2**20,
        processes=(Process(pid=10, memory_used_bytes=43 * 2**20),),
    )
    fleet.report(gb10)
    gpu = fleet.gpu("GPU-0")
    assert (gpu.memory_kind, gpu.memory_total_bytes) == ("unified", None)


def test_c28_a_card_in_mig_mode_is_neither_busy_nor_idle(fleet: Fleet) -> None:
    instance = MigInstance(uuid="MIG-b1", profile="3g.40gb", placement_start=0, placement_size=4)
    cut = card(
        0,
        utilization_percent=None,
        mig_mode_current=True,
        mig_instances=(instance,),
        field_errors={"utilization_percent": "not_supported"},
    )
    device = Device(id="MIG-b1", mig_uuid="MIG-b1")
    held = holds("p", device, resource="nvidia.com/mig-3g.40gb")
    fleet.report(cut, pods=(held,))
    found = fleet.record.account.cards[0]
    assert (found.use, found.reason) == (Use.UNMEASURED, "not measured in MIG mode")
    assert fleet.gpu("GPU-0").idle_since is None
    assert fleet.gpu("GPU-0").instances.get().profile == "3g.40gb"
    fleet.report(card(0))
    assert not fleet.gpu("GPU-0").instances.exists()


def test_a_held_card_that_is_not_used_is_idle_since_it_was_first_seen_so(fleet: Fleet) -> None:
    held = (holds("p", Device(id="GPU-0", gpu_uuid="GPU-0")),)
    fleet.report(card(0, utilization_percent=0), pods=held)
    since = fleet.now
    fleet.report(card(0, utilization_percent=0), pods=held)
    assert fleet.gpu("GPU-0").idle_since == since
    fleet.report(card(0, utilization_percent=80), pods=held)
    assert fleet.gpu("GPU-0").idle_since is None


def test_a_pod_that_is_gone_or_finished_holds_nothing_whatever_the_last_report_said(
    fleet: Fleet,
) -> None:
    fleet.report(card(0), pods=(holds("p", Device(id="GPU-0", gpu_uuid="GPU-0")),))
    assert fleet.record.account.allocated == 1
    pod = Pod.objects.get()
    pod.phase = "Succeeded"
    pod.save()
    assert fleet.record.account.allocated == 0
    pod.phase, pod.gone_at = "Running", fleet.now
    pod.save()
    assert fleet.record.account.allocated == 0


def test_an_old_report_that_no_list_of_pods_confirms_names_no_holder(fleet: Fleet) -> None:
    fleet.report(card(0), pods=(holds("p", Device(id="GPU-0", gpu_uuid="GPU-0")),))
    fleet.cluster.pods_forbidden = True
    fleet.cluster.save()
    before = fleet.record.account
    assert before.allocated == 1  # the agent says so now
    answer = Answer(fleet.endpoint, Outcome.UNREACHABLE, reason="It did not answer.")
    take(fleet.node.pk, answer, fleet.now)
    after = fleet.record
    assert (after.account.allocated, after.devices) == (None, ())


def test_devices_of_other_plugins_are_not_stored(fleet: Fleet) -> None:
    device = Device(id="0000:81:00.1", recognised=False)
    fleet.report(card(0), pods=(holds("p", device, resource="example.com/sriov-nic"),))
    assert not fleet.record.devices


def test_when_the_kubelet_does_not_tell_holders_are_unknown_not_none(fleet: Fleet) -> None:
    fleet.report(card(0), pods=None, pods_error="The kubelet's socket does not answer.")
    row = fleet.record.account.cards[0]
    assert (row.use, row.held) == (Use.FREE, False)  # no pod on the node asks for a card
    fleet.run_pod("p")
    row = fleet.record.account.cards[0]
    assert (row.use, row.held) == (Use.UNKNOWN, None)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"node_name": "n2"}, "wrong_node"),
        ({"pod_uid": "another"}, "wrong_node"),
        ({"boot_id": "boot-2"}, "wrong_node"),
        ({"boot_id": None}, "wrong_node"),
        ({"machine_id": "machine-2"}, "wrong_node"),
        ({"gpus": tuple(card(i) for i in range(100))}, "bad_answer"),
        ({"gpus": (card(0), card(1, uuid="GPU-0"))}, "bad_answer"),
        ({"gpus": (card(0), card(0, uuid="GPU-9"))}, "bad_answer"),
    ],
)
def test_a_report_that_cannot_be_this_nodes_is_refused_whole(
    fleet: Fleet, changes: dict[str, Any], status: str
) -> None:
    fleet.report(card(0))
    before = fleet.gpu("GPU-0").read_at
    assert fleet.report(**{"gpus": (card(0, utilization_percent=99),), **changes}) == status
    assert fleet.agent.reason
    assert fleet.gpu("GPU-0").read_at == before
    assert models.Gpu.objects.count() == 1
    assert len(readings()) == 1


def test_an_unreadable_machine_id_is_no_reason_to_refuse(fleet: Fleet) -> None:
    assert fleet.report(card(0), machine_id=None) == "ok"


def test_an_impossible_reading_is_unknown_and_the_rest_stands(fleet: Fleet) -> None:
    fleet.report(card(0, utilization_percent=4000, memory_used_bytes=-1))
    gpu = fleet.gpu("GPU-0")
    assert (gpu.utilization_percent, gpu.memory_used_bytes) == (None, None)
    assert gpu.temperature_celsius == 60


def test_c38_an_agent_that_does_not_answer_changes_no_number(fleet: Fleet) -> None:
    fleet.report(card(0))
    answer = Answer(fleet.endpoint, Outcome.UNREACHABLE, reason="It did not answer.")
    assert take(fleet.node.pk, answer, fleet.now) == "unreachable"
    assert fleet.gpu("GPU-0").utilization_percent == 50
    assert fleet.agent.reported_at is not None


def test_xids_are_stored_once_and_a_new_agent_leaves_a_gap_row(fleet: Fleet) -> None:
    def xid(number: int) -> Xid:
        return Xid(sequence=number, code=79, gpu_uuid="GPU-0", age_seconds=1.0)

    fleet.report(card(0), xids=(xid(1), xid(2)), xid_sequence=2)
    fleet.report(card(0), xids=(xid(1), xid(2), xid(3)), xid_sequence=3)
    assert XidEvent.objects.filter(code=79).count() == 3
    fleet.report(card(0), xids=(xid(1),), xid_sequence=1, agent_instance="i2")
    assert XidEvent.objects.filter(code=79).count() == 4
    assert XidEvent.objects.filter(code=None).count() == 1


def test_a_node_that_is_gone_takes_no_report(fleet: Fleet) -> None:
    fleet.node.gone_at = fleet.now
    fleet.node.save()
    assert fleet.report(card(0)) == "gone"
    assert not models.Gpu.objects.exists()


def test_partitions_past_their_time_are_dropped_and_the_coming_days_made(fleet: Fleet) -> None:
    fleet.report(card(0))
    later = fleet.now + timedelta(days=4)
    dropped = keep_partitions(later, 48)
    assert f"ledger_reading_{fleet.now:%Y%m%d}" in dropped
    assert readings() == []
    assert keep_partitions(later, 48) == []
