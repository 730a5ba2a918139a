"""Manners of the simulator's processes: they stop when asked, and die with their parent."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal

PARENT_VARIABLE = "GPUADMIN_SIM_PARENT"  # pid of the process that must outlive this one
_PR_SET_PDEATHSIG = 1
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def die_with_parent(parent: int) -> None:
    """Have the kernel send SIGTERM when ``parent``, our parent now, is gone.

    The kernel ties this to the thread that started us, so start from a main thread.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before we asked
        os.kill(os.getpid(), signal.SIGTERM)


def tie_to_parent() -> None:
    """``die_with_parent`` when the starting process asked for it in the environment."""
    if parent := os.environ.pop(PARENT_VARIABLE, ""):
        die_with_parent(int(parent))


async def stop_signal() -> None:
    """Return at the first SIGINT, SIGTERM or SIGHUP, even where SIGINT was ignored at start."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
