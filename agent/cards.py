"""The cards of a node: one entry each, whatever is wrong with it (C25, C27, C28)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from agent import nvml
from agent.contract.report import Gpu, MemoryKind, Process
from agent.fields import Fields
from agent.mig import mig_handles, read_mig_instance
from agent.processes import ProcessReader

TEMPERATURE_GPU = 0
UNCORRECTED, VOLATILE = 1, 0
# Boards whose GPU has no memory of its own: GB10 and the Jetson family (contracts.md 6.7, C27).
INTEGRATED_NAMES = ("GB10", "Thor", "Orin", "Xavier", "Tegra", "nvgpu")
LOST = "NVML says that this GPU is lost: drain the node, then reboot or power-cycle it ({detail})."


class CardReader:
    """Reads all cards, and remembers which uuid stood at which index (C25, C30)."""

    def __init__(self, processes: ProcessReader) -> None:
        self._processes = processes
        self.uuid_of_index: dict[int, str] = {}

    def read_all(self) -> tuple[Gpu, ...]:
        """Every card that NVML counts, by index. Raises ``nvml.NvmlError``."""
        gpus = tuple(self._read(index) for index in range(nvml.device_count()))
        self._remember(gpus)
        return tuple(replace(gpu, uuid=self.uuid_of_index.get(gpu.index)) for gpu in gpus)

    def _remember(self, gpus: tuple[Gpu, ...]) -> None:
        # After a loss the others may move up: an old uuid that now stands elsewhere is forgotten.
        seen = {gpu.uuid for gpu in gpus}
        kept = {
            index: uuid
            for index, uuid in self.uuid_of_index.items()
            if index < len(gpus) and uuid not in seen
        }
        self.uuid_of_index = kept | {gpu.index: gpu.uuid for gpu in gpus if gpu.uuid}

    def _read(self, index: int) -> Gpu:
        try:
            return self._read_card(index, nvml.call("nvmlDeviceGetHandleByIndex", index))
        except nvml.CardLostError as error:
            return Gpu(index=index, state="lost", error=LOST.format(detail=error))
        except nvml.FieldUnreadableError as error:
            return Gpu(index=index, state="error", error=f"This GPU can't be read ({error}).")

    def _read_card(self, index: int, handle: nvml.Handle) -> Gpu:
        fields = Fields(handle)
        name = fields.read("name", "nvmlDeviceGetName")
        memory = fields.read_memory()
        total = memory and memory.total
        mig_mode = fields.read("mig_mode_current", "nvmlDeviceGetMigMode")
        slices = mig_handles(fields) if mig_mode and mig_mode[0] else []
        processes, unreadable = self._read_processes(fields, slices, total)
        kind = _memory_kind(name, fields, total)
        if kind == "unified":
            used = _sum_of_processes(processes, unreadable)
        else:
            used = memory and memory.used
        instances = (read_mig_instance(handle, each) for each in slices)
        return Gpu(
            index=index,
            uuid=fields.read("uuid", "nvmlDeviceGetUUID"),
            name=name,
            memory_kind=kind,
            memory_total_bytes=total,
            memory_used_bytes=used,
            mig_mode_current=bool(mig_mode[0]) if mig_mode else None,
            mig_mode_pending=bool(mig_mode[1]) if mig_mode else None,
            mig_instances=tuple(each for each in instances if each),
            processes=processes,
            unreadable_processes=unreadable,
            **_identity(fields),
            **_load(fields),
            field_errors=fields.errors,
        )

    def _read_processes(
        self, fields: Fields, slices: list[nvml.Handle], total: int | None
    ) -> tuple[tuple[Process, ...] | None, int]:
        try:
            return self._processes.read([fields.handle], total)
        except nvml.FieldUnreadableError as error:
            reason = error.reason
        if slices:  # the whole card's list is privileged, a slice's is not (contracts.md 6.6)
            try:
                return self._processes.read(slices, total)
            except nvml.FieldUnreadableError as error:
                reason = error.reason
        fields.errors["processes"] = reason
        return None, 0


def _identity(fields: Fields) -> dict[str, Any]:
    pci = fields.read("pci_bus_id", "nvmlDeviceGetPciInfo")
    capability = fields.read("compute_capability", "nvmlDeviceGetCudaComputeCapability")
    return {
        "serial": fields.read("serial", "nvmlDeviceGetSerial"),
        "pci_bus_id": pci and pci.busId,
        "pci_device_id": pci and f"0x{pci.pciDeviceId:08X}",
        "compute_capability": capability and "{}.{}".format(*capability),
    }


def _load(fields: Fields) -> dict[str, Any]:
    rates = fields.read("utilization_percent", "nvmlDeviceGetUtilizationRates")
    if rates is None:
        fields.errors["memory_utilization_percent"] = fields.errors["utilization_percent"]
    temperature_names = ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature")
    return {
        "utilization_percent": rates and rates.gpu,
        "memory_utilization_percent": rates and rates.memory,
        "temperature_celsius": fields.read(
            "temperature_celsius", temperature_names, TEMPERATURE_GPU
        ),
        "power_watts": _watts(fields.read("power_watts", "nvmlDeviceGetPowerUsage")),
        "power_limit_watts": _watts(
            fields.read("power_limit_watts", "nvmlDeviceGetEnforcedPowerLimit")
        ),
        "ecc_uncorrectable_volatile": fields.read(
            "ecc_uncorrectable_volatile", "nvmlDeviceGetTotalEccErrors", UNCORRECTED, VOLATILE
        ),
    }


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _memory_kind(name: str | None, fields: Fields, total: int | None) -> MemoryKind:
    if total:
        return "dedicated"
    integrated = any(each.lower() in (name or "").lower() for each in INTEGRATED_NAMES)
    if integrated and fields.errors.get("memory_total_bytes") == "not_supported":
        return "unified"
    return "unknown"


def _sum_of_processes(processes: tuple[Process, ...] | None, unreadable: int) -> int | None:
    """Used bytes of a card that shares the system's memory, if every process tells its own."""
    if processes is None or unreadable:
        return None
    sizes = [process.memory_used_bytes for process in processes]
    return None if None in sizes else sum(size for size in sizes if size is not None)
