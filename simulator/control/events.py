"""Kubernetes Events of the controllers: one per pod and reason, written when its text changes."""

from __future__ import annotations

from simulator import marks
from simulator.api.kinds import EVENTS
from simulator.api.objects import Objects
from simulator.control.matching import Value


def record(objects: Objects, source: str, pod: Value, type_: str, reason: str, text: str) -> None:
    """Write or renew the Event; nothing is written while its text stays the same."""
    metadata = pod["metadata"]
    key = (metadata["namespace"], f"{metadata['name']}.{reason.lower()}.{metadata['uid'][:8]}")
    known = objects.store.get(EVENTS, key)
    if known and known.value["message"] == text:
        return
    if known:
        changed = {"message": text, "lastTimestamp": marks.now()}
        again = {**known.value, **changed, "count": known.value["count"] + 1}
        objects.update(EVENTS, key, again, status=False)
        return
    involved = {
        "kind": "Pod",
        "apiVersion": "v1",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    body = {
        "metadata": {"name": key[1]},
        "involvedObject": involved,
        "type": type_,
        "reason": reason,
        "message": text,
        "count": 1,
        "source": {"component": source},
        "firstTimestamp": marks.now(),
        "lastTimestamp": marks.now(),
    }
    objects.create(EVENTS, key[0], body)
