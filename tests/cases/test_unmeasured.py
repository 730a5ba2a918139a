"""C27 to C29: what can't be measured is null with its reason, never 0, from NVML to the page."""

from __future__ import annotations

import pytest

from simulator.hardware import SimProcess
from tests.agent.kubelet import pod as holding
from tests.agent.world import MIB, card, cut_card, integrated, mig_uuid, slice_3g
from tests.cases.line import StartLine, pod_here
from tests.support.console import Console
from tests.support.scripted_api import Json

pytestmark = pytest.mark.django_db(transaction=True)
FORBIDDEN, LOST = 4, 15
IN_MIG_MODE = "not measured in MIG mode"


def test_c27_shared_memory_has_no_total_and_is_named_so(line: StartLine, console: Console) -> None:
    processes = [
        SimProcess(pid=10, memory_used_bytes=43 * MIB),
        SimProcess(pid=11, memory_used_bytes=18 * MIB),
    ]
    n = line(integrated(temperature_celsius=38, processes=processes))

    gpu = n.gpus[0]
    assert (gpu["memory_kind"], gpu["memory_total_bytes"]) == ("unified", None)
    assert gpu["reading"]["memory_used_bytes"] == 61 * MIB
    assert gpu["reading"]["temperature_celsius"] == 38
    assert gpu["why_null"]["memory_total_bytes"] == "the memory is shared with the system"
    page = console.page("/nodes/h100-01").html
    assert 'title="memory shared with the system; its processes use 61 MiB">unified<' in page
    assert "0 GB" not in page
    assert "unified memory" in console.page("/").text


def test_c27_a_total_of_zero_is_unknown_and_never_divided_by(
    line: StartLine, console: Console
) -> None:
    zero = {"memory_total_bytes": 0, "memory_reserved_bytes": 0}
    n = line(integrated(unified_memory=False, **zero))

    assert n.gpus[0]["memory_total_bytes"] is None
    page = console.page("/nodes/h100-01").html
    assert ">unified<" in page
    assert "0 GB" not in page


def test_c27_other_errors_than_not_supported_keep_their_own_meaning(line: StartLine) -> None:
    forbidden = integrated(errors={"nvmlDeviceGetMemoryInfo": FORBIDDEN})
    n = line(forbidden, card(1))
    assert n.gpus[0]["memory_kind"] == "unknown"
    assert "CAP_SYS_ADMIN" in n.gpus[0]["why_null"]["memory_total_bytes"]
    n.door.change(0, errors={"nvmlDeviceGetMemoryInfo": LOST})
    n.poll()
    assert n.gpus[0]["state"] == "lost"
    assert n.gpus[1]["state"] == "ok"


def test_c28_a_cut_card_is_not_measured_and_neither_busy_nor_idle(
    line: StartLine, console: Console
) -> None:
    held = holding("a", main=[("nvidia.com/mig-3g.40gb", [mig_uuid(0xB1)])])
    n = line(_cut(), pods=[pod_here("a")], held=[held])

    gpu = n.gpus[0]
    assert gpu["reading"]["utilization_percent"] is None
    assert gpu["why_null"]["utilization_percent"] == IN_MIG_MODE
    assert gpu["reading"]["memory_used_bytes"] == 38 * MIB
    assert [_memory(i) for i in gpu["instances"]] == [(36000, 40192), (20000, 40192)]
    assert (gpu["use"], gpu["why"], gpu["idle_since"]) == ("unmeasured", IN_MIG_MODE, None)
    page = console.page("/nodes/h100-01")
    assert f'title="utilisation: {IN_MIG_MODE}">– %<' in page.html
    assert "90 % mem" in page.text
    overview = console.page("/").text
    assert "Busy – use is not measured" in overview
    assert "Held but idle – use is not measured" in overview
    assert "1 held, not measurable" in overview
    assert "– (not measured here)" in console.page("/nodes").text  # its node's busy cards


def test_c28_forbidden_parent_fields_are_told_apart_and_the_slices_still_reported(
    line: StartLine, console: Console
) -> None:
    n = line(_cut(errors={"nvmlDeviceGetMemoryInfo": FORBIDDEN}))

    gpu = n.gpus[0]
    assert gpu["state"] == "ok"
    assert gpu["reading"]["memory_used_bytes"] is None
    hint = gpu["why_null"]["memory_used_bytes"]
    assert "NVIDIA_MIG_MONITOR_DEVICES=all" in hint
    assert f'title="memory in use: {hint}">–' in console.page("/nodes/h100-01").html
    assert [_memory(i) for i in gpu["instances"]] == [(36000, 40192), (20000, 40192)]


def _cut(**changes: object) -> object:
    left = slice_3g(1, 1, start=0, memory_used_bytes=36000 * MIB)
    right = slice_3g(2, 2, start=4, memory_used_bytes=20000 * MIB)
    return cut_card(0, left, right, memory_used_bytes=38 * MIB, **changes)


def _memory(instance: Json) -> tuple[int, int]:
    return instance["memory_used_bytes"] // MIB, instance["memory_total_bytes"] // MIB


def test_c29_lying_processes_leave_the_cards_own_memory(line: StartLine, console: Console) -> None:
    """Each process says more than the card says; what is shown is what the card says."""
    lying = [
        SimProcess(pid=1184, memory_used_bytes=900 * MIB),
        SimProcess(pid=0, memory_used_bytes=4294967295),
        SimProcess(pid=4294967295, memory_used_bytes=None),
        SimProcess(pid=20884, memory_used_bytes=512 * MIB),
    ]
    n = line(card(0, processes=lying, memory_used_bytes=700 * MIB))
    n.poll()

    assert n.gpus[0]["reading"]["memory_used_bytes"] == 700 * MIB
    assert "4294967295" not in console.page("/nodes/h100-01").html
