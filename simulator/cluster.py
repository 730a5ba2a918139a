"""The whole simulated cluster for the demo and the tests: API server and nodes, two processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from simulator.nodes.__main__ import READY
from simulator.processes import PARENT_VARIABLE

ROOT = Path(__file__).resolve().parent.parent
STOP_SECONDS = 5.0


class ClusterError(Exception):
    """The cluster did not start, or a process of it ended; the message ends with its log."""


class SimulatedCluster:
    """A cluster in ``run_dir``, which is this cluster's own and is emptied at each start.

    Start it from a process's main thread: its processes die with the thread that started them.
    """

    def __init__(
        self,
        run_dir: Path,
        nodes: list[str] | None = None,
        *,
        seed: int = 1,
        tenants: bool = True,
        port: int = 0,
        history: int = 4000,
    ) -> None:
        """``nodes``: names from the fleet, all for None, no nodes at all for an empty list.

        ``history``: changes that a watch can go back; a watch from before them is answered 410.
        """
        self.run_dir = run_dir
        self.kubeconfig = run_dir / "kubeconfig"
        self._nodes = nodes
        self._tenants = tenants
        self._serving = ["--port", str(port), "--seed", str(seed), "--history", str(history)]
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start both; returns when the API serves, before the nodes are there."""
        if self.run_dir.exists():
            shutil.rmtree(self.run_dir)
        self.run_dir.mkdir(parents=True)
        try:
            self._spawn("simulator.api", ["--run-dir", str(self.run_dir), *self._serving])
            self._wait_for(self.run_dir / "simulator.kubeconfig", 15.0)
            if self._nodes != []:
                self._start_nodes()
        except BaseException:
            self.stop()
            raise

    def restart_nodes(self) -> None:
        """Kill the nodes with all their agents and start them again on the same API."""
        nodes = self.processes.pop()
        nodes.kill()
        nodes.wait()
        (self.run_dir / READY).unlink(missing_ok=True)
        self._start_nodes()

    def wait_ready(self, seconds: float = 40.0) -> None:
        """Wait until all nodes, agents and tenants' pods run. Raises ``ClusterError``."""
        if self._nodes != []:
            self._wait_for(self.run_dir / READY, seconds)

    def check(self) -> None:
        """Raises ``ClusterError`` when a process has ended by itself."""
        for process in self.processes:
            if process.poll() is not None:
                module = str(process.args[2])  # type: ignore[index]  # we made it a list
                log = self._log(module).read_text(encoding="utf-8", errors="replace")[-2000:]
                raise ClusterError(f"{module} ended with status {process.returncode}:\n{log}")

    def stop(self) -> None:
        """Stop both; nothing of them is left."""
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def _start_nodes(self) -> None:
        options = ["--run-dir", str(self.run_dir), "--nodes", ",".join(self._nodes or [])]
        options += ["--kubeconfig", str(self.run_dir / "simulator.kubeconfig")]
        self._spawn("simulator.nodes", [*options, *(["--tenants"] if self._tenants else [])])

    def _spawn(self, module: str, options: list[str]) -> None:
        environment = {**os.environ, PARENT_VARIABLE: str(os.getpid())}
        with self._log(module).open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", module, *options],
                    cwd=ROOT,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def _wait_for(self, file: Path, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not file.exists():
            self.check()
            if time.monotonic() > end:
                raise ClusterError(f"{file.name} did not appear within {seconds:.0f} s")
            time.sleep(0.03)

    def _log(self, module: str) -> Path:
        return self.run_dir / f"{module.rpartition('.')[2]}.log"
