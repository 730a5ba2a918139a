"""MIG mode and MIG devices (contracts.md 6.6)."""

from __future__ import annotations

from typing import Any

import pynvml

from simulator.hardware import Instance
from simulator.nvml.library import FakeNvml, Refused, Target, device_function, function, number, put

MAX_MIG_DEVICES = 7


@device_function("nvmlDeviceGetMigMode", on_mig=False)
def _mode(_: FakeNvml, target: Target, current: Any, pending: Any) -> None:
    if not target.card.mig_capable:
        raise Refused(pynvml.NVML_ERROR_NOT_SUPPORTED)
    put(current, int(target.card.mig_current))
    put(pending, int(target.card.mig_pending))


@device_function("nvmlDeviceGetMaxMigDeviceCount", on_mig=False)
def _max_devices(_: FakeNvml, target: Target, out: Any) -> None:
    put(out, MAX_MIG_DEVICES if target.card.mig_current else 0)


@device_function("nvmlDeviceGetMigDeviceHandleByIndex", on_mig=False)
def _device_by_index(library: FakeNvml, target: Target, index: Any, out: Any) -> None:
    instances = target.card.instances if target.card.mig_current else []
    if number(index) >= len(instances):
        raise Refused(pynvml.NVML_ERROR_NOT_FOUND)
    library.put_handle(out, instances[number(index)].uuid)


@device_function("nvmlDeviceGetGpuInstanceId")
def _gpu_instance_id(_: FakeNvml, target: Target, out: Any) -> None:
    put(out, _instance(target).gpu_instance_id)


@device_function("nvmlDeviceGetComputeInstanceId")
def _compute_instance_id(_: FakeNvml, target: Target, out: Any) -> None:
    put(out, _instance(target).compute_instance_id)


@device_function("nvmlDeviceGetAttributes_v2")
def _attributes(_: FakeNvml, target: Target, out: Any) -> None:
    instance = _instance(target)
    out._obj.computeInstanceSliceCount = instance.compute_slices
    out._obj.memorySizeMB = instance.memory_total_bytes // 2**20


@device_function("nvmlDeviceGetGpuInstanceById", on_mig=False)
def _gpu_instance(library: FakeNvml, target: Target, identifier: Any, out: Any) -> None:
    known = {each.gpu_instance_id for each in target.card.instances}
    if not target.card.mig_current or number(identifier) not in known:
        raise Refused(pynvml.NVML_ERROR_NOT_FOUND)
    library.put_handle(out, (target.card.uuid, number(identifier)))


@function("nvmlGpuInstanceGetInfo")
def _gpu_instance_info(library: FakeNvml, handle: Any, out: Any) -> None:
    thing = library.thing(handle)
    for card in library.world.cards:
        for instance in card.instances:
            if thing == (card.uuid, instance.gpu_instance_id):
                info = out._obj
                info.id, info.profileId = instance.gpu_instance_id, instance.profile_id
                info.placement.start, info.placement.size = instance.start, instance.size
                return
    raise Refused(pynvml.NVML_ERROR_INVALID_ARGUMENT)


def _instance(target: Target) -> Instance:
    if target.instance is None:  # a whole card is no MIG device
        raise Refused(pynvml.NVML_ERROR_INVALID_ARGUMENT)
    return target.instance
