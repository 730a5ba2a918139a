"""Users, My account and the kubeconfig in a browser: whole in every size and theme, and used as
people do."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from gpuadmin.accounts.audit import COMMAND
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import disable, set_role, sign_out_everywhere
from gpuadmin.accounts.tokens import create_token
from gpuadmin.fleet.models import Cluster
from tests.e2e.browser import NARROW, WIDE, Theme, enter, picture, sign_in, watched
from tests.e2e.conftest import PASSWORD
from tests.e2e.test_screens import look
from tests.fleet.test_kubeconfigs import kubeconfig
from tests.support.scripted_api import ScriptedApi
from tests.support.tls import authority

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1440", "390"])
def test_the_pages_of_accounts_are_whole(
    live_server: LiveServer,
    browser: Browser,
    fleet: Cluster,
    people: dict[Role, str],
    size: tuple[int, int],
    theme: Theme,
) -> None:
    for name, days in (("pipeline", 30), ("grafana, read only", None)):
        create_token(COMMAND, people[Role.ADMIN], name, cap=Role.VIEWER, days=days)
    create_token(COMMAND, people[Role.VIEWER], "laptop", cap=None, days=7)
    disable(COMMAND, people[Role.OPERATOR])
    kind, faults = f"{theme}-{size[0]}", []
    with watched(browser, live_server.url, size=size, theme=theme) as shown:
        enter(shown.page, live_server.url, people[Role.ADMIN])
        shown.page.goto("/account")
        faults += look(shown, f"account-{kind}")
        shown.page.get_by_role("link", name="New token…").click()
        shown.page.get_by_label("What it is for").fill("pipeline")
        shown.page.get_by_role("button", name="Make the token").click()
        expect(shown.page.get_by_text("has a token “pipeline” already")).to_be_visible()
        faults += look(shown, f"new-token-{kind}")
        for address in (
            "/users",
            "/new-user",
            f"/users/{people[Role.VIEWER]}",
            "/setup/kubeconfig",
        ):
            shown.page.goto(address)
            faults += look(shown, f"{address.strip('/').replace('/', '-')}-{kind}")
        complaints = [text for text in shown.complaints if "422" not in text]
    assert faults == []
    assert complaints == []


def test_an_administrator_adds_a_user_in_the_sheet_who_makes_a_token(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        page = shown.page
        sign_in(page, people[Role.ADMIN], PASSWORD)
        page.get_by_role("link", name="Users").click()
        page.get_by_role("link", name="Add a user…").click()
        expect(page.get_by_label("Name", exact=True)).to_be_focused()
        page.get_by_label("Name", exact=True).fill("m.ruiz")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Add the user").click()
        expect(page.get_by_text("The user can sign in now.")).to_be_visible()
        picture(page, "user-sheet")
        page.get_by_label("Close").click()
        expect(page.get_by_role("link", name="m.ruiz")).to_be_visible()
        assert shown.complaints == []
    with watched(browser, live_server.url) as shown:
        page = shown.page
        sign_in(page, "m.ruiz", PASSWORD)
        page.get_by_role("link", name="m.ruiz · viewer").click()
        page.get_by_role("link", name="New token…").click()
        page.get_by_label("What it is for").fill("laptop")
        page.get_by_role("button", name="Make the token").click()
        expect(page.get_by_text("“laptop” is made.")).to_be_visible()
        assert page.locator("#new-token").inner_text().startswith("gpa_")
        picture(page, "token-made")
        page.get_by_role("button", name="Close").last.click()
        page.get_by_text("Revoke…").click()
        page.get_by_role("button", name="Revoke laptop").click()
        expect(page.get_by_text("No API token.")).to_be_visible()
        assert not User.objects.get(username="m.ruiz").auth_token_set.exists()
        assert shown.complaints == []


def test_a_page_that_is_open_shows_nothing_more_once_its_reader_may_not(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    """Fault 22: within 30 s of the end of a role, and of a session."""
    with watched(browser, live_server.url) as shown:
        page = shown.page
        enter(page, live_server.url, people[Role.VIEWER])
        page.goto("/nodes")
        expect(page.get_by_role("link", name="h100-02").first).to_be_visible()
        set_role(COMMAND, people[Role.VIEWER], Role.NONE)
        expect(page.get_by_role("heading", name="Not allowed")).to_be_visible(timeout=30_000)
        assert "h100-02" not in page.content()

        enter(page, live_server.url, people[Role.OPERATOR])
        page.goto("/nodes")
        sign_out_everywhere(COMMAND, people[Role.OPERATOR], tokens=False)
        page.wait_for_url("**/sign-in?next=/nodes", timeout=30_000)


def test_a_kubeconfig_is_pasted_tried_and_kept(
    live_server: LiveServer,
    browser: Browser,
    fleet: Cluster,
    people: dict[Role, str],
    settings: Settings,
    tmp_path: Path,
) -> None:
    settings.LOOPBACK_CLUSTERS = True
    authority_pair, server = authority()
    with (
        ScriptedApi(server.server_context(tmp_path)) as api,
        watched(browser, live_server.url) as shown,
    ):
        page = shown.page
        enter(page, live_server.url, people[Role.ADMIN])
        page.goto("/setup")
        page.get_by_role("link", name="Kubeconfig…").click()
        page.get_by_label("kubeconfig, with its data inline").fill("exec: me")
        page.get_by_role("button", name="Try it").click()
        expect(page.get_by_role("alert")).to_contain_text("no current-context")
        text = kubeconfig(api, authority_pair.certificate)
        page.get_by_label("kubeconfig, with its data inline").fill(text)
        page.get_by_role("button", name="Try it").click()
        expect(page.get_by_role("heading", name="It answers")).to_be_visible()
        picture(page, "kubeconfig-tried")
        page.get_by_role("button", name="Keep and use it").click()
        expect(page.get_by_text("a kubeconfig that a.hart gave")).to_be_visible()
        picture(page, "kubeconfig-kept")
        page.get_by_role("link", name="Kubeconfig…").click()
        expect(page.get_by_role("heading", name="In use now")).to_be_visible()
        picture(page, "kubeconfig-in-use")
        page.get_by_text("Remove it…").click()
        page.get_by_role("button", name="Remove the kubeconfig").click()
        expect(page.get_by_text("the ServiceAccount of our pod")).to_be_visible()
        complaints = [said for said in shown.complaints if "422" not in said]
    assert complaints == []
