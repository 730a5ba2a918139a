"""C30: device ids in many forms."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.devices import parse_device_id
from agent.contract.report import Device
from tests.agent.world import gpu_uuid, mig_uuid

A1, B1 = gpu_uuid(0xA1), mig_uuid(0xB1)
LONG_MIG = f"MIG-{A1}/7/0"
UUID_OF_INDEX = {0: A1}

FORMS: dict[str, dict[str, object]] = {
    A1: {"gpu_uuid": A1},
    f"{A1}::3": {"gpu_uuid": A1, "slot": 3},
    B1: {"mig_uuid": B1},
    f"{B1}::0": {"mig_uuid": B1, "slot": 0},
    LONG_MIG: {"gpu_uuid": A1, "gpu_instance_id": 7, "compute_instance_id": 0},
    f"{LONG_MIG}::2": {
        "gpu_uuid": A1,
        "gpu_instance_id": 7,
        "compute_instance_id": 0,
        "slot": 2,
    },
    "nvidia0": {"gpu_uuid": A1},
    "nvidia0/vgpu2": {"gpu_uuid": A1, "slot": 2},
    "nvidia0/gi3": {"gpu_uuid": A1, "gpu_instance_id": 3},
    "nvidia0/gi3/vgpu1": {"gpu_uuid": A1, "gpu_instance_id": 3, "slot": 1},
    f"k8s.device-plugin.nvidia.com/gpu={A1}": {"gpu_uuid": A1},
    f"k8s.device-plugin.nvidia.com/gpu={A1}::3": {"gpu_uuid": A1, "slot": 3},
}
UNKNOWN = [
    "something-new-42",
    "",
    "nvidia9",  # an index that this node's table doesn't have
    A1[4:],  # its prefix cut off
    A1[:39],
    f"{A1} ",
    f"{A1}::",
    f"{A1}::-1",
    f"{A1}::\u0663",  # an Arabic digit is no slot
    f"{B1}/7/0",
    "vendor.example/gpu=",
    f"a/b=c/d={A1}",
]


@pytest.mark.parametrize(("text", "expected"), FORMS.items())
def test_c30_every_known_form_resolves_to_card_instance_and_slot(
    text: str, expected: dict[str, object]
) -> None:
    device = parse_device_id(text, UUID_OF_INDEX)

    assert device == Device(id=text, **expected)  # type: ignore[arg-type]
    assert device.recognised


@pytest.mark.parametrize("text", UNKNOWN)
def test_c30_unknown_forms_are_kept_whole_and_marked(text: str) -> None:
    assert parse_device_id(text, UUID_OF_INDEX) == Device(id=text, recognised=False)


def test_c30_two_pods_on_two_slots_are_both_on_the_card() -> None:
    first, second = (parse_device_id(f"{A1}::{slot}", {}) for slot in (0, 1))

    assert first.gpu_uuid == second.gpu_uuid == A1
    assert (first.slot, second.slot) == (0, 1)


def test_c30_slices_that_differ_only_at_the_end_are_not_merged() -> None:
    ids = [f"MIG-{A1}/7/0", f"MIG-{A1}/7/1", f"MIG-{A1}/8/0"]

    assert len({parse_device_id(text, {}) for text in ids}) == 3


@settings(deadline=None)  # the machine may be busy
@given(st.text() | st.from_regex(r"(GPU|MIG|nvidia|a/b=)-?[0-9a-f/:-]*", fullmatch=True))
def test_c30_no_text_is_refused_cut_or_dropped(text: str) -> None:
    device = parse_device_id(text, UUID_OF_INDEX)

    assert device.id == text
    assert device.recognised == bool(device.gpu_uuid or device.mig_uuid)


@settings(deadline=None)  # the machine may be busy
@given(st.uuids(), st.integers(0, 10**9 - 1), st.integers(0, 99), st.integers(0, 99))
def test_c30_what_was_put_into_an_id_comes_out_of_it(
    uuid: object, slot: int, gpu_instance: int, compute_instance: int
) -> None:
    text = f"MIG-GPU-{uuid}/{gpu_instance}/{compute_instance}::{slot}"

    assert parse_device_id(text, {}) == Device(
        id=text,
        gpu_uuid=f"GPU-{uuid}",
        gpu_instance_id=gpu_instance,
        compute_instance_id=compute_instance,
        slot=slot,
    )
