"""The supervisor ends with each signal, also where only the `make` above it was signalled."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dev.processes import wait_until

ROOT = Path(__file__).resolve().parents[2]
KEEPER = """
import sys, time
from pathlib import Path
from dev.processes import Command
from dev.supervisor import Stopped, Supervisor, handle_signals
handle_signals()
supervisor = Supervisor(Path(sys.argv[1]))
supervisor.start(Command("sleeper", sys.argv[2:]))
try:
    Path(sys.argv[1], "started").touch()  # inside: the signal may come at once
    while True:
        supervisor.tend()
        time.sleep(0.05)
except Stopped:
    supervisor.stop(last=())
"""


def keep(folder: Path, *child: str) -> list[str]:
    (folder / "keeper.py").write_text(KEEPER)
    return [sys.executable, str(folder / "keeper.py"), str(folder), *child]


def spawn(folder: Path, argv: list[str]) -> "subprocess.Popen[str]":
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        argv, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert wait_until((folder / "started").exists, seconds=20)
    return process


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def all_gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_stops_supervisor_and_child(tmp_path: Path, number: signal.Signals) -> None:
    process = spawn(tmp_path, keep(tmp_path, "sleep", "60"))
    children = children_of(process.pid)
    process.send_signal(number)
    process.communicate(timeout=10)
    assert process.returncode == 0
    assert all_gone(children)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_to_make_alone_stops_everything_under_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    recipe = " ".join(keep(tmp_path, "sleep", "60"))
    (tmp_path / "Makefile").write_text(f"demo:\n\t@{recipe}\n")
    process = spawn(tmp_path, ["make", "demo"])
    (supervisor,) = children_of(process.pid)
    children = children_of(supervisor)
    process.send_signal(number)
    process.communicate(timeout=10)
    assert wait_until(lambda: all_gone([supervisor, *children]), seconds=10)


def test_a_child_that_dies_is_started_again_but_not_for_ever(tmp_path: Path) -> None:
    process = spawn(tmp_path, keep(tmp_path, "false"))
    out, err = process.communicate(timeout=20)
    assert out.splitlines() == ["demo: sleeper ended with 1: starting it again"] * 3
    assert "sleeper ended 4 times, with 1" in err
