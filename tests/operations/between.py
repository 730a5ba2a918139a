"""What happens around a run's writes, and what a run leaves in the audit."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from gpuadmin.accounts.models import AuditEntry
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.errors import Unreachable

TEAM = {"key": "team", "value": "a", "effect": "NoSchedule"}
MAINT = {"key": "maint", "effect": "NoSchedule"}
AUTOSCALER = {
    "key": "ToBeDeletedByClusterAutoscaler",
    "effect": "NoSchedule",
    "timeAdded": "2026-11-01T00:00:00Z",
}


class Killed(BaseException):
    """The worker process died here."""


def nothing() -> None:
    pass


def die() -> None:
    raise Killed


def away() -> None:
    raise Unreachable("The API server at https://k can't be reached: refused")


class Between(KubeClient):
    """A client before whose writes, or after them, something else happens.

    ``only`` is the one node around whose writes it happens. ``writer`` is who changed the taints
    last by the word of a real API server's metadata.managedFields, which the simulator has not.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        before: Callable[[], object] = nothing,
        after: Callable[[], object] = nothing,
        only: str = "",
        writer: str = "",
    ) -> None:
        super().__init__(client.connection)
        self.before, self.after, self.patches = before, after, 0
        self.only, self.writer = only, writer

    def patch(self, path: str, body: object, **more: Any) -> bytes:
        if not path.endswith(self.only):
            return super().patch(path, body, **more)
        self.patches += 1
        self.before()
        answer = super().patch(path, body, **more)
        self.after()
        return answer

    def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        answer = super().get(path, params)
        if not (self.writer and path.startswith("/api/v1/nodes/")):
            return answer
        node = json.loads(answer)
        node["metadata"]["managedFields"] = [
            {"manager": "kubelet", "fieldsV1": {"f:status": {}}},
            {"manager": self.writer, "fieldsV1": {"f:spec": {"f:taints": {}}}},
        ]
        return json.dumps(node).encode()


def writes(node: str) -> list[AuditEntry]:
    """The audit rows of writes to a node."""
    found = AuditEntry.objects.filter(object_kind="node", object_name=node, outcome="done")
    return list(found.order_by("id"))
