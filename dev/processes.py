"""Child processes that never outlive us: start, watch, stop."""

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Command:
    """What to run. `stop_signal` asks it to end, and reaches it also when we are killed."""

    name: str
    argv: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    user: pwd.struct_passwd | None = None
    stop_signal: signal.Signals = signal.SIGTERM


def spawn(command: Command, log: Path) -> subprocess.Popen[bytes]:
    """Starts the command with its output added to `log`.

    It gets a session of its own, so that Ctrl-C reaches only us and the order of stopping is ours.
    Call it from the main thread: the kernel takes the end of the calling thread for our death.
    """
    parent = os.getpid()

    def before_exec() -> None:
        # Runs after setuid, which would have cleared it.
        _LIBC.prctl(_PR_SET_PDEATHSIG, command.stop_signal)
        if os.getppid() != parent:
            os._exit(1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with log.open("ab") as output:
        return subprocess.Popen(
            list(command.argv),
            env=dict(command.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=before_exec,  # noqa: PLW1509  takes no lock; there is no other way to prctl
            **identity(command.user),
        )


def identity(user: pwd.struct_passwd | None) -> dict[str, Any]:
    """What subprocess needs to run as that user, and in none of our groups."""
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}


def stop(process: subprocess.Popen[bytes], ask: signal.Signals, seconds: float) -> None:
    """Asks once, waits, then kills its whole session."""
    if process.poll() is None:
        process.send_signal(ask)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until(ready: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Whether `ready()` came true in time."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log, to be shown beside the sentence that something failed."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
