"""All simulated nodes in one event loop: one watch on pods, one on situations, one heartbeat."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import aiohttp

from simulator.faults.situations import CONFIGMAP_KEY, read_configmap
from simulator.fleet import system
from simulator.fleet.inventory import NodeSpec
from simulator.fleet.tenants import NAMESPACES, TROUBLE, Tenant, pod, tenants
from simulator.nodes import podresources
from simulator.nodes.agents import AgentProcesses
from simulator.nodes.client import Kube, KubeError
from simulator.nodes.kubelet import Kubelet
from simulator.nodes.places import Places

LEASE_SECONDS = 10.0
CONDITIONS_EVERY = 30  # leases: conditions are written every five minutes, as a real kubelet does
STARTED_SECONDS = 30.0

log = logging.getLogger(__name__)


class Fleet:
    """The nodes of one cluster."""

    def __init__(
        self,
        kube: Kube,
        specs: list[tuple[int, NodeSpec]],
        run_dir: Path,
        sockets: Path,
        agents: AgentProcesses,
    ) -> None:
        """``specs``: (number, node); the number makes the node's pod addresses."""
        self._kube = kube
        self._agents = agents
        self._places = {spec.name: Places(run_dir, sockets, spec.name) for _, spec in specs}
        self._kubelets = {
            spec.name: Kubelet(kube, spec, number, self._places[spec.name], agents)
            for number, spec in specs
        }

    async def run(self, secret: str, *, with_tenants: bool, ready: Path) -> None:
        """Start the cluster, write ``ready`` when all runs, and keep it up until cancelled."""
        secret = await system.prepare(self._kube, secret)
        await asyncio.gather(*(each.register(secret) for each in self._kubelets.values()))
        servers = [
            await podresources.serve(self._places[name].socket, kubelet.pod_resources)
            for name, kubelet in self._kubelets.items()
        ]
        self._agents.on_end(self._agent_ended)
        jobs: list[Coroutine[Any, Any, None]] = [each.run() for each in self._kubelets.values()]
        jobs += [self._follow_pods(), self._follow_situations(), self._beat()]
        try:
            async with asyncio.TaskGroup() as group:
                for job in jobs:
                    group.create_task(job)
                await self._populate(with_tenants=with_tenants)
                ready.touch()
        finally:
            await asyncio.gather(*(server.stop(0) for server in servers))
            await asyncio.gather(*(kubelet.stop() for kubelet in self._kubelets.values()))

    async def _populate(self, *, with_tenants: bool) -> None:
        """Tenants first, then what they ran into: fewer slots, closed nodes, a lost card."""
        everybody = tenants() if with_tenants else []
        placed = [each for each in everybody if each.node in self._kubelets]
        if with_tenants:
            for namespace in NAMESPACES:
                await system.namespace_once(self._kube, namespace)
        await self._create(placed)
        agents = sum(kubelet.spec.agent for kubelet in self._kubelets.values())
        plugins = sum(kubelet.spec.plugin for kubelet in self._kubelets.values())
        await self._wait_for_pods(len(placed) + agents + plugins)
        for kubelet in self._kubelets.values():
            kubelet.share_as_specified()
            if with_tenants and kubelet.spec.cordoned:
                await system.cordon(self._kube, kubelet.spec.name)
        await self._create([each for each in everybody if not each.node])
        trouble = [each for each in TROUBLE if with_tenants and each.node in self._kubelets]
        for each in trouble:
            await self._kubelets[each.node].first_report()
        await system.begin_situations(self._kube, trouble)

    async def _create(self, some: list[Tenant]) -> None:
        for tenant in some:
            path = f"/api/v1/namespaces/{tenant.namespace}/pods"
            await self._kube.create_once(path, pod(tenant))

    async def _wait_for_pods(self, number: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STARTED_SECONDS):
                while sum(each.running_pods for each in self._kubelets.values()) < number:
                    await asyncio.sleep(0.05)
                return
        running = sum(each.running_pods for each in self._kubelets.values())
        log.warning("%d of %d pods run after %.0f s", running, number, STARTED_SECONDS)

    async def _follow_pods(self) -> None:
        uids: set[str] = set()
        async for change, value in self._kube.follow("/api/v1/pods"):
            if change == "SYNCED":
                for kubelet in self._kubelets.values():
                    kubelet.synced(uids)
                continue
            uid = value["metadata"]["uid"]
            (uids.discard if change == "DELETED" else uids.add)(uid)
            kubelet_of = self._kubelets.get(value["spec"].get("nodeName", ""))
            if kubelet_of:
                kubelet_of.pod_changed(change, value)

    async def _follow_situations(self) -> None:
        namespace, name = CONFIGMAP_KEY
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        async for change, value in self._kube.follow(path):
            if change == "SYNCED" or value["metadata"]["name"] != name:
                continue
            situations = [] if change == "DELETED" else read_configmap(value)
            for kubelet in self._kubelets.values():
                kubelet.situations_changed(situations)

    async def _beat(self) -> None:
        beats = 0
        while True:
            beats += 1
            slow = beats % CONDITIONS_EVERY == 0
            for kubelet in self._kubelets.values():
                try:
                    await kubelet.renew_lease()
                    if slow:
                        await kubelet.post_conditions()
                except (KubeError, aiohttp.ClientError, TimeoutError) as error:
                    log.warning("%s: heartbeat: %s", kubelet.spec.name, error)
            await asyncio.sleep(LEASE_SECONDS)

    def _agent_ended(self, pod_uid: str, status: int) -> None:
        for kubelet in self._kubelets.values():
            if kubelet.agent_ended(pod_uid, status):
                return
