"""What the cluster needs before its tenants: namespaces, the agents' secret, the DaemonSets."""

from __future__ import annotations

import base64
import socket
from collections.abc import Sequence

from simulator.faults.situations import CONFIGMAP_KEY, DEMO, NAMESPACE, Situation, to_data
from simulator.nodes.client import Kube, KubeError, Value

AGENT_NAMESPACE = "gpuadmin"
AGENT = "gpuadmin-agent"
SECRET = "gpuadmin-agent-token"  # noqa: S105 - the Secret's name
PLUGIN = "nvidia-device-plugin-daemonset"
_DAEMONSETS = "/apis/apps/v1/namespaces/{}/daemonsets"
_TOLERATIONS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


async def prepare(kube: Kube, secret: str) -> str:
    """Make what is missing. Answers the agents' secret: the one that is there already wins."""
    for namespace in (AGENT_NAMESPACE, NAMESPACE, "kube-node-lease"):
        await namespace_once(kube, namespace)
    data = {"token": base64.b64encode(secret.encode()).decode()}
    value = {"metadata": {"name": SECRET}, "type": "Opaque", "data": data}
    path = f"/api/v1/namespaces/{AGENT_NAMESPACE}/secrets"
    if await kube.create_once(path, value) is None:
        known = await kube.get(f"{path}/{SECRET}")
        secret = base64.b64decode(known["data"]["token"]).decode()
    await kube.create_once(_DAEMONSETS.format("kube-system"), _plugin())
    await kube.create_once(_DAEMONSETS.format(AGENT_NAMESPACE), _agent(_free_port()))
    return secret


async def namespace_once(kube: Kube, name: str) -> None:
    """Create a namespace that isn't there."""
    await kube.create_once("/api/v1/namespaces", {"metadata": {"name": name}})


async def begin_situations(kube: Kube, situations: Sequence[Situation]) -> None:
    """Write the demo's own situations, where there are none yet."""
    namespace, name = CONFIGMAP_KEY
    value = {"metadata": {"name": name}, "data": to_data(situations, DEMO)}
    await kube.create_once(f"/api/v1/namespaces/{namespace}/configmaps", value)


async def cordon(kube: Kube, node_name: str) -> None:
    """Close a node; one that is gone is no error."""
    try:
        await kube.patch(f"/api/v1/nodes/{node_name}", {"spec": {"unschedulable": True}})
    except KubeError as error:
        if error.code != 404:
            raise


def _daemonset(name: str, labels: dict[str, str], spec: Value) -> Value:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"tolerations": _TOLERATIONS, **spec},
            },
        },
    }


def _plugin() -> Value:
    """NVIDIA's device plugin; the MIG manager stops it through this label (contracts.md 3.3)."""
    container = {
        "name": "nvidia-device-plugin",
        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
    }
    spec = {
        "nodeSelector": {"nvidia.com/gpu.deploy.device-plugin": "true"},
        "containers": [container],
    }
    return _daemonset(PLUGIN, {"app": PLUGIN}, spec)


def _agent(port: int) -> Value:
    """Our agent, on every GPU node but those that are kept without one."""
    container = {
        "name": "agent",
        "image": "gpuadmin/agent:0.1.0",
        "ports": [{"name": "agent", "containerPort": port}],
    }
    without = {"key": "gpuadmin.io/agent", "operator": "NotIn", "values": ["false"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [without]}]}
    spec = {
        "nodeSelector": {"nvidia.com/gpu.present": "true"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "terminationGracePeriodSeconds": 5,
        "containers": [container],
    }
    return _daemonset(AGENT, {"app": AGENT}, spec)


def _free_port() -> int:
    """A port that nobody listens on at any loopback address: each agent has an address of 127.1."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
