"""Fixtures: a scripted Kubernetes API, the real watch process on it, and what a viewer sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.console import Console
from tests.support.processes import eventually, manage
from tests.support.scripted_api import Json, ScriptedApi

Watch = Callable[..., ScriptedApi]


@pytest.fixture
def console(db: None) -> Console:
    return Console()


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    with ScriptedApi() as api:
        yield api


@pytest.fixture
def watch(
    api: ScriptedApi, console: Console, process_environ: dict[str, str], tmp_path: Path
) -> Iterator[Watch]:
    """``watch(nodes, pods)``: the watch process on an API with these, after its first two lists.

    ``pods`` may be the status of an error instead.
    """
    config = api.kubeconfig(tmp_path / "kubeconfig")
    environ = {**process_environ, "GPUADMIN_KUBECONFIG": str(config)}

    def read() -> bool:
        found = console.all("clusters")
        return bool(found) and all(
            one[f"{kind}_observed_at"] or one[f"{kind}_error"]
            for one in found
            for kind in ("nodes", "pods")
        )

    with ExitStack() as stack:

        def start(nodes: Iterable[Json] = (), pods: Iterable[Json] | int = ()) -> ScriptedApi:
            api.nodes.pages = [list(nodes)]
            api.pods.pages = [pods] if isinstance(pods, int) else in_pages(list(pods))
            stack.enter_context(manage("watch", environ=environ, log=tmp_path / "watch.log"))
            eventually(read, seconds=60, what="the first lists are read")
            return api

        yield start


def in_pages(items: list[Json], size: int = 500) -> list[list[Json] | int]:
    """A list as the API server answers it; an empty one is one empty page."""
    return [items[start : start + size] for start in range(0, len(items), size)] or [[]]
