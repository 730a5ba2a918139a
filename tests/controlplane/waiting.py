"""Waiting for what another process will make true."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(check: Callable[[], T | None], seconds: float, what: str) -> T:
    """Return the first truthy answer of ``check``, asked every 100 ms for at most ``seconds``.

    ``what`` completes "Waited 10 s in vain for …". Raises TimeoutError.
    """
    deadline = time.monotonic() + seconds
    while True:
        if answer := check():
            return answer
        if time.monotonic() >= deadline:
            raise TimeoutError(
                f"Waited {seconds:g} s in vain for {what}; the last answer: {answer}"
            )
        time.sleep(0.1)
