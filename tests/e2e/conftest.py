"""A browser, and the console on the demo's fleet."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, sync_playwright

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Cluster
from tests.e2e.browser import launch
from tests.web import world

PASSWORD = "correct horse battery"

# Playwright's own loop runs in the test's thread; Django would take our queries for async ones.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = launch(playwright)
        yield found
        found.close()


@pytest.fixture
def people(transactional_db: None) -> dict[Role, str]:
    """One person of each role, by name."""
    names = {
        Role.VIEWER: "v.stone",
        Role.OPERATOR: "k.osei",
        Role.ADMIN: "a.hart",
        Role.NONE: "n.one",
    }
    for role, name in names.items():
        world.person(name, role, PASSWORD)
    return names


@pytest.fixture
def fleet(transactional_db: None) -> Cluster:
    return world.build(timezone.now())
