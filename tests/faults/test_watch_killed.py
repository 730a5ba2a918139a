"""The watcher is killed while the cluster moves on (issue 3)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.console import Console
from tests.support.processes import eventually, manage
from tests.support.scripted_api import ScriptedApi, node, pod
from tests.support.watching import api, console, in_pages

__all__ = ["api", "console"]
pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
DOWN_SECONDS = 5


def test_500_pods_come_and_go_while_the_watcher_is_dead_and_the_state_is_that_of_a_new_list(
    api: ScriptedApi, console: Console, process_environ: dict[str, str], tmp_path: Path
) -> None:
    environ = {**process_environ, "GPUADMIN_KUBECONFIG": str(api.kubeconfig(tmp_path / "config"))}
    before = [pod(f"old-{n}", f"n{n % 100}", gpus=2) for n in range(300)]
    after = [*before[250:], *(pod(f"new-{n}", f"n{n % 100}", gpus=1) for n in range(250))]
    api.nodes.pages = [[node(f"n{n}") for n in range(100)]]
    api.pods.pages = in_pages(before)
    with manage("watch", environ=environ, log=tmp_path / "first.log") as watcher:
        eventually(lambda: _pods(console) == _uids(before), seconds=60, what="the first list")
        watcher.kill()
        watcher.wait()
        api.pods.pages = in_pages(after)
        time.sleep(DOWN_SECONDS)
    with manage("watch", environ=environ, log=tmp_path / "second.log"):
        eventually(lambda: _pods(console) == _uids(after), seconds=60, what="the state of now")
        eventually(lambda: _allocated(console) == 50 * 2 + 250, what="the counts of now")


def _uids(pods: list[dict[str, dict[str, str]]]) -> set[str]:
    return {one["metadata"]["uid"] for one in pods}


def _pods(console: Console) -> set[str]:
    return set(console.by("pods", "uid")) if console.all("clusters") else set()


def _allocated(console: Console) -> int:
    return sum(one["cards"]["allocated"] or 0 for one in console.all("nodes"))
