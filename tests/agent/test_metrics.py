"""/metrics: the last reading, its age, no token, and nothing opened for it."""

from __future__ import annotations

import http.client

from agent.contract.report import Gpu, Report
from agent.metrics import exposition
from tests.agent.conftest import OpenDoor
from tests.agent.door import Door
from tests.agent.world import card

HOSTILE = 'H100"} 1\ngpuadmin_gpu_power_watts{gpu="0\\'


def scraped(door: Door) -> list[str]:
    """The samples, asked for without a token."""
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=10)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return [line for line in body.splitlines() if not line.startswith("#")]


def test_metrics_open_nothing_and_say_nothing_of_cards_before_a_report(open_door: OpenDoor) -> None:
    door = open_door(card(0))
    assert [line.partition("{")[0] for line in scraped(door)] == ["gpuadmin_agent_info"]
    assert door.fake.init_count == 0


def test_metrics_are_the_last_reading_with_its_age_also_while_nvml_is_let_go(
    open_door: OpenDoor,
) -> None:
    door = open_door(card(0), card(1))
    report = door.report()
    door.release(60)
    assert door.report().state == "paused"
    samples = dict(line.rsplit(" ", 1) for line in scraped(door))
    gpu = report.gpus[1]
    labels = f'{{gpu="1",uuid="{gpu.uuid}",model="{gpu.name}"}}'
    assert float(samples[f"gpuadmin_gpu_power_watts{labels}"]) == gpu.power_watts
    assert samples[f"gpuadmin_gpu_memory_total_bytes{labels}"] == str(gpu.memory_total_bytes)
    assert samples[f"gpuadmin_gpu_readable{labels}"] == "1"
    assert 0 <= float(samples["gpuadmin_reading_age_seconds"]) < 60
    assert not door.nvml_is_open


def test_what_was_not_measured_has_no_sample_and_a_name_cannot_forge_one() -> None:
    gpu = Gpu(index=0, uuid="GPU-0", name=HOSTILE, state="lost", temperature_celsius=0)
    report = Report(
        agent_version="1", agent_instance="i", sequence=1, node_name="n", pod_uid="u",
        sent_at=0.0, gpus=(gpu,),
    )  # fmt: skip
    lines = [line for line in exposition(report, 1.5).splitlines() if "gpuadmin_gpu" in line]
    samples = [line for line in lines if not line.startswith("#")]
    labels = r'{gpu="0",uuid="GPU-0",model="H100\"} 1\ngpuadmin_gpu_power_watts{gpu=\"0\\"}'
    assert samples == [
        f"gpuadmin_gpu_readable{labels} 0",
        f"gpuadmin_gpu_temperature_celsius{labels} 0",
    ]
