"""Users, for administrators. What is asked goes to the services, which check rights and audit."""

from __future__ import annotations

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpuadmin.accounts import queries, services, tokens
from gpuadmin.accounts.access import actor_of
from gpuadmin.accounts.models import AccessToken, User
from gpuadmin.api.permissions import MayManageUsers
from gpuadmin.api.v1.accounts_out import (
    PasswordIn,
    TokenOut,
    UserChange,
    UserIn,
    UserOut,
    role_of_label,
    valid,
)
from gpuadmin.api.v1.common import PAGE, PAGE_SIZE

WITH_TOKENS = OpenApiParameter("tokens", bool, description="True: revokes the API tokens as well.")


class Users(generics.ListAPIView[User]):
    """By name."""

    permission_classes = (MayManageUsers,)
    serializer_class = UserOut
    queryset = User.objects.none()

    def get_queryset(self) -> QuerySet[User]:
        return queries.users(timezone.now())

    @extend_schema(parameters=[PAGE, PAGE_SIZE])
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        """A page of users."""
        return super().get(request, *args, **kwargs)

    @extend_schema(request=UserIn, responses={201: UserOut})
    def post(self, request: Request) -> Response:
        """A new user."""
        sent = valid(UserIn, request)
        name = sent["name"]
        services.create_user(actor_of(request), name, role_of_label(sent["role"]), sent["password"])
        where = {"Location": reverse("api:user", args=[name])}
        return Response(UserOut(_user(name)).data, status=201, headers=where)


class OneUser(APIView):
    """One user."""

    permission_classes = (MayManageUsers,)

    @extend_schema(responses=UserOut)
    def get(self, request: Request, name: str) -> Response:
        return Response(UserOut(_user(name)).data)

    @extend_schema(request=UserChange, responses=UserOut)
    def patch(self, request: Request, name: str) -> Response:
        """A new role, disabling or enabling; the last active administrator stays one."""
        sent, actor = valid(UserChange, request), actor_of(request)
        found = _user(name)
        if "role" in sent:
            services.set_role(actor, name, role_of_label(sent["role"]))
        if "active" in sent and sent["active"] is not found.is_active:
            (services.enable if sent["active"] else services.disable)(actor, name)
        return Response(UserOut(_user(name)).data)


class UserPassword(APIView):
    """A new password."""

    permission_classes = (MayManageUsers,)

    @extend_schema(request=PasswordIn, responses={204: None})
    def put(self, request: Request, name: str) -> Response:
        """Sets it and ends every session of the user."""
        services.set_password(actor_of(request), _user(name).username, _password(request))
        return Response(status=204)


class UserSessions(APIView):
    """The sessions of one user."""

    permission_classes = (MayManageUsers,)

    @extend_schema(parameters=[WITH_TOKENS], responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Signs the user out everywhere."""
        sign_out(request, _user(name).username)
        return Response(status=204)


class UserTokens(generics.ListAPIView[AccessToken]):
    """The API tokens of one user, the newest first."""

    permission_classes = (MayManageUsers,)
    serializer_class = TokenOut
    queryset = AccessToken.objects.none()

    def get_queryset(self) -> QuerySet[AccessToken]:
        return queries.tokens_of(_user(self.kwargs["name"]))


class OneUserToken(APIView):
    """One API token of a user."""

    permission_classes = (MayManageUsers,)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, token: str) -> Response:
        """Revokes it at once."""
        get_object_or_404(queries.tokens_of(_user(name)), name=token)
        tokens.revoke_token(actor_of(request), name, token)
        return Response(status=204)


def sign_out(request: Request, name: str) -> None:
    """Ends sessions, and with ``?tokens=true`` the API tokens."""
    with_tokens = request.query_params.get("tokens") in ("true", "1")
    services.sign_out_everywhere(actor_of(request), name, tokens=with_tokens)


def _password(request: Request) -> str:
    password: str = valid(PasswordIn, request)["password"]
    return password


def _user(name: str) -> User:
    return get_object_or_404(queries.users(timezone.now()), username=name)
