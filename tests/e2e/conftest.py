"""A browser, and the console on the demo's fleet."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, sync_playwright

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Cluster
from gpuadmin.kube.client import KubeClient
from tests.e2e.browser import launch
from tests.e2e.cluster import small_cluster, worker
from tests.operations.world import World, simulated_api
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


@pytest.fixture(scope="module")
def lab_client() -> Iterator[KubeClient]:
    """A simulated API for the tests of one file."""
    with tempfile.TemporaryDirectory(prefix="gpa-e2e-") as folder, simulated_api(Path(folder)) as c:
        yield c


@pytest.fixture
def lab(
    transactional_db: None, lab_client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A small cluster on it, in the store as well, with a worker that runs operations."""
    with worker(lab_client, monkeypatch):
        yield small_cluster(lab_client, timezone.now())
