"""Our simulated nodes on a real control plane: kubelet, device plugin and agents as its clients."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from simulator.nodes.__main__ import READY
from simulator.processes import PARENT_VARIABLE
from tests.cluster.objects import remove_node
from tests.conftest import AGENT_SECRET
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

START_SECONDS = 40.0
# Without taints of their own and with whole cards only: name → number of cards.
NODES = {"a100-01": 8, "l40s-01": 4}


@contextmanager
def nodes_on(plane: ControlPlane, folder: Path, names: Iterable[str]) -> Iterator[None]:
    """Nodes of the demo's fleet, by name, on ``plane``; they and their DaemonSets go on leaving.

    They sign in as the tests' simulator role. Raises AssertionError with their log.
    """
    log = folder / "nodes.log"
    command = [sys.executable, "-m", "simulator.nodes", "--nodes", ",".join(names)]
    command += ["--kubeconfig", str(plane.kubeconfig("simulator")), "--run-dir", str(folder)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=os.environ
            | {PARENT_VARIABLE: str(os.getpid()), "GPUADMIN_AGENT_SECRET": AGENT_SECRET},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def is_ready() -> bool:
        assert process.poll() is None, f"the simulated nodes ended:\n{log.read_text()}"
        return (folder / READY).exists()

    try:
        until(is_ready, START_SECONDS, f"the simulated nodes to be ready, see {log}")
        yield
    finally:
        process.terminate()
        process.wait(START_SECONDS)
        _clear(plane, names)


def _clear(plane: ControlPlane, names: Iterable[str]) -> None:
    for found in plane.admin.get("/apis/apps/v1/daemonsets")["items"]:
        meta = found["metadata"]
        path = f"/apis/apps/v1/namespaces/{meta['namespace']}/daemonsets/{meta['name']}"
        plane.admin.ok("DELETE", path, {"propagationPolicy": "Background"})
    for name in names:
        remove_node(plane.admin, name)
