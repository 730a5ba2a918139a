"""Starting processes of ours in tests, and waiting for what they bring about."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


@contextmanager
def manage(
    *arguments: str, environ: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """``manage.py …`` in the background, ended by SIGTERM."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environ,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def eventually(look: Callable[[], T], *, seconds: float = 20.0, what: str = "") -> T:
    """The first truthy value of ``look()``; fails with the last one after ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what or look.__name__}: {found!r}")
        time.sleep(0.1)
