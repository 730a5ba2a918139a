"""Users, tokens and sessions as REST takes and gives them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from gpuadmin.accounts.access import role_of
from gpuadmin.accounts.models import AccessToken, BrowserSession, User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.tokens import DEFAULT_DAYS, MAX_DAYS
from gpuadmin.api.v1.common import time

ROLES = [(role.label, role.label) for role in Role if role is not Role.NONE]


def role(**more: Any) -> serializers.ChoiceField:
    """One of the three, or null for none."""
    return serializers.ChoiceField(choices=ROLES, allow_null=True, **more)


def role_of_label(label: str | None) -> Role:
    return Role.named(label) if label else Role.NONE


def secret(**more: Any) -> serializers.CharField:
    """A password: taken as it is, blanks included, and never given back."""
    return serializers.CharField(max_length=1000, trim_whitespace=False, write_only=True, **more)


class UserOut(serializers.ModelSerializer[User]):
    """``sessions`` counts browsers that are signed in now; ``role`` null: the user sees nothing."""

    name = serializers.CharField(source="username")
    role = serializers.SerializerMethodField()
    active = serializers.BooleanField(source="is_active")
    created_at = serializers.DateTimeField(source="date_joined")
    signed_in_at = time(source="last_login")
    sessions = serializers.IntegerField(source="session_count")
    tokens = serializers.IntegerField(source="token_count")

    class Meta:
        model = User
        fields = ["name", "role", "active", "created_at", "signed_in_at", "sessions", "tokens"]

    def get_role(self, user: User) -> str | None:
        return role_of(user).label or None


class UserIn(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=150)
    role = role()
    password = secret()


class UserChange(serializers.Serializer[Any]):
    """Only what is there is changed. ``active`` false ends sessions and revokes tokens."""

    role = role(required=False)
    active = serializers.BooleanField(required=False)


class PasswordIn(serializers.Serializer[Any]):
    password = secret()


class OwnPasswordIn(PasswordIn):
    old = secret()


class TokenOut(serializers.ModelSerializer[AccessToken]):
    """``role_cap`` null: as much as its owner; ``expires_at`` null: it does not expire."""

    role_cap = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField(source="created")
    expires_at = time(source="expiry")
    last_used_at = time(source="last_used")

    class Meta:
        model = AccessToken
        fields = ["name", "role_cap", "created_at", "expires_at", "last_used_at"]

    def get_role_cap(self, token: AccessToken) -> str | None:
        return token.role_cap or None


class TokenIn(serializers.Serializer[Any]):
    """``days`` null: it does not expire."""

    name = serializers.CharField(max_length=60)
    role_cap = role(required=False, default=None)
    days = serializers.IntegerField(
        min_value=1, max_value=MAX_DAYS, allow_null=True, required=False, default=DEFAULT_DAYS
    )


class NewToken(serializers.Serializer[Any]):
    """Told this once."""

    name = serializers.CharField()
    token = serializers.CharField()


class SessionOut(serializers.ModelSerializer[BrowserSession]):
    """``expires_at`` unless it is used before; ``current``: the one that asks."""

    id = serializers.CharField(source="public_id")
    expires_at = serializers.DateTimeField(source="expire_date")
    current = serializers.SerializerMethodField()

    class Meta:
        model = BrowserSession
        fields = ["id", "signed_in_at", "seen_at", "expires_at", "address", "browser", "current"]

    def get_current(self, session: BrowserSession) -> bool:
        request: Request = self.context["request"]
        return request.auth is None and session.session_key == request.session.session_key


class AccountOut(serializers.Serializer[Any]):
    """Who asks: ``via`` is ``session`` or ``token:<name>``, ``role`` what holds now."""

    name = serializers.CharField()
    role = serializers.CharField()
    via = serializers.CharField()


def valid(kind: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    """The body by its serializer. Raises ``ValidationError``."""
    checked = kind(data=request.data)
    checked.is_valid(raise_exception=True)
    found: dict[str, Any] = checked.validated_data
    return found
