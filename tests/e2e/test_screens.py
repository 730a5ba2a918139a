"""Pictures of every page, in var/screens (`make screens`), and what they are held to.

Each page × {light, dark} × {1440, 390}: nothing scrolls sideways, and axe finds nothing serious,
contrast included.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import AgentState, Cluster, Finding, Heartbeat, Node
from tests.e2e.browser import NARROW, WIDE, Theme, Watched, enter, picture, watched

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

PAGES = {
    "overview": "/",
    "nodes": "/nodes",
    "node": "/nodes/h100-02",
    "node-slices": "/nodes/a100-03",
    "node-slots": "/nodes/l40s-02",
    "node-without-agent": "/nodes/t4-01",
    "node-gone": "/nodes/nobody",
    "findings": "/findings",
    "operations": "/operations",
    "setup": "/setup",
    "not-found": "/nowhere",
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1440", "390"])
def test_every_page_is_whole_in_this_size_and_theme(
    live_server: LiveServer,
    browser: Browser,
    fleet: Cluster,
    people: dict[Role, str],
    size: tuple[int, int],
    theme: Theme,
) -> None:
    faults: list[str] = []
    with watched(browser, live_server.url, size=size, theme=theme) as shown:
        shown.page.goto("/sign-in")
        faults += look(shown, f"sign-in-{theme}-{size[0]}")
        enter(shown.page, live_server.url, people[Role.OPERATOR])
        for name, address in PAGES.items():
            shown.page.goto(address)
            faults += look(shown, f"{name}-{theme}-{size[0]}")
            if name == "overview":
                faults += _modes(shown, f"{theme}-{size[0]}")
        complaints = [text for text in shown.complaints if "404" not in text]
    assert faults == []
    assert complaints == []


@pytest.mark.parametrize(
    ("size", "theme"), [(WIDE, "light"), (NARROW, "dark")], ids=["1440-light", "390-dark"]
)
def test_pages_are_whole_when_something_is_missing(
    live_server: LiveServer,
    browser: Browser,
    fleet: Cluster,
    people: dict[Role, str],
    size: tuple[int, int],
    theme: Theme,
) -> None:
    """Late, forbidden, empty, refused: states that are designed, each after the other."""
    faults: list[str] = []
    kind = f"{theme}-{size[0]}"
    with watched(browser, live_server.url, size=size, theme=theme) as shown:
        enter(shown.page, live_server.url, people[Role.OPERATOR])
        for state, (change, addresses) in MISSING.items():
            change()
            for place, address in addresses.items():
                shown.page.goto(address)
                faults += look(shown, f"{place}-{state}-{kind}")
    assert faults == []
    assert [text for text in shown.complaints if "403" not in text] == []


def _late() -> None:
    old = timezone.now() - timedelta(minutes=41)
    why = "The API server at https://10.0.0.1:6443 can't be reached: connection refused."
    Heartbeat.objects.update(ok=False, ok_at=old, message=why)
    reporting = AgentState.objects.filter(reported_at__isnull=False)
    reporting.update(status="unreachable", reported_at=old, reason="No answer in 5 s.")


def _forbidden() -> None:
    Cluster.objects.update(pods_forbidden=True, pods_observed_at=None)


def _empty() -> None:
    Node.objects.all().delete()
    Finding.objects.all().delete()


def _refused() -> None:
    for user in User.objects.all():
        user.groups.clear()


MISSING: dict[str, tuple[Callable[[], None], dict[str, str]]] = {
    "late": (_late, {"overview": "/", "node": "/nodes/h100-02", "setup": "/setup"}),
    "forbidden": (_forbidden, {"overview": "/", "nodes": "/nodes", "node": "/nodes/h100-02"}),
    "empty": (_empty, {"overview": "/", "nodes": "/nodes", "findings": "/findings"}),
    "refused": (_refused, {"overview": "/"}),
}


def look(shown: Watched, name: str) -> list[str]:
    picture(shown.page, name, whole=True)
    # Structure is the same in both themes: in the dark one only contrast can go wrong anew.
    rule = "color-contrast" if "-dark-" in name else ""
    return [f"{name}: {fault}" for fault in [*shown.sideways(), *shown.axe(rule)]]


def _modes(shown: Watched, name: str) -> list[str]:
    """The other three colours of the heat map, for their contrast."""
    faults = []
    for mode in ("Memory", "Holder", "Temperature"):
        shown.page.locator(".mapbox .seg").get_by_text(mode).click()
        picture(shown.page, f"overview-{mode.lower()}-{name}", whole=True)
        faults += [f"{mode} {name}: {fault}" for fault in shown.axe("color-contrast")]
    return faults
