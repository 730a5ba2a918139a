"""The control plane is Kubernetes as it is: it schedules, bars, evicts, refuses, and cleans up."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cluster.objects import SETTLE_SECONDS, bare_node, gpu_pod, node_of, refusal, taint
from tests.controlplane import build
from tests.controlplane.client import Client, write_kubeconfig
from tests.controlplane.plane import ControlPlane, PlaneError
from tests.controlplane.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.real_only]

# Starts a control plane, says where it is, and waits to be killed.
STARTER = """
import sys, time
from pathlib import Path
from tests.controlplane.plane import ControlPlane
with ControlPlane(Path(sys.argv[1])) as plane:
    print(plane.url, flush=True)
    time.sleep(600)
"""


def test_it_is_the_release_that_go_mod_pins(plane: ControlPlane) -> None:
    pinned = re.search(r"k8s.io/kubernetes (v\S+)", (build.SOURCE / "go.mod").read_text())
    assert pinned is not None
    assert plane.admin.get("/version")["gitVersion"] == pinned[1]


def test_a_pod_lands_on_a_ready_node_and_a_taint_bars_the_next(plane: ControlPlane) -> None:
    admin = plane.admin
    with (
        bare_node(admin, "bare-1", gpus=2) as node,
        gpu_pod(admin, "first", gpus=1, node=node) as first,
    ):
        assert node_of(admin, first) == node
        taint(admin, node, {"key": "repair", "effect": "NoSchedule"})
        with gpu_pod(admin, "second", gpus=1, node=node) as second:
            assert "untolerated taint" in refusal(admin, second)
            taint(admin, node)
            assert node_of(admin, second) == node


def test_a_no_execute_taint_evicts_a_running_pod(plane: ControlPlane) -> None:
    admin = plane.admin
    with (
        bare_node(admin, "bare-2", gpus=1) as node,
        gpu_pod(admin, "doomed", gpus=1, node=node) as doomed,
    ):
        node_of(admin, doomed)
        taint(admin, node, {"key": "repair", "effect": "NoExecute"})
        until(
            lambda: admin.get(doomed)["metadata"].get("deletionTimestamp"),
            SETTLE_SECONDS,
            "the eviction",
        )


def test_a_stranger_is_refused(plane: ControlPlane, tmp_path: Path) -> None:
    authority = plane.run_dir / "pki" / "ca.crt"
    nobody = write_kubeconfig(tmp_path / "nobody.kubeconfig", plane.url, authority, {})
    forged = write_kubeconfig(
        tmp_path / "forged.kubeconfig", plane.url, authority, {"token": "not-a-token"}
    )
    assert Client(nobody).call("GET", "/api/v1/nodes").status == 403
    assert Client(forged).call("GET", "/api/v1/nodes").status == 401


def test_stopping_leaves_only_the_logs(tmp_path: Path) -> None:
    with ControlPlane(tmp_path) as plane:
        port = urlsplit(plane.url).port
        assert len(_processes_in(tmp_path)) == 4
    assert _processes_in(tmp_path) == []
    assert port not in _listening()
    assert {path.suffix for path in tmp_path.iterdir()} == {".log"}


def test_the_programs_die_with_the_process_that_started_them(tmp_path: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with starter:
        assert starter.stdout is not None
        assert starter.stdout.readline().startswith("https://127.0.0.1:")
        assert len(_processes_in(tmp_path)) == 4
        starter.send_signal(signal.SIGKILL)
    until(lambda: not _processes_in(tmp_path), SETTLE_SECONDS, "the programs to end")


def test_a_program_that_dies_at_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "etcd.data").write_text("a file where etcd wants its folder")
    with pytest.raises(PlaneError, match=r"(?s)etcd ended with status 1:\n.*not a directory"):
        ControlPlane(tmp_path).start()
    assert _processes_in(tmp_path) == []


def _processes_in(folder: Path) -> list[int]:
    """Return the ids of the live processes whose working directory is ``folder``."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                found.append(int(entry.name))
        except OSError:  # it ended while we looked, or is another user's
            continue
    return found


def _listening() -> set[int]:
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return {int(field[1].split(":")[1], 16) for field in fields if field[3] == "0A"}
