"""Reports that only bring new readings are stored together, and as well as one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.contract.report import Device, Gpu, MigInstance, PodDevices, Process, Report, Xid
from gpuadmin.agents.client import Answer, Endpoint, Outcome
from gpuadmin.collect import poll, reports
from gpuadmin.fleet import models
from gpuadmin.fleet.services import ensure_cluster
from gpuadmin.ledger.models import XidEvent
from gpuadmin.ledger.services import keep_partitions
from tests.collect.test_reports import GPU, card, readings

pytestmark = pytest.mark.django_db


class Fleet:
    """Nodes whose agents answer what they are told; each cycle is 15 s after the last."""

    def __init__(self, names: tuple[str, ...] = ("n1", "n2")) -> None:
        self.cluster = ensure_cluster("test")
        self.now = timezone.now()
        keep_partitions(self.now, 48)
        for name in names:
            columns = {"name": name, "ready": True, "info": {"bootID": "boot"}, "labels": {}}
            models.Node.objects.update_or_create(
                cluster=self.cluster,
                uid=f"uid-{name}",
                defaults={**columns, "observed_at": self.now},
            )
            node = models.Node.objects.get(name=name)
            models.AgentState.objects.create(
                node=node, status="unreachable", since=self.now, pod_uid=f"pod-{name}",
                address="127.1.0.1", port=9477,
            )  # fmt: skip
        self.sequence = 0

    def report(self, name: str, *gpus: Gpu, **changes: Any) -> Report:
        self.sequence += 1
        report = Report(
            agent_version="1",
            agent_instance="i1",
            sequence=self.sequence,
            node_name=name,
            pod_uid=f"pod-{name}",
            sent_at=self.now.timestamp(),
            boot_id="boot",
            gpus=gpus,
            pods=(),
            xids_from=3600.0,
        )
        return msgspec.structs.replace(report, **changes)

    def cycle(self, monkeypatch: pytest.MonkeyPatch, *reports: Report) -> dict[str, int]:
        """One cycle that gets these reports together; how many ended with each status."""
        self.now += timedelta(seconds=15)
        answers = [
            Answer(Endpoint(r.pod_uid, r.node_name, "127.1.0.1", 9477), Outcome.OK, r)
            for r in reports
        ]
        monkeypatch.setattr(poll, "ask", lambda *_, **__: iter([answers]))
        monkeypatch.setattr("gpuadmin.collect.poll.timezone.now", lambda: self.now)
        ids = models.AgentState.objects.values_list("node_id", flat=True)
        return dict(poll.poll_shard(list(ids)))


@contextmanager
def whole_stores(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The nodes whose report goes the whole way."""
    taken: list[str] = []
    take = reports.take

    def told(node_id: int, answer: Answer, now: Any) -> str:
        taken.append(answer.endpoint.node_name)
        return take(node_id, answer, now)

    with ExitStack() as stack, monkeypatch.context() as patch:
        stack.callback(patch.undo)
        patch.setattr(poll, "take", told)
        yield taken


def own(name: str, index: int, **changes: Any) -> Gpu:
    return card(index, uuid=f"GPU-{name}-{index}", **changes)


def test_new_readings_are_stored_together_dated_by_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet = Fleet()
    fleet.cycle(monkeypatch, *(fleet.report(n, own(n, 0), own(n, 1)) for n in ("n1", "n2")))
    with whole_stores(monkeypatch) as taken:
        warmer = [
            fleet.report(n, own(n, 0, temperature_celsius=71), own(n, 1, power_watts=None))
            for n in ("n1", "n2")
        ]
        assert fleet.cycle(monkeypatch, *warmer) == {"ok": 2}
    assert taken == []
    for name in ("n1", "n2"):
        first, second = models.Gpu.objects.filter(node__name=name).order_by("index")
        assert (first.temperature_celsius, second.power_watts) == (71, None)
        agent = models.AgentState.objects.get(node__name=name)
        assert first.read_at == agent.reported_at == agent.asked_at == fleet.now
    assert len(readings()) == 8


def test_a_calm_fleet_costs_the_same_number_of_queries_whatever_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = tuple(f"n{i}" for i in range(20))
    fleet = Fleet(names)
    fleet.cycle(monkeypatch, *(fleet.report(n, own(n, 0)) for n in names))
    with CaptureQueriesContext(
        connection,
    ) as few:
        fleet.cycle(monkeypatch, fleet.report("n0", own("n0", 0)))
    with CaptureQueriesContext(connection) as many:
        fleet.cycle(monkeypatch, *(fleet.report(n, own(n, 0)) for n in names))
    assert len(many) == len(few)


HELD = PodDevices(
    namespace="team", pod="p", container="c", resource=GPU,
    devices=(Device(id="GPU-n1-0", gpu_uuid="GPU-n1-0"),),
)  # fmt: skip

FELL_OFF = Xid(sequence=1, code=79, gpu_uuid="GPU-n1-0", age_seconds=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"gpus": (own("n1", 0), own("n1", 1))},
        {"gpus": (own("n1", 0, state="lost", error="it is lost"),)},
        {"gpus": (own("n1", 0, mig_mode_pending=True),)},
        {"gpus": (own("n1", 0, memory_total_bytes=2**34),)},
        {"pods": (HELD,)},
        {"pods": None, "pods_error": "the kubelet does not answer"},
        {"agent_instance": "i2"},
        {"driver_version": "999.1"},
        {"state": "paused", "gpus": ()},
        {"xids": (FELL_OFF,), "xid_sequence": 1},
        {"xids_from": 2.0},
        {"boot_id": "another"},
        {"node_name": "n2"},
        {"gpus": (own("n1", 0, unreadable_processes=-1),)},
    ],
)  # fmt: skip
def test_whatever_else_a_report_says_goes_the_whole_way(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    fleet = Fleet(("n1",))
    fleet.cycle(monkeypatch, fleet.report("n1", own("n1", 0)))
    changed = msgspec.structs.replace(fleet.report("n1", own("n1", 0)), **changes)
    endpoint = Endpoint("pod-n1", "n1", "127.1.0.1", 9477)
    fleet.now += timedelta(seconds=15)
    with whole_stores(monkeypatch) as taken:
        monkeypatch.setattr(
            poll, "ask", lambda *_, **__: iter([[Answer(endpoint, Outcome.OK, changed)]])
        )
        poll.poll_shard(list(models.AgentState.objects.values_list("node_id", flat=True)))
    assert taken == ["n1"]


def test_a_node_that_changed_meanwhile_is_not_stored_from_what_was_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet = Fleet()
    fleet.cycle(monkeypatch, *(fleet.report(n, own(n, 0)) for n in ("n1", "n2")))
    models.Node.objects.filter(name="n2").update(gone_at=fleet.now)
    outcome = fleet.cycle(monkeypatch, *(fleet.report(n, own(n, 0)) for n in ("n1", "n2")))
    assert outcome == {"ok": 1, "gone": 1}


def test_idleness_xids_and_processes_are_as_in_a_whole_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet = Fleet(("n1",))
    idle = own("n1", 0, utilization_percent=0)
    fleet.cycle(monkeypatch, fleet.report("n1", idle, pods=(HELD,)))
    since = models.Gpu.objects.get().idle_since
    assert since is not None
    ours = (Process(pid=7, kind="compute", memory_used_bytes=5),)
    at_work = own("n1", 0, utilization_percent=0, processes=ours)
    fleet.cycle(monkeypatch, fleet.report("n1", at_work, pods=(HELD,)))
    stored = models.Gpu.objects.get()
    assert stored.idle_since == since
    assert stored.processes is not None
    assert stored.processes[0]["pid"] == 7
    fleet.cycle(monkeypatch, fleet.report("n1", own("n1", 0), pods=(HELD,)))
    assert models.Gpu.objects.get().idle_since is None
    assert XidEvent.objects.count() == 0


def test_memory_of_mig_instances_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(used: int) -> Gpu:
        instances = tuple(
            MigInstance(uuid=f"MIG-{i}", profile="3g.40gb", memory_used_bytes=used + i)
            for i in range(2)
        )
        return own("n1", 0, mig_mode_current=True, mig_instances=instances)

    fleet = Fleet(("n1",))
    fleet.cycle(monkeypatch, fleet.report("n1", cut(10)))
    with whole_stores(monkeypatch) as taken:
        fleet.cycle(monkeypatch, fleet.report("n1", cut(20)))
    assert taken == []
    stored = models.MigInstance.objects.order_by("uuid").values_list("memory_used_bytes", flat=True)
    assert list(stored) == [20, 21]


WALK = st.lists(
    st.tuples(
        st.sampled_from([None, -5, 0, 3, 100, 101]),
        st.sampled_from([None, 0, 2**30, 2**50]),
        st.sampled_from([None, 45, 999]),
        st.sampled_from([None, 99.5, 9e9]),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(WALK)
def test_any_row_of_reports_leaves_the_same_rows_either_way(
    monkeypatch: pytest.MonkeyPatch, walk: list[tuple[Any, Any, Any, Any, bool]]
) -> None:
    names = ("utilization_percent", "memory_used_bytes", "temperature_celsius", "power_watts")
    left = []
    for calm in (True, False):
        models.Cluster.objects.all().delete()
        fleet = Fleet(("n1",))
        began = fleet.now
        for *values, held in walk:
            gpu = own("n1", 0, **dict(zip(names, values, strict=True)))
            if not calm:
                models.AgentState.objects.update(digest="")
            fleet.cycle(monkeypatch, fleet.report("n1", gpu, pods=(HELD,) if held else ()))
        row = models.Gpu.objects.values(*names, "idle_since", "read_at", "state").get()
        for moment in ("idle_since", "read_at"):
            row[moment] = row[moment] and row[moment] - began
        left.append(row)
    assert left[0] == left[1]
