"""Create, update and delete with a real API server's rules on metadata, versions and ends."""

from __future__ import annotations

import random
import uuid
from typing import Any

from simulator import marks
from simulator.api.defaults import with_defaults
from simulator.api.errors import MOVED, ApiError, already_exists, conflict, not_found
from simulator.api.kinds import NAMESPACES, PODS, Kind
from simulator.api.store import Document, Key, Store
from simulator.api.validation import require_object, validate, validate_pod_update

WITH_STATUS = ("Node", "Pod", "Namespace", "DaemonSet")
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # the suffixes of generateName, as upstream


class Objects:
    """The rules above the store. ``rng`` makes uids and name suffixes, so a seed repeats them."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self.store = store
        self._rng = rng

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
        value = {
            **with_defaults(kind, value),
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": self._new_metadata(kind, namespace, value),
        }
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
        value = require_object(body)
        self._check_identity(kind, key, before, value["metadata"])
        fixed = {name: before.value["metadata"].get(name) for name in _FIXED}
        metadata = {**value["metadata"], **fixed, "resourceVersion": str(before.version)}
        metadata = {name: entry for name, entry in metadata.items() if entry is not None}
        value = {**(before.value if status else value), "metadata": metadata} | (
            {"status": value.get("status", {})} if status else {}
        )
        if not status and kind.kind in WITH_STATUS:
            value["status"] = before.value.get("status", {})
        value |= {"apiVersion": kind.api_version, "kind": kind.kind}
        if value == before.value:
            return before
        validate(kind, value)
        if kind is PODS:
            validate_pod_update(before.value, value)
        if kind.kind == "DaemonSet" and value.get("spec") != before.value.get("spec"):
            metadata["generation"] += 1
        document = self.store.put(kind, key, value)
        if (
            metadata.get("deletionTimestamp")
            and kind is not PODS
            and not metadata.get("finalizers")
        ):
            return self.store.delete(kind, key)
        return document

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
        if metadata.get("deletionTimestamp") and grace >= metadata.get(
            "deletionGracePeriodSeconds", 0
        ):
            return before
        marked = {
            **metadata,
            "deletionTimestamp": marks.now(ago_seconds=-grace),
            "deletionGracePeriodSeconds": grace,
        }
        return self.store.put(kind, key, {**before.value, "metadata": marked})

    def _new_metadata(self, kind: Kind, namespace: str, value: dict[str, Any]) -> dict[str, Any]:
        metadata = dict(value["metadata"])
        prefix = metadata.get("generateName")
        if not metadata.get("name") and prefix:
            metadata["name"] = prefix + "".join(self._rng.choices(_ALPHABET, k=5))
        metadata["name"] = metadata.get("name", "")
        if namespace:
            metadata["namespace"] = namespace
        if kind.kind == "DaemonSet":
            metadata["generation"] = 1
        metadata["uid"] = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        metadata["creationTimestamp"] = marks.now(ago_seconds=marks.age_seconds(value))
        return metadata

    @staticmethod
    def _check_identity(kind: Kind, key: Key, before: Document, sent: dict[str, Any]) -> None:
        if sent.get("name") != key[1]:
            raise ApiError(400, "the name of the object does not match the name on the URL")
        if sent.get("uid") not in (None, "", before.value["metadata"]["uid"]):
            raise conflict(
                kind.resource, key[1], "Precondition failed: UID in precondition differs"
            )
        if sent.get("resourceVersion") not in (None, "", str(before.version)):
            raise conflict(kind.resource, key[1], MOVED)

    @staticmethod
    def _grace_seconds(kind: Kind, before: Document, options: dict[str, Any]) -> int:
        if kind is not PODS:
            return 0
        spec, status = before.value["spec"], before.value.get("status", {})
        if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
            return 0
        wanted = options.get("gracePeriodSeconds")
        return int(spec["terminationGracePeriodSeconds"] if wanted is None else wanted)
