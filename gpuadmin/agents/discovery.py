"""Which pods are our agents.

An agent is a pod in our namespace whose controller is our DaemonSet, by uid. Anything else that
bears our label or name gets no request: a label alone would hand the token to any tenant.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from agent.contract.report import PORT_NAME
from gpuadmin.kube import structs
from gpuadmin.kube.guard import forbidden


@dataclass(frozen=True)
class AgentPod:
    """One agent's pod. ``address`` is None until the pod runs; ``problem`` says why."""

    pod_uid: str
    pod_name: str
    node_name: str
    address: str | None
    port: int | None
    problem: str


def daemonset_uid(pod: structs.Pod) -> str | None:
    """The uid of the DaemonSet that controls the pod; None when none does."""
    owners = pod.metadata.owner_references or []
    return next((o.uid for o in owners if o.controller and o.kind == "DaemonSet"), None)


def agent_pod(
    pod: structs.Pod, *, namespace: str, ours: str | None, loopback: bool = False
) -> AgentPod | None:
    """None when the pod is not of our DaemonSet, whose uid is ``ours``.

    The port is read from its container port named "agent". ``loopback``: an agent may have an
    address of this machine, as simulated ones do.
    """
    meta, spec, status = pod.metadata, pod.spec, pod.status
    if meta.namespace != namespace or spec is None or not spec.node_name or not ours:
        return None
    if daemonset_uid(pod) != ours:
        return None
    port = _named_port(spec)
    running = status is not None and status.phase == "Running" and meta.deletion_timestamp is None
    address, astray = _address(status.pod_ip if status else None, loopback=loopback)
    address = address if running else None
    return AgentPod(
        pod_uid=meta.uid,
        pod_name=meta.name,
        node_name=spec.node_name,
        address=address,
        port=port,
        problem=astray if running and astray else _problem(pod, address, port),
    )


def _address(text: str | None, *, loopback: bool) -> tuple[str | None, str]:
    """A pod IP that may be asked, and why it may not: a kubelet could write anything there, and a
    request that it sends astray would carry a token and come from inside (SSRF).
    """
    try:
        found = ip_address(text or "")
    except ValueError:
        return None, ""
    if why := forbidden(found, loopback=loopback):
        return None, f"its pod claims the address {found}, {why}: nobody is asked there"
    return str(found), ""


def _named_port(spec: structs.PodSpec) -> int | None:
    ports = [p for container in spec.containers or [] for p in container.ports or []]
    named = (p.container_port for p in ports if p.name == PORT_NAME)
    return next((port for port in named if 0 < port < 65536), None)


def _problem(pod: structs.Pod, address: str | None, port: int | None) -> str:
    if pod.metadata.deletion_timestamp:
        return "its pod is being deleted"
    if address is None:
        return f"its pod is {waiting_reason(pod) or 'not running yet'}"
    return "" if port else f'its pod has no container port named "{PORT_NAME}"'


def waiting_reason(pod: structs.Pod) -> str:
    """Why a pod doesn't run, in the API's word: ImagePullBackOff, Evicted, Pending …"""
    status = pod.status
    if status is None:
        return ""
    for container in [*(status.init_container_statuses or []), *(status.container_statuses or [])]:
        waiting = container.state.waiting if container.state else None
        if waiting and waiting.reason and waiting.reason != "PodInitializing":
            return waiting.reason
    return status.reason or ("" if status.phase == "Running" else status.phase or "")
