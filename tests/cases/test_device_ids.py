"""C30: the kubelet's device ids in many forms, by PodResources, agent, poll, API and page."""

from __future__ import annotations

import pytest

from tests.agent.kubelet import pod as holding
from tests.agent.world import card, cut_card, gpu_uuid, mig_uuid, slice_3g
from tests.cases.line import StartLine, pod_here
from tests.support.console import Console

pytestmark = pytest.mark.django_db(transaction=True)
A0, A1, B1 = gpu_uuid(0xA0), gpu_uuid(0xA1), mig_uuid(0xB1)
LONG_MIG = f"MIG-{A0}/1/0"
NODE = "h100-01"
# id → card, MIG device, slot, whether it is recognised
FORMS: dict[str, tuple[str, str, int | None, bool]] = {
    A1: (A1, "", None, True),
    f"{A1}::3": (A1, "", 3, True),
    B1: ("", B1, None, True),
    f"{B1}::0": ("", B1, 0, True),
    LONG_MIG: (A0, "", None, True),
    "nvidia1": (A1, "", None, True),
    "nvidia1/vgpu2": (A1, "", 2, True),
    "nvidia0/gi3": (A0, "", None, True),
    "nvidia0/gi3/vgpu1": (A0, "", 1, True),
    f"k8s.device-plugin.nvidia.com/gpu={A1}": (A1, "", None, True),
    "something-new-42": ("", "", None, False),
    "": ("", "", None, False),
}


def test_c30_every_form_is_kept_and_resolved_on_its_pod(line: StartLine, console: Console) -> None:
    cut = cut_card(0, slice_3g(1, 1, start=0))
    line(
        cut,
        card(1),
        pods=[pod_here("all")],
        held=[holding("all", main=[("nvidia.com/gpu", list(FORMS))])],
    )

    devices = {d["device_id"]: d for d in console.one("pods", "all")["devices"]}
    assert {
        text: (d["gpu_uuid"], d["mig_uuid"], d["slot"], d["recognised"])
        for text, d in devices.items()
    } == FORMS


def test_c30_an_unrecognised_device_is_shown_on_its_pod_and_counted_once(
    line: StartLine, console: Console
) -> None:
    odd = "something-new-42" + "x" * 100
    n = line(
        card(0),
        card(1),
        pods=[pod_here("odd"), pod_here("good")],
        held=[
            holding("odd", main=[("nvidia.com/gpu", [odd])], side=[("nvidia.com/gpu", [odd])]),
            holding("good", main=[("nvidia.com/gpu", [A1])]),
        ],
    )
    n.poll()

    assert f"unrecognised device “{odd}”" in n.page()
    [found] = n.finding("unrecognised_device")
    assert (found["count"], found["object_name"]) == (1, NODE)
    assert "gives out a device id of a form" in found["sentence"]
    assert f"llm/odd holds “{odd}”" in found["advice"]
    assert found["sentence"] in console.page("/findings").text
    assert n.gpus[1]["holders"][0]["pod"] == "good"  # it spoils nothing else


def test_c30_two_pods_on_two_slots_of_one_card_both_appear_on_it(
    line: StartLine, console: Console
) -> None:
    n = line(
        card(0),
        card(1),
        pods=[pod_here("a"), pod_here("b")],
        held=[
            holding("a", main=[("nvidia.com/gpu", [f"{A1}::0"])]),
            holding("b", main=[("nvidia.com/gpu", [f"{A1}::1"])]),
        ],
    )

    assert [(h["pod"], h["slot"]) for h in n.gpus[1]["holders"]] == [("a", 0), ("b", 1)]
    assert not n.gpus[0]["holders"]
    assert n.node["cards"]["allocated"] == 1
    words = n.page()
    assert "slot 1 a" in words
    assert "slot 2 b" in words
