"""A small cluster on the simulator's API: nodes and pods without kubelets, made as a test needs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.utils import timezone

from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.kube.client import KubeClient, path_of
from gpuadmin.kube.connection import from_kubeconfig
from gpuadmin.kube.errors import KubeError, NotFound
from gpuadmin.workloads.models import Pod

Json = dict[str, Any]


@contextmanager
def simulated_api(folder: Path) -> Iterator[KubeClient]:
    """The simulator's API server, without nodes of its own."""
    command = [sys.executable, "-m", "simulator.api", "--run-dir", str(folder)]
    process = subprocess.Popen(command)
    try:
        yield _when_ready(folder / "kubeconfig")
    finally:
        process.terminate()
        process.wait(10)


def _when_ready(kubeconfig: Path) -> KubeClient:
    deadline = time.monotonic() + 20
    while True:
        with suppress(KubeError):
            client = KubeClient(from_kubeconfig(kubeconfig))
            client.get("/version")
            return client
        if time.monotonic() > deadline:
            raise TimeoutError("the simulated API does not answer")
        time.sleep(0.05)


class World:
    """What a test puts into the cluster, and what it looks at from outside."""

    def __init__(self, client: KubeClient, cluster: Cluster) -> None:
        self.client, self.cluster = client, cluster

    def node(self, name: str, *, taints: list[Json] | None = None, gpus: int = 8) -> str:
        """A Ready node with cards, known to our database as well; its uid."""
        amount = {"nvidia.com/gpu": str(gpus), "pods": "110", "cpu": "64", "memory": "256Gi"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        made = self._post(
            path_of("api", "v1", "nodes"),
            {
                "metadata": {"name": name},
                "spec": {"taints": taints},
                "status": {"capacity": amount, "allocatable": amount, "conditions": [ready]},
            },
        )
        uid = str(made["metadata"]["uid"])
        now = timezone.now()
        Node.objects.create(cluster=self.cluster, uid=uid, name=name, observed_at=now)
        return uid

    def pod(
        self,
        name: str,
        node: str = "",
        *,
        gpu: int = 0,
        tolerations: list[Json] | None = None,
        owner: tuple[str, str] | None = ("Job", "training"),
        namespace: str = "team",
        phase: str = "Running",
    ) -> str:
        """A pod, bound to the node where one is given, and stored as the watcher does; its uid."""
        limits = {"nvidia.com/gpu": str(gpu)} if gpu else {}
        owners = [
            {"apiVersion": "v1", "kind": kind, "name": known, "uid": "u", "controller": True}
            for kind, known in ([owner] if owner else [])
        ]
        spec: Json = {
            "containers": [{"name": "main", "image": "app", "resources": {"limits": limits}}],
            "tolerations": tolerations or [],
            "schedulerName": "none",
        }
        if node:
            spec["nodeName"] = node
        made = self._post(
            path_of("api", "v1", "namespaces", namespace, "pods"),
            {"metadata": {"name": name, "ownerReferences": owners}, "spec": spec},
        )
        if node:
            path = path_of("api", "v1", "namespaces", namespace, "pods", name, "status")
            self.client.patch(path, {"status": {"phase": phase}})
        uid = str(made["metadata"]["uid"])
        if gpu:
            Pod.objects.create(
                cluster=self.cluster,
                uid=uid,
                namespace=namespace,
                name=name,
                node_name=node,
                phase=phase if node else "Pending",
                owner_kind=owner[0] if owner else "",
                owner_name=owner[1] if owner else "",
                requests={"nvidia.com/gpu": gpu},
                tolerations=tolerations or [],
                observed_at=timezone.now(),
            )
        return uid

    def taints(self, name: str) -> list[Json]:
        """The node's taints as the API has them."""
        found: list[Json] = self.get_node(name)["spec"].get("taints") or []
        return found

    def get_node(self, name: str) -> Json:
        found: Json = json.loads(self.client.get(path_of("api", "v1", "nodes", name)))
        return found

    def write_taints(self, name: str, taints: list[Json]) -> None:
        """What another writer does."""
        self.client.patch(path_of("api", "v1", "nodes", name), {"spec": {"taints": taints}})

    def label(self, name: str, **labels: str) -> None:
        """Something of the node that is none of our business moves its version."""
        self.client.patch(path_of("api", "v1", "nodes", name), {"metadata": {"labels": labels}})

    def replace_node(self, name: str) -> str:
        """Another machine under the same name; its uid. Our database does not know it yet."""
        self.client.delete(path_of("api", "v1", "nodes", name))
        made = self._post(path_of("api", "v1", "nodes"), {"metadata": {"name": name}})
        return str(made["metadata"]["uid"])

    def end_pod(self, name: str, namespace: str = "team") -> None:
        """What a kubelet does in the end: the pod is gone."""
        path = path_of("api", "v1", "namespaces", namespace, "pods", name)
        with suppress(NotFound):
            self.client.delete(path, {"gracePeriodSeconds": 0})

    def clear(self) -> None:
        for pod in self._items("/api/v1/pods"):
            self.end_pod(pod["metadata"]["name"], pod["metadata"]["namespace"])
        for node in self._items("/api/v1/nodes"):
            self.client.delete(path_of("api", "v1", "nodes", node["metadata"]["name"]))

    def make_namespaces(self, *names: str) -> None:
        for name in names:
            with suppress(KubeError):
                self._post(path_of("api", "v1", "namespaces"), {"metadata": {"name": name}})

    def _items(self, path: str) -> list[Json]:
        return self.client.list_all(path, lambda raw: json.loads(bytes(raw))).items

    def _post(self, path: str, body: Json) -> Json:
        made: Json = json.loads(self.client.post(path, body))
        return made
