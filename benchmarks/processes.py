"""What processes cost, read from /proc: seconds of CPU, and the most memory they ever had."""

from __future__ import annotations

import os
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, of all below it, and of those that have ended."""
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(folder)
        if fields and (int(folder.name) == pid or int(fields[1]) == pid):
            total += sum(int(ticks) for ticks in fields[11:15]) / TICKS_PER_SECOND
    return total


def peak_mib(pid: int) -> float:
    """VmHWM: the largest resident set so far, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(pid)


def _stat(folder: Path) -> list[str]:
    """The fields of /proc/PID/stat behind the name; empty for a process that has just ended."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
