"""An independent reader, gpustat, agrees with /v1/report on a frozen world."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent.contract.report import Gpu
from simulator.hardware import Card
from tests.agent.conftest import OpenDoor
from tests.agent.world import GIB, MIB, card, cut_card, slice_3g

ROOT = Path(__file__).parents[2]


def healthy(index: int) -> Card:
    """A card whose every number differs from the others' and is no whole unit."""
    return card(
        index,
        name=f"NVIDIA H100 80GB HBM3 number {index}",
        utilization_percent=7 + 13 * index,
        wobble_percent=9,
        memory_used_bytes=(3 + index) * GIB + 777_777,
        memory_reserved_bytes=600 * MIB + index,
        temperature_celsius=31 + index,
        power_watts=90 + 50 * index,
        power_limit_watts=700 - index,
    )


def test_gpustat_agrees_with_the_report(open_door: OpenDoor) -> None:
    cut = cut_card(6, slice_3g(1, 1, start=0), memory_used_bytes=500 * MIB, power_watts=88)
    door = open_door(*(healthy(index) for index in range(6)), cut)
    door.write(frozen=True)

    seen = gpustat(door.folder / "hardware.json")

    report = door.report()
    assert len(report.gpus) == 7
    assert [as_gpustat_rounds(gpu) for gpu in report.gpus] == seen
    assert seen[6]["utilization.gpu"] is None


def as_gpustat_rounds(gpu: Gpu) -> dict[str, Any]:
    """A card of the report in gpustat's words: whole MiB and whole watts, rounded down."""
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "temperature.gpu": gpu.temperature_celsius,
        "utilization.gpu": gpu.utilization_percent,
        "memory.used": whole(gpu.memory_used_bytes, MIB),
        "memory.total": whole(gpu.memory_total_bytes, MIB),
        "power.draw": whole(gpu.power_watts, 1),
        "enforced.power.limit": whole(gpu.power_limit_watts, 1),
    }


def whole(value: float | None, unit: int) -> int:
    assert value is not None
    return int(value // unit)


def gpustat(hardware_file: Path) -> list[dict[str, Any]]:
    """gpustat's cards, with the fields that both sides know."""
    finished = subprocess.run(
        [sys.executable, "-m", "tests.agent.gpustat_json", str(hardware_file)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    fields = as_gpustat_rounds(
        Gpu(
            index=0,
            memory_used_bytes=0,
            memory_total_bytes=0,
            power_watts=0,
            power_limit_watts=0,
        )
    )
    cards = json.loads(finished.stdout)["gpus"]
    return [{field: each[field] for field in fields} for each in cards]
