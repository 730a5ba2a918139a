"""One node's whole line: NVML → agent → poll → store, and its API objects → watch → store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.conf import LazySettings, settings

from agent.contract.report import PORT_NAME
from agent.protos.podresources_pb2 import PodResources
from gpuadmin.collect.tasks import poll
from simulator.hardware import Card
from tests.agent.conftest import OpenDoor
from tests.agent.door import NODE_NAME, POD_UID, SECRET, Door
from tests.agent.kubelet import kubelet
from tests.support.console import Console
from tests.support.processes import eventually
from tests.support.scripted_api import Json, ScriptedApi, node, pod
from tests.support.watching import Watch

BOOT = "3c0f6f1e-8c2b-4f7e-9d0a-52b1c0ffee01"


class Line:
    """``door`` is the node's agent and its hardware; ``poll()`` is one cycle of asking it."""

    def __init__(self, door: Door, console: Console) -> None:
        self.door, self.console = door, console

    def poll(self, status: str = "ok") -> None:
        poll(at_once=True)
        assert self.node["agent"]["status"] == status, self.node["agent"]

    @property
    def node(self) -> Json:
        return self.console.one("nodes", NODE_NAME)

    @property
    def gpus(self) -> dict[int, Json]:
        return {gpu["index"]: gpu for gpu in self.console.all("gpus")}

    def page(self) -> str:
        """The words of the node's page."""
        return self.console.page(f"/nodes/{NODE_NAME}").text

    def finding(self, code: str) -> list[Json]:
        return [found for found in self.console.all("findings") if found["code"] == code]


StartLine = Callable[..., Line]


@pytest.fixture
def line(
    api: ScriptedApi,
    watch: Watch,
    open_door: OpenDoor,
    console: Console,
    settings: LazySettings,
    tmp_path: Path,
) -> Iterator[StartLine]:
    """``line(*cards, pods=…, held=…)``: a node with these cards and its agent, polled once.

    ``pods`` are the API's, ``held`` is what the kubelet says that its containers hold; without
    ``capacity`` and ``allocatable`` the node advertises its cards whole.
    """
    settings.AGENT_SECRET = SECRET.decode()
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text(BOOT)

    with ExitStack() as stack:

        def start(
            *cards: Card,
            pods: Iterable[Json] = (),
            held: Iterable[PodResources] = (),
            labels: dict[str, str] | None = None,
            **advertised: dict[str, str],
        ) -> Line:
            socket = Path(stack.enter_context(TemporaryDirectory(prefix="gpa-"))) / "kubelet.sock"
            stack.enter_context(kubelet(socket, *held))
            door = open_door(*cards, kubelet_socket=socket)
            api.daemonset = {"metadata": {"name": settings.AGENT_DAEMONSET, "uid": "ds"}}
            machine = node(NODE_NAME, gpus=len(cards))
            machine["metadata"]["labels"] = labels or {}
            machine["status"] |= {"nodeInfo": {"bootID": BOOT}, **advertised}
            watch([machine], [agent_pod(door.port), *pods])
            made = Line(door, console)
            eventually(
                lambda: made.node["agent"]["status"] == "unreachable", what="the agent's pod"
            )
            made.poll()
            return made

        yield start


def pod_here(name: str) -> Json:
    """A pod that asks for a card on the node, in the namespace of the kubelet's answers."""
    made = pod(name, NODE_NAME)
    made["metadata"]["namespace"] = "llm"
    return made


def agent_pod(port: int) -> Json:
    """The pod of our DaemonSet on the node."""
    owner = {"kind": "DaemonSet", "uid": "ds", "name": settings.AGENT_DAEMONSET, "controller": True}
    return {
        "metadata": {
            "name": "gpuadmin-agent-x",
            "namespace": settings.NAMESPACE,
            "uid": POD_UID,
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": NODE_NAME,
            "containers": [{"name": "a", "ports": [{"name": PORT_NAME, "containerPort": port}]}],
        },
        "status": {"phase": "Running", "podIP": "127.0.0.1"},
    }
