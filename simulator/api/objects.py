"""Create, update and delete with a real API server's rules on metadata, versions and ends."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from typing import Any

from simulator import marks
from simulator.api.defaults import with_defaults
from simulator.api.errors import MOVED, REPLACED, ApiError, already_exists, conflict, not_found
from simulator.api.kinds import BUDGETS, DAEMONSETS, NAMESPACES, NODES, PODS, Kind
from simulator.api.store import Document, Key, Store
from simulator.api.validation import require_object, validate, validate_pod_update

WITH_STATUS = (NODES, PODS, DAEMONSETS, BUDGETS)
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # the suffixes of generateName, as upstream


class Objects:
    """The rules above the store. ``rng`` makes uids and name suffixes, so a seed repeats them."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self.store = store
        self._rng = rng
        self._space = uuid.UUID(int=rng.getrandbits(128), version=4)
        self._made = Counter[tuple[str, str, str]]()

    def get(self, kind: Kind, key: Key) -> Document:
        """Raises 404."""
        document = self.store.get(kind, key)
        if document is None:
            raise not_found(kind.resource, key[1])
        return document

    def create(self, kind: Kind, namespace: str, body: object) -> Document:
        """Raises 400, 404 (namespace), 409 or 422."""
        value = require_object(body)
        metadata = value["metadata"]
        if metadata.get("namespace") not in (None, "", namespace):
            raise ApiError(400, "the namespace of the object does not match that of the request")
        if metadata.get("resourceVersion"):
            raise ApiError(400, "resourceVersion should not be set on objects to be created")
        if namespace and not self.store.get(NAMESPACES, ("", namespace)):
            raise not_found("namespaces", namespace)
        made = self._new_metadata(kind, namespace, value)
        head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": made}
        value = with_defaults(kind, value) | head
        validate(kind, value)
        key = (namespace, value["metadata"]["name"])
        if self.store.get(kind, key):
            raise already_exists(kind.resource, key[1])
        return self.store.put(kind, key, value)

    def update(self, kind: Kind, key: Key, body: object, *, status: bool) -> Document:
        """Replace an object, or its status only. Raises 400, 404, 409 or 422.

        A write that changes nothing makes no new version, as upstream.
        """
        before = self.get(kind, key)
        sent = require_object(body)
        self._check_identity(kind, key, before, sent["metadata"])
        fixed = {name: before.value["metadata"].get(name) for name in _FIXED}
        metadata = {**sent["metadata"], **fixed, "resourceVersion": str(before.version)}
        metadata = {name: entry for name, entry in metadata.items() if entry is not None}
        main, own_status = (before.value, sent) if status else (sent, before.value)
        value = main | {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        if kind in WITH_STATUS:
            value["status"] = own_status.get("status", {})
        if value == before.value:
            return before
        validate(kind, value)
        if kind is PODS:
            validate_pod_update(before.value, value)
        document = self.store.put(kind, key, value)
        ends = "deletionTimestamp" in metadata and kind is not PODS
        return self.store.delete(kind, key) if ends and not metadata.get("finalizers") else document

    def delete(self, kind: Kind, key: Key, options: dict[str, Any]) -> Document:
        """Delete at once, or mark: a pod that runs leaves when its kubelet says so.

        ``options`` is a DeleteOptions. Raises 404, or 409 when a precondition does not hold.
        """
        before = self.get(kind, key)
        metadata = before.value["metadata"]
        wanted = options.get("preconditions") or {}
        for name in ("uid", "resourceVersion"):
            if wanted.get(name) not in (None, metadata[name]):
                why = f"Precondition failed: {name} in precondition: {wanted[name]}"
                raise conflict(kind.resource, key[1], f"{why}, in object meta: {metadata[name]}")
        grace = self._grace_seconds(kind, before, options)
        if not grace and not metadata.get("finalizers"):
            return self.store.delete(kind, key)
        if grace >= metadata.get("deletionGracePeriodSeconds", float("inf")):
            return before  # a second delete can only shorten the time
        marked = metadata | {"deletionGracePeriodSeconds": grace}
        marked["deletionTimestamp"] = marks.now(ago_seconds=-grace)
        return self.store.put(kind, key, {**before.value, "metadata": marked})

    def _new_metadata(self, kind: Kind, namespace: str, value: dict[str, Any]) -> dict[str, Any]:
        metadata = dict(value["metadata"])
        prefix = metadata.get("generateName")
        if not metadata.get("name") and prefix:
            metadata["name"] = prefix + "".join(self._rng.choices(_ALPHABET, k=5))
        metadata["name"] = metadata.get("name", "")
        if namespace:
            metadata["namespace"] = namespace
        if kind in (PODS, DAEMONSETS, BUDGETS):
            metadata["generation"] = 1
        metadata["uid"] = self._uid(kind, namespace, metadata["name"])
        metadata["creationTimestamp"] = marks.now(ago_seconds=marks.age_seconds(value))
        return metadata

    def _uid(self, kind: Kind, namespace: str, name: str) -> str:
        """The nth object of a name has one uid in every run of a seed, in whatever order they come:
        a demo that starts again is the same cluster, and its history goes on."""
        key = (kind.resource, namespace, name)
        self._made[key] += 1
        return str(uuid.uuid5(self._space, "/".join((*key, str(self._made[key])))))

    @staticmethod
    def _check_identity(kind: Kind, key: Key, before: Document, sent: dict[str, Any]) -> None:
        if sent.get("name") != key[1]:
            raise ApiError(400, "the name of the object does not match the name on the URL")
        for field, why in (("uid", REPLACED), ("resourceVersion", MOVED)):
            if sent.get(field) not in (None, "", before.value["metadata"][field]):
                raise conflict(kind.resource, key[1], why)

    @staticmethod
    def _grace_seconds(kind: Kind, before: Document, options: dict[str, Any]) -> int:
        if kind is not PODS:
            return 0
        spec, status = before.value["spec"], before.value.get("status", {})
        if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
            return 0
        wanted = options.get("gracePeriodSeconds")
        return int(spec["terminationGracePeriodSeconds"] if wanted is None else wanted)
