"""A client of the REST interface per role, by token, and the world of the engine's tests."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from gpuadmin.accounts.audit import COMMAND
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import set_role
from gpuadmin.accounts.tokens import create_token
from tests.operations.conftest import api_client, api_folder, nudges, world

__all__ = ["api_client", "api_folder", "as_role", "nudges", "world"]

AsRole = Callable[..., Any]


@pytest.fixture
def as_role(db: None) -> AsRole:
    """A client that sends the token of a user with this role."""

    def client(role: Role, *, cap: Role | None = None) -> APIClient:
        name = f"a-{role.label or 'stranger'}"
        user, new = User.objects.get_or_create(username=name)
        if new and role is not Role.NONE:
            set_role(COMMAND, name, role)
        token = create_token(COMMAND, name, f"t{user.auth_token_set.count()}", cap=cap, days=1)
        made = APIClient()
        made.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
        return made

    return client
