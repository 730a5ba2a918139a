"""A taint by hand: choose, preview, type the name, run, watch it being verified, undo it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, expect
from pytest_django.live_server_helper import LiveServer

from dev.processes import wait_until
from gpuadmin.accounts.roles import Role
from tests.e2e.browser import NARROW, WIDE, Theme, enter, picture, watched
from tests.e2e.cluster import GPU_TAINT, sync
from tests.operations.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def test_a_taint_that_ends_pods_is_previewed_confirmed_verified_and_undone(
    live_server: LiveServer, browser: Browser, lab: World, people: dict[Role, str]
) -> None:
    faults: list[str] = []
    with watched(browser, live_server.url) as shown:
        page, sheet = shown.page, shown.page.locator("dialog#sheet")
        enter(page, live_server.url, people[Role.OPERATOR])
        page.goto("/nodes/h100-01")
        opener = page.get_by_role("link", name="Edit taints…")
        opener.click()
        expect(sheet.get_by_text("nvidia.com/gpu=present:NoSchedule")).to_be_visible()
        faults += shown.axe()
        picture(page, "change-choose-light-1440")

        page.keyboard.press("Escape")
        expect(sheet).not_to_be_visible()
        expect(opener).to_be_focused()

        opener.click()
        sheet.get_by_label("Key").fill("maint")
        sheet.get_by_label("NoExecute").check()
        sheet.get_by_role("button", name="Preview").click()
        expect(sheet.get_by_role("heading", name="2 pods will be ended")).to_be_visible()
        expect(sheet.get_by_text("gone for good", exact=True)).to_be_visible()
        expect(sheet.locator("#kubectl")).to_contain_text("kubectl taint nodes h100-01")
        faults += [*shown.axe(), *shown.sideways()]
        picture(page, "change-plan-light-1440")

        run = sheet.get_by_role("button", name="Run the change")
        expect(run).to_be_disabled()
        sheet.get_by_label("Why").fill("Board swap, OPS-412")
        expect(run).to_be_disabled()
        sheet.get_by_label("Type h100-01").fill("h100-01")
        expect(run).to_be_enabled()
        run.click()

        expect(sheet.get_by_text("Read h100-01 again and write")).to_be_visible()
        expect(sheet.get_by_text("Still leaving: team/scratch, team/train-0")).to_be_visible()
        picture(page, "change-live-light-1440")
        page.keyboard.press("Escape")  # closes a plan, never a run
        expect(sheet).to_be_visible()
        lab.end_pod("scratch")
        lab.end_pod("train-0")
        expect(sheet.get_by_text("Verified by a fresh read")).to_be_visible(timeout=30_000)
        faults += [*shown.axe(), *shown.sideways()]
        picture(page, "change-done-light-1440")
        assert {"key": "maint", "effect": "NoExecute"} in lab.taints("h100-01")

        sync(lab)
        take_back(sheet)
        assert lab.taints("h100-01") == [GPU_TAINT]

        page.goto("/operations")
        expect(page.get_by_role("row").filter(has_text="Board swap")).to_have_count(1)
        picture(page, "operations-some-light-1440")
        assert shown.complaints == []
    assert faults == []


def take_back(sheet: Locator) -> None:
    """The undo of the change that the sheet shows, which ends nobody."""
    sheet.get_by_role("link", name="Undo…").click()
    expect(sheet.get_by_text("No running pod is ended")).to_be_visible()
    sheet.get_by_label("Why").fill("Board is back")
    sheet.get_by_role("button", name="Run the change").click()
    expect(sheet.get_by_text("Verified by a fresh read")).to_be_visible(timeout=30_000)


def test_several_ticked_nodes_get_one_taint_in_one_change(
    live_server: LiveServer, browser: Browser, lab: World, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        page, sheet = shown.page, shown.page.locator("dialog#sheet")
        enter(page, live_server.url, people[Role.ADMIN])
        page.goto("/nodes")
        page.get_by_label("Select all").check()
        bar = page.get_by_role("region", name="Selected nodes")
        expect(bar).to_contain_text("2 nodes")
        bar.get_by_role("link", name="Taint…").click()
        sheet.get_by_label("Key").fill("dedicated")
        sheet.get_by_label("Value").fill("vision")
        sheet.get_by_role("button", name="Preview").click()
        expect(sheet.get_by_text("No running pod is ended")).to_be_visible()
        sheet.get_by_label("Why").fill("Only vision for a while")
        sheet.get_by_role("button", name="Run the change").click()
        expect(sheet.get_by_text("Verified by a fresh read")).to_be_visible(timeout=30_000)
        taint = {"key": "dedicated", "value": "vision", "effect": "NoSchedule"}
        assert taint in lab.taints("h100-01")
        assert taint in lab.taints("h100-02")
        assert shown.complaints == []


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1440", "390"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_sheet_is_whole_in_every_size_and_theme(
    live_server: LiveServer,
    browser: Browser,
    lab: World,
    people: dict[Role, str],
    size: tuple[int, int],
    theme: Theme,
) -> None:
    with watched(browser, live_server.url, size=size, theme=theme) as shown:
        enter(shown.page, live_server.url, people[Role.OPERATOR])
        shown.page.goto("/nodes/h100-01")
        shown.page.get_by_role("link", name="Edit taints…").click()
        sheet = shown.page.locator("dialog#sheet")
        sheet.get_by_label("Key").fill("maint")
        sheet.get_by_label("NoExecute").check()
        sheet.get_by_role("button", name="Preview").click()
        expect(sheet.get_by_role("heading", name="2 pods will be ended")).to_be_visible()
        picture(shown.page, f"change-plan-{theme}-{size[0]}")
        assert [*shown.sideways(), *shown.axe(), *shown.complaints] == []


def test_without_script_the_same_addresses_make_the_same_change(
    live_server: LiveServer, browser: Browser, lab: World, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url, java_script_enabled=False) as shown:
        page = shown.page
        enter(page, live_server.url, people[Role.OPERATOR])
        page.goto("/nodes/h100-02")
        page.get_by_role("link", name="Edit taints…").click()
        page.get_by_label("Key", exact=True).fill("plain")
        page.get_by_role("button", name="Preview").click()
        page.get_by_label("Why").fill("no script here")
        page.get_by_role("button", name="Run the change").click()
        expect(page.get_by_role("heading", name="Taint h100-02 with plain")).to_be_visible()
        verified = page.get_by_text("Verified by a fresh read")
        assert wait_until(lambda: page.reload() is not None and verified.is_visible(), 10)
        assert lab.taints("h100-02") == [{"key": "plain", "effect": "NoSchedule"}]


def test_a_plan_whose_snapshot_has_moved_is_shown_again_with_the_difference(
    live_server: LiveServer, browser: Browser, lab: World, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        page, sheet = shown.page, shown.page.locator("dialog#sheet")
        enter(page, live_server.url, people[Role.OPERATOR])
        page.goto("/nodes/h100-02")
        page.get_by_role("link", name="Edit taints…").click()
        sheet.get_by_label("Key").fill("maint")
        sheet.get_by_role("button", name="Preview").click()
        sheet.get_by_label("Why").fill("test")
        lab.write_taints("h100-02", [{"key": "other", "effect": "NoSchedule"}])
        sheet.get_by_role("button", name="Run the change").click()
        expect(sheet.get_by_text("The cluster has changed since this preview.")).to_be_visible()
        expect(sheet.get_by_text("stays: other:NoSchedule")).to_be_visible()
        assert lab.taints("h100-02") == [{"key": "other", "effect": "NoSchedule"}]
