"""Who asks. Over plain HTTP kubectl sends no token, so no token is the administrator's."""

from __future__ import annotations

from typing import Any

from simulator.api.errors import ApiError

ADMINISTRATOR = "simulated-administrator"
SIMULATOR = "simulator"  # the simulated nodes; no situation denies them anything


def user_of(authorization: str, tokens: dict[str, str]) -> str:
    """The user of an Authorization header by token; raises 401 for a token that nobody has."""
    if not authorization:
        return ADMINISTRATOR
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or token.strip() not in tokens:
        raise ApiError(401, "Unauthorized")
    return tokens[token.strip()]


def who_am_i(user: str, body: dict[str, Any]) -> dict[str, Any]:
    """SelfSubjectReview."""
    return body | {"status": {"userInfo": {"username": user, "groups": ["system:authenticated"]}}}
