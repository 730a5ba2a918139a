"""Who asks: an API token in ``Authorization: Bearer``, or else the browser's session."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed

from gpuadmin.accounts.models import AccessToken, User
from gpuadmin.accounts.tokens import note_use

_REFUSED = "The token is unknown, expired or revoked, or its user is disabled."


class BearerToken(TokenAuthentication):
    """Only the token's digest is compared. Every bad token is the same 401."""

    def authenticate_credentials(self, token: bytes) -> tuple[User, AccessToken]:
        try:
            user, row = super().authenticate_credentials(token)  # type: ignore[no-untyped-call]
        except (AuthenticationFailed, UnicodeDecodeError):
            raise AuthenticationFailed(_REFUSED) from None
        note_use(row)
        return user, row


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the token stands in the schema."""

    target_class = "gpuadmin.api.auth.BearerToken"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
