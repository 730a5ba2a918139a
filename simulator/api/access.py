"""Who asks, and what a scripted situation forbids them. There is no RBAC engine.

Everything is allowed but what a ``denied`` situation names; the simulator's own nodes are never
denied. Over plain HTTP kubectl sends no token, so no token is the administrator's.
"""

from __future__ import annotations

from typing import Any

from simulator.api.errors import ApiError
from simulator.api.kinds import CONFIGMAPS
from simulator.api.store import Event, Store
from simulator.faults.situations import CONFIGMAP_KEY, Denied, read_configmap

ADMINISTRATOR = "simulated-administrator"
SIMULATOR = "simulator"


class Access:
    """Tokens and denials. The denials follow the situations' ConfigMap in the store."""

    def __init__(self, tokens: dict[str, str], store: Store) -> None:
        """``tokens``: token → user name."""
        self._tokens = tokens
        self._denied: frozenset[Denied] = frozenset()
        store.subscribe(self._follow)

    def user(self, authorization: str) -> str:
        """Raises 401 for a token that nobody has."""
        if not authorization:
            return ADMINISTRATOR
        scheme, _, token = authorization.partition(" ")
        user = self._tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise ApiError(401, "Unauthorized")
        return user

    def check(self, user: str, verb: str, resource: str, subresource: str, name: str) -> None:
        """Raises 403 in a real API server's words."""
        if self._allowed(user, verb, resource, subresource):
            return
        plural, _, group = resource.partition(".")
        full = f"{plural}/{subresource}" if subresource else plural
        subject = f'{resource} "{name}"' if name else resource
        message = f'{subject} is forbidden: User "{user}" cannot {verb} resource "{full}" in API '
        details = {"name": name, "group": group, "kind": plural}
        raise ApiError(403, f'{message}group "{group}" at the cluster scope', details=details)

    def review(self, user: str, body: dict[str, Any]) -> dict[str, Any]:
        """SelfSubjectAccessReview: the object with its status; raises 400."""
        asked = (body.get("spec") or {}).get("resourceAttributes")
        if not isinstance(asked, dict):
            raise ApiError(400, "spec.resourceAttributes is required here")
        plural, group = asked.get("resource", ""), asked.get("group", "")
        resource = f"{plural}.{group}" if group else plural
        subresource = asked.get("subresource", "")
        allowed = self._allowed(user, asked.get("verb", ""), resource, subresource)
        reason = "everything is allowed here" if allowed else "denied by a simulated situation"
        return {**body, "status": {"allowed": allowed, "reason": reason}}

    def _allowed(self, user: str, verb: str, resource: str, subresource: str) -> bool:
        full = f"{resource}/{subresource}" if subresource else resource
        return user == SIMULATOR or Denied(verb=verb, resource=full) not in self._denied

    def _follow(self, event: Event) -> None:
        if event.kind is CONFIGMAPS and event.key == CONFIGMAP_KEY:
            value = {} if event.change == "DELETED" else event.document.value
            situations = read_configmap(value)
            self._denied = frozenset(entry for entry in situations if isinstance(entry, Denied))


def who_am_i(user: str, body: dict[str, Any]) -> dict[str, Any]:
    """SelfSubjectReview."""
    info = {"username": user, "uid": user, "groups": ["system:authenticated"]}
    return {**body, "status": {"userInfo": info}}
