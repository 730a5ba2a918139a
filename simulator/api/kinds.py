"""The kinds that are served. Adding one is a line here and rows in the README's allow-list."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """``resource`` is the plural with its group, as kubectl prints it: ``daemonsets.apps``."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short: tuple[str, ...] = ()

    @property
    def resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


KINDS = (
    Kind("", "v1", "namespaces", "Namespace", False, ("ns",)),
    Kind("", "v1", "nodes", "Node", False, ("no",)),
    Kind("", "v1", "pods", "Pod", True, ("po",)),
    Kind("", "v1", "events", "Event", True, ("ev",)),
    Kind("", "v1", "configmaps", "ConfigMap", True, ("cm",)),
    Kind("", "v1", "secrets", "Secret", True),
    Kind("apps", "v1", "daemonsets", "DaemonSet", True, ("ds",)),
    Kind("coordination.k8s.io", "v1", "leases", "Lease", True),
    Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False),
    Kind(
        "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False
    ),
)

BY_PATH = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
BY_RESOURCE = {kind.resource: kind for kind in KINDS}
NODES = BY_RESOURCE["nodes"]
PODS = BY_RESOURCE["pods"]
EVENTS = BY_RESOURCE["events"]
NAMESPACES = BY_RESOURCE["namespaces"]
CONFIGMAPS = BY_RESOURCE["configmaps"]
DAEMONSETS = BY_RESOURCE["daemonsets.apps"]
