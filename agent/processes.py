"""Process lists, which lie (C29): host pids, misread structures, processes that just ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from agent import nvml
from agent.contract.report import Process

MAX_PID = 4_194_304  # the kernel's own upper bound for pid_max on 64 bits
Kind = Literal["compute", "graphics", "mps"]

# Newest name first, with its version: pynvml's plain names refuse an older driver altogether. Only
# the compute list has to be there; boards often lack the other two.
_LISTS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (
        "compute",
        ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
    ),
    ("mps", ("nvmlDeviceGetMPSComputeRunningProcesses_v3",)),
    (
        "graphics",
        ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
    ),
)


class ProcessReader:
    """Reads process lists; names only where ``proc`` (the host's /proc) is given."""

    def __init__(self, proc: Path | None) -> None:
        self._proc = proc

    def read(
        self, handles: list[nvml.Handle], memory_total_bytes: int | None
    ) -> tuple[tuple[Process, ...], int]:
        """The processes on ``handles`` and how many impossible entries were dropped.

        Raises ``nvml.FieldUnreadableError`` when a compute list can't be read, and
        ``nvml.CardLostError``.
        """
        processes: dict[tuple[int, int | None, int | None], Process] = {}
        unreadable = 0
        for handle in handles:
            for kind, names in _LISTS:
                for entry in _entries(kind, names, handle):
                    if not _possible(entry, memory_total_bytes):
                        unreadable += 1
                        continue
                    process = self._process(kind, entry)
                    if process is not None:
                        key = (
                            process.pid,
                            process.gpu_instance_id,
                            process.compute_instance_id,
                        )
                        processes.setdefault(key, process)
        return tuple(processes.values()), unreadable

    def _process(self, kind: Kind, entry: Any) -> Process | None:
        name = None
        if self._proc is not None:
            try:
                comm = (self._proc / str(entry.pid) / "comm").read_bytes()
            except OSError:
                return None  # ended between the two calls
            name = comm.decode(errors="replace").strip()
        return Process(
            pid=entry.pid,
            kind=kind,
            memory_used_bytes=entry.usedGpuMemory,
            gpu_instance_id=instance_id(entry.gpuInstanceId),
            compute_instance_id=instance_id(entry.computeInstanceId),
            name=name,
        )


def instance_id(value: int) -> int | None:
    """NVML's "no instance" is None."""
    return None if value == nvml.NO_INSTANCE else value


def _entries(kind: Kind, names: tuple[str, ...], handle: nvml.Handle) -> list[Any]:
    try:
        return list(nvml.call(names, handle))
    except nvml.FieldUnreadableError:
        if kind == "compute":
            raise
        return []


def _possible(entry: Any, memory_total_bytes: int | None) -> bool:
    size = entry.usedGpuMemory
    too_big = size is not None and memory_total_bytes is not None and size > memory_total_bytes
    return 0 < entry.pid <= MAX_PID and not too_big
