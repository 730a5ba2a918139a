"""Pages live: values change in place, nothing jumps, and a silent server is said."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Cluster, Gpu
from tests.e2e.browser import enter, sign_in, watched
from tests.e2e.conftest import PASSWORD

REFRESH_MS = 5_000  # static/js/live.js
pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.ADMIN])
def test_each_role_signs_in_and_sees_what_it_may_do(
    live_server: LiveServer,
    browser: Browser,
    fleet: Cluster,
    people: dict[Role, str],
    role: Role,
) -> None:
    with watched(browser, live_server.url) as shown:
        sign_in(shown.page, people[role], PASSWORD)
        expect(shown.page.get_by_text(f"{people[role]} · {role.label}").first).to_be_visible()
        shown.page.goto("/nodes/h100-01")
        may = 0 if role is Role.VIEWER else 1
        expect(shown.page.get_by_role("link", name="Edit taints…")).to_have_count(may)
        shown.page.get_by_role("button", name="Sign out").first.click()
        expect(shown.page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert shown.complaints == []


def test_without_a_role_there_is_one_sentence_and_a_way_out(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        sign_in(shown.page, people[Role.NONE], PASSWORD)
        expect(shown.page.get_by_text("has no role here")).to_be_visible()
        shown.page.get_by_role("button", name="Sign out n.one").click()
        expect(shown.page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_new_reading_appears_in_place_and_focus_and_choices_stay(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        page = shown.page
        page.clock.install()
        enter(page, live_server.url, people[Role.VIEWER])
        page.goto("/")
        cell = page.locator('a[href="/nodes/h100-01#gpu-0"]')
        page.get_by_role("radio", name="Memory").check(force=True)
        cell.focus()
        cell.evaluate("element => { element.mine = true }")
        Gpu.objects.filter(node__name="h100-01", index=0).update(memory_used_bytes=0)
        page.clock.run_for(REFRESH_MS)
        expect(cell.locator(".vm")).to_have_text("0")
        assert cell.evaluate("element => element.mine")
        expect(cell).to_be_focused()
        expect(page.get_by_role("radio", name="Memory")).to_be_checked()
        assert shown.complaints == []


def test_ages_tick_and_a_server_that_does_not_answer_is_said(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        page = shown.page
        page.clock.install()
        enter(page, live_server.url, people[Role.VIEWER])
        page.goto("/")
        age = page.locator(".heart time")
        first = age.inner_text()
        page.clock.run_for(2_000)
        expect(age).not_to_have_text(first)
        page.route("**/*", lambda route: route.abort())
        page.clock.run_for(REFRESH_MS)
        lost = page.locator("#lost")
        expect(lost).to_contain_text("gpuadmin does not answer since")
        expect(lost).to_be_visible()
        page.unroute("**/*")
        page.clock.run_for(REFRESH_MS)
        expect(lost).not_to_be_visible()


def test_the_theme_is_kept_and_is_there_before_the_page_is_drawn(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        sign_in(shown.page, people[Role.VIEWER], PASSWORD)
        shown.page.get_by_role("button", name="Switch between light and dark").click()
        html = shown.page.request.get("/nodes").text()
        assert '<html lang="en" data-theme="dark">' in html
