"""Pages are tested on the demo's fleet, and by people of every role."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.test import Client
from django.utils import timezone

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Cluster
from tests.web import world


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def cluster(db: None, now: datetime) -> Cluster:
    return world.build(now)


@pytest.fixture
def viewer(db: None) -> Client:
    return signed_in(Role.VIEWER)


@pytest.fixture
def operator(db: None) -> Client:
    return signed_in(Role.OPERATOR)


def signed_in(role: Role) -> Client:
    """A browser session of somebody with this role."""
    client = Client()
    client.force_login(world.person(role.label or "nobody", role))
    return client
