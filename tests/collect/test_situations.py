"""Agents and cards that go wrong, scripted by ctl: the rest is read on, each has its sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuadmin.collect.tasks import poll
from gpuadmin.fleet.models import AgentState, Finding, Gpu, Node
from simulator.cluster import SimulatedCluster
from tests.conftest import AGENT_SECRET
from tests.support.processes import ROOT, eventually, manage

pytestmark = pytest.mark.django_db(transaction=True)
NODES = ["a100-01", "h100-01", "h200-01", "l40s-01", "l40s-02"]
SITUATIONS = """
- {kind: silent-agent, node: a100-01}
- {kind: lying-agent, node: h100-01, how: as-node, as_node: h200-01}
- {kind: lying-agent, node: h200-01, how: garbage}
- {kind: lying-agent, node: l40s-01, how: huge}
- {kind: lost-card, node: l40s-02, gpu: 2}
"""
Ctl = Callable[..., None]


@pytest.fixture
def ctl(
    monkeypatch: pytest.MonkeyPatch, process_environ: dict[str, str], tmp_path: Path
) -> Iterator[Ctl]:
    """The watcher on five simulated nodes whose agents were read once; gives ctl."""
    monkeypatch.setenv("GPUADMIN_AGENT_SECRET", AGENT_SECRET)
    with SimulatedCluster(tmp_path / "sim", NODES, tenants=False) as cluster:
        cluster.wait_ready()
        environ = {**process_environ, "GPUADMIN_KUBECONFIG": str(cluster.kubeconfig)}

        def run(*arguments: str) -> None:
            command = [
                sys.executable,
                "-m",
                "simulator.ctl",
                "--kubeconfig",
                str(cluster.kubeconfig),
            ]
            subprocess.run([*command, *arguments], cwd=ROOT, check=True, timeout=20)

        with manage("watch", environ=environ, log=tmp_path / "watch.log"):
            eventually(lambda: AgentState.objects.filter(address__isnull=False).count() == 5)
            poll(at_once=True)
            assert set(statuses().values()) == {"ok"}
            yield run


def statuses() -> dict[str, str]:
    return dict(AgentState.objects.values_list("node__name", "status"))


def read_until(expected: dict[str, str]) -> None:
    def read() -> bool:
        poll(at_once=True)
        return statuses() == expected

    eventually(read, seconds=30, what=f"agents to be {expected}")


def test_bad_agents_spoil_nothing_but_themselves_and_come_back(ctl: Ctl, tmp_path: Path) -> None:
    last_read = dict(Gpu.objects.values_list("uuid", "read_at"))
    script = tmp_path / "situations.yaml"
    script.write_text(SITUATIONS)
    ctl("apply", str(script))
    read_until(
        {
            "a100-01": "unreachable",
            "h100-01": "wrong_node",
            "h200-01": "bad_answer",
            "l40s-01": "bad_answer",
            "l40s-02": "ok",
        }
    )
    for name in ("a100-01", "h100-01", "h200-01", "l40s-01"):
        assert AgentState.objects.get(node__name=name).reason
        finding = Finding.objects.get(code="agent", node_name=name, resolved_at=None)
        assert name in finding.sentence
        for gpu in Node.objects.get(name=name).gpus.all():
            assert gpu.utilization_percent is not None  # the last true reading stays …
            before = last_read[gpu.uuid]
            assert gpu.read_at is not None
            assert before is not None
            assert gpu.read_at >= before  # … with its age
    cards = Node.objects.get(name="l40s-02").gpus.order_by("index")
    assert [gpu.state for gpu in cards] == ["ok", "ok", "lost", "ok"]
    assert Finding.objects.filter(code="card_lost", resolved_at=None).count() == 1

    ctl("clear")
    read_until(dict.fromkeys(NODES, "ok"))
    assert not Finding.objects.filter(code__in=["agent", "card_lost"], resolved_at=None).exists()
