"""Reports that no sane agent sends: refused whole with a sentence, and the cycle goes on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.contract.report import Device, Gpu, MigInstance, Process, Report, Xid
from gpuadmin.agents.client import Answer, Outcome
from gpuadmin.collect import poll
from gpuadmin.fleet import models
from gpuadmin.workloads.models import PodDevice
from tests.collect.test_reports import Fleet, card, fleet, holds

pytestmark = pytest.mark.django_db
__all__ = ["fleet"]


def xid(**changes: Any) -> Xid:
    return msgspec.structs.replace(
        Xid(sequence=1, code=79, gpu_uuid="GPU-0", age_seconds=1.0), **changes
    )


def cut(**changes: Any) -> Gpu:
    instance = msgspec.structs.replace(MigInstance(uuid="MIG-1", profile="1g.10gb"), **changes)
    return card(0, mig_mode_current=True, mig_instances=(instance,))


def with_device(**changes: Any) -> dict[str, Any]:
    device = msgspec.structs.replace(Device(id="GPU-0", gpu_uuid="GPU-0"), **changes)
    return {"pods": (holds("p", device),)}


IMPOSSIBLE: list[dict[str, Any]] = [
    {"xids": (xid(age_seconds=1e11),)},
    {"xids": (xid(age_seconds=-5.0),)},
    {"xids": (xid(code=-1),)},
    {"xids": (xid(code=2**40),)},
    {"xids": (xid(sequence=2**63),)},
    {"xid_sequence": -1},
    {"sent_at": 1e300},
    {"gpus": (card(0, uuid="GPU-\0"),)},
    {"gpus": (card(0, uuid="G" * 81),)},
    {"gpus": (card(-1),)},
    {"gpus": (card(2**40),)},
    {"gpus": (card(0, unreadable_processes=-1),)},
    {"gpus": (card(0, processes=(Process(pid=-1),)),)},
    {"gpus": (card(0, processes=(Process(pid=2**70),)),)},
    {"gpus": (cut(placement_start=99_999),)},
    {"gpus": (cut(gpu_instance_id=-1),)},
    {"gpus": (cut(uuid="M" * 81),)},
    with_device(slot=2**40),
    with_device(slot=-1),
    with_device(gpu_uuid="G" * 81),
]


@pytest.mark.parametrize("changes", IMPOSSIBLE)
def test_an_impossible_report_is_refused_whole(fleet: Fleet, changes: dict[str, Any]) -> None:
    fleet.report(card(0, utilization_percent=7))
    assert fleet.report(**{"gpus": (card(0),), **changes}) == "bad_answer"
    assert fleet.agent.reason.startswith("It reports")
    assert fleet.gpu("GPU-0").utilization_percent == 7
    assert not fleet.record.agent_current


def test_text_that_a_database_cannot_hold_is_stored_as_far_as_it_can_be(fleet: Fleet) -> None:
    odd = card(
        0,
        name="H100\0" + "x" * 200,
        serial="s" * 100,
        pci_bus_id="p" * 50,
        processes=(Process(pid=1, name="train\0\ud800"),),
    )
    device = Device(id="GPU-0\0" + "y" * 5000, gpu_uuid="GPU-0")
    status = fleet.report(odd, pods=(holds("p", device),), driver_version="570\0" * 40)
    assert status == "ok"
    gpu = fleet.gpu("GPU-0")
    assert (gpu.name[:5], len(gpu.name)) == ("H100\ufffd", 120)
    assert gpu.processes is not None
    assert gpu.processes[0]["name"] == "train\ufffd?"
    assert len(PodDevice.objects.get().device_id) == 1000
    fleet.report(odd, pods=(holds("p", device),))
    assert PodDevice.objects.count() == 1


def test_a_negative_memory_of_a_slice_is_unknown(fleet: Fleet) -> None:
    fleet.report(cut(memory_used_bytes=-5, memory_total_bytes=2**60))
    instance = models.MigInstance.objects.get()
    assert (instance.memory_used_bytes, instance.memory_total_bytes) == (None, None)


def test_one_answer_that_breaks_storing_is_noted_and_the_others_are_stored(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> str:
        raise OverflowError("nobody foresaw this")

    fleet.report(card(0))
    models.AgentState.objects.update(address="127.0.0.1", port=9)
    bad = Answer(fleet.endpoint, Outcome.OK, Report(
        agent_version="1", agent_instance="i", sequence=1, node_name="n1", pod_uid="pod-1",
        sent_at=0.0,
    ))  # fmt: skip
    models.AgentState.objects.update(pod_uid="pod-1")
    monkeypatch.setattr(poll, "ask", lambda *_, **__: iter([[bad, bad]]))
    monkeypatch.setattr(poll, "take", broken)
    assert poll.poll_shard([fleet.node.pk]) == {"bad_answer": 2}
    assert fleet.agent.status == "bad_answer"
    assert "OverflowError" in fleet.agent.reason


def test_a_card_that_another_node_reports_is_not_owned_twice(fleet: Fleet) -> None:
    fleet.report(card(0))
    other = models.Node.objects.create(
        cluster=fleet.cluster, uid="u2", name="n2", observed_at=fleet.now, ready=True
    )
    gpu = fleet.gpu("GPU-0")
    gpu.pk, gpu.node = None, other
    gpu._state.adding = True
    gpu.save()
    assert fleet.report(card(0)) == "bad_answer"
    assert "n2 reports" in fleet.agent.reason


def test_an_idle_card_stays_idle_over_one_missed_reading(fleet: Fleet) -> None:
    held = (holds("p", Device(id="GPU-0", gpu_uuid="GPU-0")),)
    fleet.report(card(0, utilization_percent=0), pods=held)
    since = fleet.gpu("GPU-0").idle_since
    fleet.report(card(0, utilization_percent=0), pods=None, pods_error="The kubelet is silent.")
    fleet.report(card(0, utilization_percent=None), pods=held)
    assert fleet.gpu("GPU-0").idle_since == since
    fleet.report(card(0, utilization_percent=0), pods=())
    assert fleet.gpu("GPU-0").idle_since is None


def test_a_window_in_which_nobody_listened_for_xids_is_a_row(fleet: Fleet) -> None:
    def gaps() -> int:
        return fleet.node.xids.filter(code=None).count()

    fleet.report(card(0), xids_from=100.0)
    fleet.report(card(0), xids_from=101.0)
    assert gaps() == 0
    fleet.pass_minutes(10)
    fleet.report(state="paused", reason="told to let go")
    fleet.pass_minutes(10)
    fleet.report(card(0), xids_from=3.0)  # it opened NVML anew
    assert gaps() == 1
    fleet.report(card(0), xids_from=4.0)
    assert gaps() == 1
