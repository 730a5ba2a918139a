"""NVML beneath the real pynvml, read from one node's hardware file (simulator.hardware).

pynvml is process-global: one process stands for one node.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pynvml

from simulator.nvml import devices, events, mig  # noqa: F401 - they register their functions
from simulator.nvml.library import FakeNvml


def install(path: Path, clock: Callable[[], float] = time.time) -> FakeNvml:
    """Put the simulated library in pynvml's place of libnvidia-ml."""
    uninstall()
    library = FakeNvml(path, clock)
    pynvml.nvmlLib = library
    return library


def uninstall() -> None:
    """Give pynvml back as it was before it loaded any library."""
    pynvml.nvmlLib = None
    pynvml._nvmlLib_refcount = 0
    pynvml._nvmlGetFunctionPointer_cache.clear()  # else a second library is never called
