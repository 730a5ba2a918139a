"""What a scripted situation forbids the account. There is no RBAC engine: all else is allowed."""

from __future__ import annotations

from typing import Any

from simulator.api.errors import ApiError
from simulator.api.store import Store
from simulator.faults.following import follow
from simulator.faults.situations import Denied, Situation


class Denials:
    """Follows the situations' ConfigMap in the store of the simulated API."""

    def __init__(self, store: Store) -> None:
        self._denied: frozenset[Denied] = frozenset()
        follow(store, self._take)

    def check(self, user: str, verb: str, resource: str, subresource: str, name: str) -> None:
        """Raises 403 in a real API server's words."""
        if self._allows(verb, resource, subresource):
            return
        plural, _, group = resource.partition(".")
        full = f"{plural}/{subresource}" if subresource else plural
        subject = f'{resource} "{name}"' if name else resource
        message = f'{subject} is forbidden: User "{user}" cannot {verb} resource "{full}" in API '
        message += f'group "{group}" at the cluster scope'
        raise ApiError(403, message, resource=resource, name=name)

    def review(self, body: dict[str, Any]) -> dict[str, Any]:
        """SelfSubjectAccessReview: the object with its status; raises 400."""
        asked = (body.get("spec") or {}).get("resourceAttributes")
        if not isinstance(asked, dict):
            raise ApiError(400, "spec.resourceAttributes is required here")
        plural, group = asked.get("resource", ""), asked.get("group", "")
        resource = f"{plural}.{group}" if group else plural
        allowed = self._allows(asked.get("verb", ""), resource, asked.get("subresource", ""))
        return {**body, "status": {"allowed": allowed}}

    def _allows(self, verb: str, resource: str, subresource: str) -> bool:
        full = f"{resource}/{subresource}" if subresource else resource
        return Denied(verb=verb, resource=full) not in self._denied

    def _take(self, situations: list[Situation]) -> None:
        self._denied = frozenset(entry for entry in situations if isinstance(entry, Denied))
