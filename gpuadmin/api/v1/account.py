"""One's own account: password, API tokens, sessions."""

from __future__ import annotations

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpuadmin.accounts import queries, services, tokens
from gpuadmin.accounts.access import actor_of
from gpuadmin.accounts.models import AccessToken, BrowserSession, User
from gpuadmin.accounts.roles import Role
from gpuadmin.api.v1.accounts_out import (
    AccountOut,
    NewToken,
    OwnPasswordIn,
    SessionOut,
    TokenIn,
    TokenOut,
    valid,
)
from gpuadmin.api.v1.common import PAGE, PAGE_SIZE
from gpuadmin.api.v1.users import WITH_TOKENS, sign_out


class Account(APIView):
    """Who asks, and with which role."""

    @extend_schema(responses=AccountOut)
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        return Response({"name": actor.name, "role": actor.role.label, "via": actor.via})


class AccountPassword(APIView):
    """One's own password."""

    @extend_schema(request=OwnPasswordIn, responses={204: None})
    def put(self, request: Request) -> Response:
        """Changes it by the present one, and ends every session."""
        sent = valid(OwnPasswordIn, request)
        services.change_password(actor_of(request), sent["old"], sent["password"])
        return Response(status=204)


class AccountTokens(generics.ListAPIView[AccessToken]):
    """One's own API tokens, the newest first."""

    serializer_class = TokenOut
    queryset = AccessToken.objects.none()

    def get_queryset(self) -> QuerySet[AccessToken]:
        return queries.tokens_of(_me(self.request))

    @extend_schema(parameters=[PAGE, PAGE_SIZE])
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        """A page of tokens."""
        return super().get(request, *args, **kwargs)

    @extend_schema(request=TokenIn, responses={201: NewToken})
    def post(self, request: Request) -> Response:
        """A new token: this answer is the only one that tells it."""
        sent, actor = valid(TokenIn, request), actor_of(request)
        cap = Role.named(sent["role_cap"]) if sent["role_cap"] else None
        token = tokens.create_token(actor, actor.name, sent["name"], cap=cap, days=sent["days"])
        return Response({"name": sent["name"], "token": token}, status=201)


class AccountToken(APIView):
    """One of one's own API tokens."""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, token: str) -> Response:
        """Revokes it at once."""
        get_object_or_404(queries.tokens_of(_me(request)), name=token)
        tokens.revoke_token(actor_of(request), actor_of(request).name, token)
        return Response(status=204)


class AccountSessions(generics.ListAPIView[BrowserSession]):
    """Browsers that are signed in, the latest used first."""

    serializer_class = SessionOut
    queryset = BrowserSession.objects.none()

    def get_queryset(self) -> QuerySet[BrowserSession]:
        return queries.sessions_of(_me(self.request), timezone.now())

    @extend_schema(parameters=[PAGE, PAGE_SIZE])
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        """A page of sessions."""
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="account_sessions_end", parameters=[WITH_TOKENS], responses={204: None}
    )
    def delete(self, request: Request) -> Response:
        """Signs out everywhere, here too."""
        sign_out(request, actor_of(request).name)
        return Response(status=204)


class AccountSession(APIView):
    """One browser that is signed in."""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, session: str) -> Response:
        """Signs it out."""
        known = queries.sessions_of(_me(request), timezone.now())
        if session not in [one.public_id for one in known]:
            raise NotFound("There is no such session any more.")
        services.end_session(actor_of(request), session)
        return Response(status=204)


def _me(request: Request) -> User:
    if not isinstance(request.user, User):
        raise NotFound
    return request.user
