"""The DaemonSet controller: one pod on each node that fits, and again when it is deleted."""

from __future__ import annotations

from simulator.api.kinds import DAEMONSETS, PODS
from simulator.api.objects import Objects
from simulator.control.matching import Value, is_ready, selects, untolerated

_CONDITIONS = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
_TOLERATIONS = [
    *(
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
        for key in ("not-ready", "unreachable")
    ),
    *(
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoSchedule"}
        for key in _CONDITIONS
    ),
]


def keep_daemons(objects: Objects, nodes: list[Value], pods: list[Value]) -> None:
    """Create the missing pods, delete those on nodes that do not fit any more, write status."""
    for key, document in objects.store.list(DAEMONSETS):
        own = [pod for pod in pods if _controlled_by(pod, document.value)]
        spec = _pod_spec(document.value)
        fitting = {node["metadata"]["name"] for node in nodes if _fits(spec, node)}
        # As upstream: a pod that is there is ended by NoExecute only.
        staying = {n["metadata"]["name"] for n in nodes if _fits(spec, n, effects=("NoExecute",))}
        placed = {_node_of(pod) for pod in own}
        for name in sorted(fitting - placed):
            objects.create(PODS, key[0], _pod(document.value, spec, name))
        for pod in own:
            done = pod.get("status", {}).get("phase") in ("Failed", "Succeeded")
            if (done or _node_of(pod) not in staying) and "deletionTimestamp" not in pod[
                "metadata"
            ]:
                objects.delete(PODS, (key[0], pod["metadata"]["name"]), {})
        ready = sum(is_ready(pod) for pod in own if _node_of(pod) in fitting)
        _write_status(objects, document.value, len(fitting), len(placed & fitting), ready)


def _write_status(objects: Objects, daemon: Value, desired: int, current: int, ready: int) -> None:
    key = (daemon["metadata"]["namespace"], daemon["metadata"]["name"])
    status = {
        "desiredNumberScheduled": desired,
        "currentNumberScheduled": current,
        "updatedNumberScheduled": current,
        "numberReady": ready,
        "numberAvailable": ready,
        "numberUnavailable": desired - ready,
        "numberMisscheduled": 0,
        "observedGeneration": daemon["metadata"]["generation"],
    }
    fresh = objects.get(DAEMONSETS, key).value
    objects.update(DAEMONSETS, key, {**fresh, "status": status}, status=True)


def _controlled_by(pod: Value, daemon: Value) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    return any(each["uid"] == daemon["metadata"]["uid"] for each in owners)


def _fits(
    spec: Value, node: Value, *, effects: tuple[str, ...] = ("NoSchedule", "NoExecute")
) -> bool:
    taints = (node.get("spec") or {}).get("taints") or []
    return selects(spec, node) and not untolerated(spec, taints, effects)


def _pod_spec(daemon: Value) -> Value:
    spec = dict(daemon["spec"]["template"]["spec"])
    return {**spec, "tolerations": [*(spec.get("tolerations") or []), *_TOLERATIONS]}


def _pod(daemon: Value, spec: Value, node_name: str) -> Value:
    """Pinned by an affinity on the node's name, as upstream; the scheduler binds it."""
    metadata = daemon["metadata"]
    template = daemon["spec"]["template"].get("metadata") or {}
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "metadata": {
            "generateName": f"{metadata['name']}-",
            "labels": dict(template.get("labels") or {}),
            "annotations": dict(template.get("annotations") or {}),
            "ownerReferences": [owner],
        },
        "spec": {**spec, "affinity": affinity},
    }


def _node_of(pod: Value) -> str:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
