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


NAMESPACES = Kind("", "v1", "namespaces", "Namespace", False, ("ns",))
NODES = Kind("", "v1", "nodes", "Node", False, ("no",))
PODS = Kind("", "v1", "pods", "Pod", True, ("po",))
EVENTS = Kind("", "v1", "events", "Event", True, ("ev",))
CONFIGMAPS = Kind("", "v1", "configmaps", "ConfigMap", True, ("cm",))
DAEMONSETS = Kind("apps", "v1", "daemonsets", "DaemonSet", True, ("ds",))
BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ("pdb",))
KINDS = (
    *(NAMESPACES, NODES, PODS, EVENTS, CONFIGMAPS, DAEMONSETS, BUDGETS),
    Kind("", "v1", "secrets", "Secret", True),
    Kind("coordination.k8s.io", "v1", "leases", "Lease", True),
    Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False),
    Kind(
        "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False
    ),
)

BY_PATH = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
