"""What the sheet says when the server refuses, breaks or is away; what was typed stays."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Cluster
from tests.e2e.browser import enter, watched

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
SHEET = "**/nodes/taint?**"


def test_a_refusal_a_fault_and_a_lost_connection_are_said_in_the_sheet(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        page, sheet = shown.page, shown.page.locator("dialog#sheet")
        enter(page, live_server.url, people[Role.OPERATOR])
        page.goto("/nodes/h100-01")
        opener, alert = page.get_by_role("link", name="Edit taints…"), sheet.get_by_role("alert")

        page.route(SHEET, lambda route: route.fulfill(status=503, body="away"))
        opener.click()
        expect(alert).to_contain_text("gpuadmin answered with an error (503).")
        assert [*shown.axe(), *shown.sideways()] == []
        page.keyboard.press("Escape")
        expect(opener).to_be_focused()
        page.unroute(SHEET)

        opener.click()
        sheet.get_by_label("Key").fill("maint")
        page.route(SHEET, lambda route: route.abort())
        sheet.get_by_role("button", name="Preview").click()
        expect(alert).to_contain_text("gpuadmin does not answer.")
        expect(sheet.get_by_label("Key")).to_have_value("maint")
        page.unroute(SHEET)

        viewers = Group.objects.get_or_create(name=Role.VIEWER.label)[0]
        User.objects.get(username=people[Role.OPERATOR]).groups.set([viewers])
        sheet.get_by_role("button", name="Preview").click()
        expect(alert).to_contain_text(
            "Not allowed. Your role is viewer. It takes operator to preview"
        )
        expect(sheet.get_by_label("Key")).to_have_value("maint")
        expect(alert).to_have_count(1)
