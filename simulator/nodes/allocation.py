"""Which pod holds which device: the kubelet's device manager, with its checkpoint file."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import msgspec

from agent.protos.podresources_pb2 import (
    ContainerDevices,
    ContainerResources,
    ListPodResourcesResponse,
    PodResources,
)
from simulator.hardware import Hardware
from simulator.nodes.client import Value
from simulator.nodes.plugin import Device, choose, device_of

Held = dict[str, dict[str, dict[str, list[str]]]]  # pod uid → container → resource → device ids


class Allocations:
    """Devices given to pods. ``restored``: read from a checkpoint of an earlier run."""

    def __init__(self, held: Held, *, restored: bool) -> None:
        self._held = held
        self._saved = restored and msgspec.json.encode(held)
        self.restored = restored

    @classmethod
    def load(cls, checkpoint: Path) -> Self:
        """From the file, or empty without one."""
        try:
            return cls(msgspec.json.decode(checkpoint.read_bytes(), type=Held), restored=True)
        except FileNotFoundError:
            return cls({}, restored=False)

    def save(self, checkpoint: Path) -> None:
        """Write the file when something changed."""
        encoded = msgspec.json.encode(self._held)
        if encoded != self._saved:
            checkpoint.write_bytes(encoded)
            self._saved = encoded

    def allocate(
        self, pod: Value, found: list[Device], cards: list[int]
    ) -> tuple[str, int, int] | None:
        """Give a pod what its containers ask for; keep what it has already.

        Answers None when done, else (resource, wanted, available) of what could not be had.
        ``cards``: only devices of these cards, when there are any in the list.
        """
        uid = pod["metadata"]["uid"]
        if uid in self._held:
            return None
        given: dict[str, dict[str, list[str]]] = {}
        taken = self._ids()
        names = {device.resource for device in found}
        for container in _lasting_containers(pod):
            for resource, wanted in _limits(container).items():
                if not resource.startswith("nvidia.com/"):
                    continue
                chosen = choose(found, taken, resource, wanted, cards)
                if chosen is None or resource not in names:
                    free = [d for d in found if d.resource == resource and d.id not in taken]
                    return resource, wanted, sum(device.healthy for device in free)
                ids = [device.id for device in chosen]
                taken.update(ids)
                given.setdefault(container["name"], {})[resource] = ids
        self._held[uid] = given
        return None

    def release(self, pod_uid: str) -> None:
        """A pod is over."""
        self._held.pop(pod_uid, None)

    def keep_only(self, pod_uids: set[str]) -> None:
        """Forget pods that are gone, which a checkpoint may still hold."""
        self._held = {uid: held for uid, held in self._held.items() if uid in pod_uids}

    def held_by(self, hardware: Hardware) -> dict[str, list[Device]]:
        """Pod uid → its devices, advertised still or not."""
        return {
            uid: [
                device_of(hardware, resource, id_)
                for resources in containers.values()
                for resource, ids in resources.items()
                for id_ in ids
            ]
            for uid, containers in self._held.items()
        }

    def pod_resources(self, pods: dict[str, Value]) -> ListPodResourcesResponse:
        """The PodResources answer for these pods."""
        return ListPodResourcesResponse(
            pod_resources=[
                PodResources(
                    name=pod["metadata"]["name"],
                    namespace=pod["metadata"]["namespace"],
                    containers=[
                        ContainerResources(
                            name=container["name"],
                            devices=[
                                ContainerDevices(resource_name=resource, device_ids=ids)
                                for resource, ids in self._held[uid]
                                .get(container["name"], {})
                                .items()
                            ],
                        )
                        for container in _lasting_containers(pod)
                    ],
                )
                for uid, pod in pods.items()
            ]
        )

    def _ids(self) -> set[str]:
        return {
            id_
            for containers in self._held.values()
            for resources in containers.values()
            for ids in resources.values()
            for id_ in ids
        }


def _lasting_containers(pod: Value) -> list[Value]:
    """Containers that PodResources lists: the app's, and sidecars (contracts.md 5.1)."""
    spec = pod["spec"]
    sidecars = [e for e in spec.get("initContainers") or [] if e.get("restartPolicy") == "Always"]
    return [*sidecars, *spec["containers"]]


def _limits(container: Value) -> dict[str, int]:
    limits = (container.get("resources") or {}).get("limits") or {}
    return {name: int(text) for name, text in limits.items() if name.startswith("nvidia.com/")}
