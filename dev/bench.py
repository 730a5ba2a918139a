"""`make bench`: what the demo costs (times, CPU and memory of all its processes together), and then
each of benchmarks/: a large fleet that is replayed.

Prints one line per figure; docs/performance.md holds the budgets and the last measured values.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IDLE_SECONDS = 60
BENCHMARKS = ("benchmarks.watcher", "benchmarks.poll")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def main() -> None:
    home = Path(tempfile.mkdtemp(prefix="gpuadmin-bench-"))
    home.chmod(0o755)  # PostgreSQL's user has to enter
    try:
        _report("first start, empty data", _start_and_stop(home))
        _report("second start", _start_and_stop(home, idle=True))
    finally:
        shutil.rmtree(home)
    for module in BENCHMARKS:
        subprocess.run([sys.executable, "-m", module], cwd=ROOT, check=True)


def _report(what: str, seconds: float) -> None:
    print(f"{what}: ready after {seconds:.1f} s", flush=True)


def _start_and_stop(home: Path, *, idle: bool = False) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    environ = os.environ | {"PORT": port, "GPUADMIN_DEMO_HOME": str(home)}
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "dev.demo"], cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout  # noqa: S101  a pipe was asked for
        if not any(line.startswith("ready: ") for line in demo.stdout):
            sys.exit("The demo did not get ready.")
        took = time.monotonic() - begun
        if idle:
            _measure_idle(demo.pid)
        stopping = time.monotonic()
        demo.send_signal(signal.SIGTERM)
        demo.wait()
        print(f"stopped after {time.monotonic() - stopping:.1f} s")
    return took


def _measure_idle(pid: int) -> None:
    """CPU of the whole tree over a minute without a browser, and its memory at the end."""
    before = _cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    after = _cpu_seconds(pid)
    used = sum(seconds - before.get(child, 0.0) for child, seconds in after.items())
    print(f"idle: {used:.1f} s of CPU in {IDLE_SECONDS} s, {len(after)} processes")
    print(f"memory: {sum(map(_pss_mib, after)):.0f} MiB (PSS)")


def _cpu_seconds(root: int) -> dict[int, float]:
    """User and system time of a process and all below it, by process id."""
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(folder.name)
        children.setdefault(int(fields[1]), []).append(pid)
        seconds[pid] = (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return {pid: seconds[pid] for pid in found if pid in seconds}


def _pss_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


if __name__ == "__main__":
    main()
