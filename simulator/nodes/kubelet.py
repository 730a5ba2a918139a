"""One simulated node: its kubelet, device plugin and feature discovery, behind one queue."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Awaitable, Callable

import aiohttp
import msgspec

from agent.contract.report import TOKEN_HEADER
from agent.contract.token import make_token
from agent.protos.podresources_pb2 import ListPodResourcesResponse
from simulator import hardware as hardware_file
from simulator import marks
from simulator.faults.nodes import NodeFaults
from simulator.faults.situations import Situation
from simulator.fleet.inventory import NodeSpec, hardware
from simulator.nodes import commands, objects, plugin
from simulator.nodes.agents import AgentJob, AgentProcesses
from simulator.nodes.allocation import Allocations
from simulator.nodes.client import STRATEGIC_PATCH, Kube, KubeError, Value
from simulator.nodes.commands import Result
from simulator.nodes.labels import node_labels
from simulator.nodes.load import put_on, shares
from simulator.nodes.places import Places
from simulator.nodes.server import KubeletServer

AGENT_PORT_NAME = "agent"
RESTART_SECONDS = 1.0
READINESS_SECONDS = 5.0
_DONE = ("Succeeded", "Failed")

log = logging.getLogger(__name__)


class Kubelet:
    """A node. Everything that happens to it is done in order, one after the other."""

    def __init__(
        self, kube: Kube, spec: NodeSpec, number: int, places: Places, agents: AgentProcesses
    ) -> None:
        """``number`` (from 1) makes the node's pod addresses: 127.1.number.x."""
        self.spec = spec
        self._kube = kube
        self._places = places
        self._agents = agents
        self._number = number
        self._next_address = 2
        self._secret = ""
        self._rest = hardware(spec)
        self._faults = NodeFaults(spec.name)
        self._allocations = Allocations.load(places.checkpoint)
        self._replicas = spec.replicas
        if spec.replicas_before and not self._allocations.restored:
            self._replicas = spec.replicas_before
        self._pods: dict[str, Value] = {}
        self._restarts: dict[str, int] = {}
        self._known_resources = set(spec.stale)
        self._posted: Value = {}
        self._written = b""
        self._work: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._server = KubeletServer(f"127.1.{number}.1", self._read_pod, self._execute)

    async def run(self) -> None:
        """Do what comes, until cancelled. A refused write is logged; the next event mends it."""
        while True:
            work = await self._work.get()
            try:
                await work()
            except KubeError as error:
                log.warning("%s: %s", self.spec.name, error)

    async def register(self, secret: str) -> None:
        """Make the Node and its Lease, or take over those that are there."""
        self._secret = secret
        self._places.prepare()
        await self._server.start()
        labels = node_labels(self.spec, self._rest)
        value = objects.node(self.spec, self._places, labels)
        value["status"] |= self._resources() | objects.endpoint(self.spec.name, self._server)
        if not await self._kube.create_once("/api/v1/nodes", value):
            known = await self._kube.patch(self._path(), {"metadata": {"labels": labels}})
            capacity = (known.get("status") or {}).get("capacity") or {}
            self._known_resources |= {name for name in capacity if name.startswith("nvidia.com/")}
            value["status"] |= self._resources()
            value["status"]["conditions"] = self._conditions(_conditions_of(known))
            status = {"status": value["status"]}
            await self._kube.patch(self._path() + "/status", status, STRATEGIC_PATCH)
        self._posted = self._resources()
        lease = objects.lease(self.spec.name)
        await self._kube.create_once(
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease
        )
        await self._settle()

    async def stop(self) -> None:
        """Answer nobody any more."""
        await self._server.stop()

    async def renew_lease(self) -> None:
        """The heartbeat."""
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"
        lease = objects.lease(self.spec.name)
        await self._kube.patch(path + self.spec.name, {"spec": lease["spec"]})

    async def post_conditions(self) -> None:
        """The slow heartbeat: conditions with their time."""
        known = _conditions_of(await self._kube.get(self._path()))
        status = {"status": {"conditions": self._conditions(known)}}
        await self._kube.patch(self._path() + "/status", status, STRATEGIC_PATCH)

    def pod_changed(self, change: str, pod: Value) -> None:
        """A pod of this node was seen."""
        self._work.put_nowait(lambda: self._pod_changed(change, pod))

    def synced(self, pod_uids: set[str]) -> None:
        """All pods of the cluster were listed; these are their uids."""
        self._allocations.keep_only(pod_uids)

    def situations_changed(self, situations: list[Situation]) -> None:
        """The scripted situations are these now."""
        self._work.put_nowait(lambda: self._situations_changed(situations))

    def share_as_specified(self) -> None:
        """End of ``replicas_before``: the administrator has lowered the number of slots."""
        self._replicas = self.spec.replicas
        self._work.put_nowait(self._settle)

    def agent_ended(self, pod_uid: str, status: int) -> bool:
        """An agent's process is gone. Restarted when its pod is to run; False for a foreign pod."""
        pod = self._pods.get(pod_uid)
        if pod is None:
            return False
        if "deletionTimestamp" not in pod["metadata"]:
            log.warning(
                "%s: the agent ended with status %d, starting it again", self.spec.name, status
            )
            self._restarts[pod_uid] = self._restarts.get(pod_uid, 0) + 1
            loop = asyncio.get_running_loop()
            loop.call_later(RESTART_SECONDS, self._work.put_nowait, lambda: self._start(pod))
        return True

    @property
    def running_pods(self) -> int:
        """How many pods run here."""
        return len(self._pods)

    async def first_report(self) -> None:
        """Ask the agent once, so that it knows its cards and listens for XIDs before one is lost.

        Raises ``aiohttp.ClientError`` or ``TimeoutError`` when the agent doesn't answer.
        """
        for uid, pod in self._pods.items():
            if port := _agent_port(pod):
                token = make_token(self._secret.encode(), uid, self.spec.name, time.time())
                url = f"http://{pod['status']['podIP']}:{port}/v1/report"
                async with aiohttp.request("GET", url, headers={TOKEN_HEADER: token}) as response:
                    response.raise_for_status()

    def pod_resources(self) -> ListPodResourcesResponse:
        """Answer of the PodResources API: active pods and their devices."""
        return self._allocations.pod_resources(self._pods)

    async def _pod_changed(self, change: str, pod: Value) -> None:
        uid, phase = pod["metadata"]["uid"], pod["status"].get("phase")
        leaving = "deletionTimestamp" in pod["metadata"]
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
        ends_after = min(marks.duration(pod, marks.ENDS_AFTER), grace)
        if leaving and change != "DELETED" and ends_after and uid in self._pods:
            loop, path = asyncio.get_running_loop(), _pod_path(pod)
            end = functools.partial(self._kube.delete, path, uid, grace=0)
            loop.call_later(ends_after, self._work.put_nowait, end)
            self._pods[uid] = pod
        elif change == "DELETED" or phase in _DONE or leaving:
            known = self._pods.pop(uid, None)
            self._allocations.release(uid)
            if known and _agent_port(pod):
                self._agents.stop(uid)
            if leaving and change != "DELETED":
                await self._kube.delete(_pod_path(pod), uid, grace=0)
        elif uid in self._pods:
            self._pods[uid] = pod
        elif await self._admit(pod):
            self._pods[uid] = pod
            await self._start(pod)
        await self._settle()

    async def _admit(self, pod: Value) -> bool:
        """Give a pod its devices, or fail it as the kubelet does."""
        cards = [int(text) for text in (marks.mark(pod, marks.CARDS) or "").split(",") if text]
        refusal = self._allocations.allocate(pod, self._devices(), cards)
        if refusal:
            status = {"status": objects.refused(*refusal)}
            await self._kube.patch(_pod_path(pod) + "/status", status, STRATEGIC_PATCH)
        return refusal is None

    async def _start(self, pod: Value) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self._pods:
            return  # it left while it waited to be started again
        address = pod["status"].get("podIP") or self._address()
        if port := _agent_port(pod):
            self._agents.start(self._agent_job(uid, address, port))
            await _listens(address, port)
        restarts = self._restarts.get(uid, 0)
        if pod["status"].get("phase") == "Pending" or restarts:
            status = {"status": objects.running(pod, address, restarts)}
            self._pods[uid] = await self._kube.patch(
                _pod_path(pod) + "/status", status, STRATEGIC_PATCH
            )
        if runs_for := marks.mark(pod, marks.RUNS_FOR):
            loop = asyncio.get_running_loop()
            delay = marks.seconds(runs_for)
            loop.call_later(delay, self._work.put_nowait, lambda: self._succeed(pod))

    async def _read_pod(self, namespace: str, name: str) -> Value:
        return await self._kube.get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def _execute(self, pod: Value, command: list[str]) -> Result:
        present = hardware_file.read(self._places.hardware)
        held = self._allocations.held_by(self._rest).get(pod["metadata"]["uid"], [])
        return commands.run(command, present, held)

    async def _succeed(self, pod: Value) -> None:
        if pod["metadata"]["uid"] in self._pods:
            status = {"status": objects.succeeded(pod)}
            await self._kube.patch(_pod_path(pod) + "/status", status, STRATEGIC_PATCH)

    async def _situations_changed(self, situations: list[Situation]) -> None:
        uuids = {card.index: card.uuid for card in self._rest.cards}
        was_ready = not self._faults.not_ready
        if self._faults.update(situations, uuids.get):
            await self._settle()
            if was_ready is self._faults.not_ready:
                await self.post_conditions()

    def _conditions(self, before: list[Value]) -> list[Value]:
        return objects.conditions(before, ready=not self._faults.not_ready)

    async def _settle(self) -> None:
        """Write the hardware file and the node's resources when they have changed."""
        held = self._allocations.held_by(self._rest)
        loads = [share for uid in self._pods for share in shares(self._pods[uid], held[uid])]
        present = self._faults.put_on(put_on(self.spec, self._rest, loads))
        if (encoded := msgspec.json.encode(present)) != self._written:
            hardware_file.write(self._places.hardware, present)
            self._written = encoded
        self._allocations.save(self._places.checkpoint)
        resources = self._resources()
        if resources != self._posted:
            await self._kube.patch(self._path() + "/status", {"status": resources}, STRATEGIC_PATCH)
            self._posted = resources

    def _resources(self) -> Value:
        """Capacity and allocatable, with the names that linger (contracts.md 1.10)."""
        capacity, allocatable = plugin.advertised(self._devices(), self._known_resources)
        self._known_resources |= capacity.keys()
        own = objects.own_resources(self.spec)
        return {
            "capacity": own | _texts(capacity | self.spec.stale),
            "allocatable": own | _texts(allocatable | self.spec.stale),
        }

    def _devices(self) -> list[plugin.Device]:
        if not self.spec.plugin:
            return []
        return plugin.devices(self._rest, self._replicas, self._faults.sick_cards)

    def _agent_job(self, pod_uid: str, address: str, port: int) -> AgentJob:
        return AgentJob(
            node_name=self.spec.name,
            pod_uid=pod_uid,
            secret=self._secret,
            bind=address,
            port=port,
            host_root=str(self._places.host_root),
            kubelet_socket=str(self._places.socket),
            hardware=str(self._places.hardware),
        )

    def _address(self) -> str:
        used = {pod["status"].get("podIP") for pod in self._pods.values()}
        while True:
            address = f"127.1.{self._number}.{self._next_address}"
            self._next_address = self._next_address % 254 + 1
            if address not in used:
                return address

    def _path(self) -> str:
        return f"/api/v1/nodes/{self.spec.name}"


def _conditions_of(node: Value) -> list[Value]:
    return (node.get("status") or {}).get("conditions") or []


def _texts(numbers: dict[str, int]) -> dict[str, str]:
    return {name: str(number) for name, number in numbers.items()}


async def _listens(address: str, port: int) -> None:
    """Wait until the agent takes connections: its readiness probe."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READINESS_SECONDS):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection(address, port)
                    writer.close()
                    return
                await asyncio.sleep(0.02)


def _pod_path(pod: Value) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _agent_port(pod: Value) -> int | None:
    """The port of one of our agents: of the pod's container port named "agent"."""
    if pod["metadata"].get("labels", {}).get("app") != "gpuadmin-agent":
        return None
    ports = [port for each in pod["spec"]["containers"] for port in each.get("ports") or []]
    return next((p["containerPort"] for p in ports if p.get("name") == AGENT_PORT_NAME), None)
