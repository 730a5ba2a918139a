"""Keeps a set of child processes running until a signal, then stops them all."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from dev import processes
from dev.processes import Command

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MOST_RESTARTS = 3  # of one child within RESTART_WINDOW_SECONDS
RESTART_WINDOW_SECONDS = 120.0


class Stopped(BaseException):
    """A signal asked us to end."""


class ChildError(Exception):
    """A child cannot be kept running; the message is a sentence for the terminal."""


@dataclass
class Child:
    """One process that is kept running; `before_start` clears what a crash of it left."""

    command: Command
    before_start: Callable[[], object] | None
    process: subprocess.Popen[bytes]
    restarts: list[float] = field(default_factory=list)


class Supervisor:
    """Children by name; each logs to `logs`/<name>.log. Use it from the main thread only."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._children: dict[str, Child] = {}
        self._make = _watched_make()

    def start(self, command: Command, before_start: Callable[[], object] | None = None) -> None:
        process = processes.spawn(command, self.log_of(command.name))
        self._children[command.name] = Child(command, before_start, process)

    def log_of(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def wait(self, ready: Callable[[], bool], what: str, seconds: float) -> None:
        """Until `ready()`, keeping the children alive. Raises ChildError when it takes too long."""

        def look() -> bool:
            self.tend()
            return ready()

        if not processes.wait_until(look, seconds):
            raise ChildError(f"{what} took more than {seconds:.0f} s; the logs are in {self._logs}")

    def tend(self) -> None:
        """Restarts each child that ended. Raises ChildError once that happens too often."""
        if self._make is not None and self._make != _watched_make():
            raise Stopped
        for name, child in self._children.items():
            status = child.process.poll()
            if status is None:
                continue
            now = time.monotonic()
            recent = [at for at in child.restarts if now - at < RESTART_WINDOW_SECONDS]
            if len(recent) >= MOST_RESTARTS:
                last = processes.tail(self.log_of(name))
                raise ChildError(f"{name} ended {len(recent) + 1} times, with {status}:\n{last}")
            print(f"demo: {name} ended with {status}: starting it again", flush=True)
            if child.before_start:
                child.before_start()
            child.restarts = [*recent, now]
            child.process = processes.spawn(child.command, self.log_of(name))

    def stop(self, *, last: tuple[str, ...], seconds: float = 4.0) -> None:
        """Stops all children at once, but those named `last` only after the others."""
        others = [child for name, child in self._children.items() if name not in last]
        for group in (others, [self._children[name] for name in last if name in self._children]):
            for child in group:
                if child.process.poll() is None:
                    child.process.send_signal(child.command.stop_signal)
            deadline = time.monotonic() + seconds
            for child in group:
                left = max(0.1, deadline - time.monotonic())
                processes.stop(child.process, child.command.stop_signal, left)


def handle_signals() -> None:
    """Each of the three signals raises Stopped, even where SIGINT was ignored at start."""

    def stop(number: int, frame: FrameType | None) -> None:
        ignore_signals()
        raise Stopped

    for number in STOP_SIGNALS:
        signal.signal(number, stop)


def ignore_signals() -> None:
    """From here on we are stopping already."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _watched_make() -> str | None:
    """A text that changes when the `make` above us is signalled or dies; None without one.

    On SIGINT and SIGHUP make passes nothing on and waits for us, for ever if nobody else signals
    us; but before it waits it takes its own handler off, and the kernel shows which are left.
    """
    status = Path(f"/proc/{os.getppid()}/status")
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return ""
    if lines[0].split() != ["Name:", "make"]:
        return None
    return next(line for line in lines if line.startswith("SigCgt"))
