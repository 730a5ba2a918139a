"""Cordons by hand: several nodes at once, for a time, and what the node's page says of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from gpuadmin.accounts.roles import Role
from gpuadmin.operations import tasks
from gpuadmin.operations.models import Operation, Step
from tests.e2e.browser import enter, picture, watched
from tests.e2e.cluster import GPU_TAINT, sync
from tests.operations.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def is_cordoned(lab: World, name: str) -> bool:
    return bool(lab.get_node(name)["spec"].get("unschedulable"))


def test_two_nodes_are_cordoned_for_an_hour_and_a_reversal_is_shown(
    live_server: LiveServer, browser: Browser, lab: World, people: dict[Role, str]
) -> None:
    faults: list[str] = []
    with watched(browser, live_server.url) as shown:
        page, sheet = shown.page, shown.page.locator("dialog#sheet")
        enter(page, live_server.url, people[Role.OPERATOR])
        page.goto("/nodes")
        page.get_by_label("Select all").check()
        bar = page.get_by_role("region", name="Selected nodes")
        bar.get_by_role("link", name="Cordon…", exact=True).click()
        expect(sheet.get_by_role("heading", name="Cordon 2 nodes").first).to_be_visible()
        expect(sheet.get_by_text("No running pod is ended")).to_be_visible()
        expect(sheet.locator("#kubectl")).to_contain_text("kubectl cordon h100-01 h100-02")
        faults += [*shown.axe(), *shown.sideways()]
        picture(page, "cordon-plan-light-1440")
        sheet.get_by_label("Why").fill("Riser check, OPS-413")
        sheet.get_by_label("Lasts").select_option("1 hour")
        sheet.get_by_role("button", name="Run the change").click()
        expect(sheet.get_by_text("Verified by a fresh read")).to_be_visible(timeout=30_000)
        expect(sheet.get_by_text("by itself at")).to_be_visible()
        assert is_cordoned(lab, "h100-01")
        assert is_cordoned(lab, "h100-02")

        sync(lab)
        page.goto("/nodes/h100-01")
        expect(page.get_by_text("Riser check, OPS-413").first).to_be_visible()
        expect(page.get_by_role("link", name="Uncordon…")).to_be_visible()

        lab.client.patch("/api/v1/nodes/h100-01", {"spec": {"unschedulable": None}})
        verified = timezone.now() - timedelta(minutes=1)
        Step.objects.filter(name=Step.Name.VERIFY).update(finished_at=verified)
        sync(lab)
        tasks.sweep()
        page.goto("/nodes/h100-01")
        expect(page.get_by_text("Somebody else changed it back")).to_be_visible()
        faults += [*shown.axe(), *shown.sideways()]
        picture(page, "cordon-reversed-light-1440")
        assert not is_cordoned(lab, "h100-01")
        assert shown.complaints == []
    assert faults == []


def test_ticked_nodes_are_closed_to_pods_without_gpus_in_one_action(
    live_server: LiveServer, browser: Browser, lab: World, people: dict[Role, str]
) -> None:
    lab.pod("web", "h100-02")
    lab.pod("train-1", "h100-02", gpu=1, tolerations=[{"operator": "Exists"}])
    with watched(browser, live_server.url) as shown:
        page, sheet = shown.page, shown.page.locator("dialog#sheet")
        enter(page, live_server.url, people[Role.OPERATOR])
        page.goto("/nodes")
        page.get_by_label("Select all").check()
        bar = page.get_by_role("region", name="Selected nodes")
        bar.get_by_role("link", name="Close to pods without GPUs…").click()
        stays = sheet.get_by_role("heading", name="1 pod stays, but could not come back")
        expect(stays).to_be_visible()
        expect(sheet.get_by_role("row").filter(has_text="web")).to_contain_text("no accelerator")
        expect(sheet.get_by_text("Already so: nvidia.com/gpu=present:NoSchedule")).to_be_visible()
        expect(sheet.locator("#kubectl")).to_contain_text("kubectl taint nodes h100-02 nvidia.com")
        picture(page, "close-plan-light-1440")
        sheet.get_by_label("Why").fill("For GPU pods only")
        sheet.get_by_role("button", name="Run the change").click()
        expect(sheet.get_by_text("Verified by a fresh read")).to_be_visible(timeout=30_000)
        assert lab.taints("h100-02") == [GPU_TAINT]
        assert shown.complaints == []


def test_a_second_click_and_the_way_back_make_one_operation(
    live_server: LiveServer, browser: Browser, lab: World, people: dict[Role, str]
) -> None:
    """Fault 21: without our script nothing holds the browser back but the key in the form."""
    with watched(browser, live_server.url, java_script_enabled=False) as shown:
        page = shown.page
        enter(page, live_server.url, people[Role.OPERATOR])
        page.goto("/nodes/cordon?node=h100-02")
        page.get_by_label("Why").fill("twice")
        page.get_by_role("button", name="Run the change").dblclick()
        expect(page.get_by_role("heading", name="Cordon h100-02")).to_be_visible()
        assert page.url.endswith(f"/operations/{Operation.objects.get().pk}")
        page.go_back()
        expect(page.get_by_text("There is nothing to do.")).to_be_visible()
        expect(page.get_by_role("button", name="Run the change")).to_have_count(0)
