"""Security test a: words of the cluster in every place that they can appear stay text.

No dialog opens, nothing is loaded, nothing is reported to the policy, and what turns writing around
or colours a terminal is gone.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Model
from django.utils import timezone
from playwright.sync_api import Browser, Dialog, expect
from pytest_django.live_server_helper import LiveServer

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import AgentState, Cluster, Finding, Gpu, MigInstance, Node
from gpuadmin.ledger.services import ReadingRow, copy_readings, keep_partitions
from gpuadmin.workloads.models import Pod, PodDevice
from tests.e2e.browser import NARROW, WIDE, enter, picture, watched

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

EVIL = (
    "</script></svg><img src=x onerror=alert(1)><script>alert(1)</script>"
    "\"'><a href=javascript:alert(1)>=1+1\u202egnp.exe\x1b[31mred\x1b]0;t\x07"
    " {{ 'inj'|add:'ected' }} {% now %}"
)
PAGES = ["/", "/nodes", "/nodes/h100-02", "/nodes/t4-01", "/findings", "/operations", "/setup"]
SEARCHES = ["/search?q=onerror", "/nodes?namespace=%3Cimg%20src%3Dx%3E&model=%3Cb%3E&q=%22%3E"]
FILES = ["/nodes.csv", "/findings.csv", "/pods.csv", "/operations.csv"]
KEPT = {"uid", "phase", "object_kind", "code", "severity", "status", "state", "memory_kind"}
NAMES = {("Node", "name"), ("Pod", "node_name"), ("Finding", "node_name"), ("Cluster", "name")}


def poison(model: type[Model]) -> None:
    """Every text and every JSON text of every row, but what addresses and states are made of."""
    for row in model._default_manager.all():
        for one in model._meta.concrete_fields:
            kind, name = one.get_internal_type(), one.name
            if name in KEPT or (model.__name__, name) in NAMES or one.unique:
                continue
            if kind in ("CharField", "TextField"):
                setattr(row, name, _fitting(row, one.attname, getattr(one, "max_length", None)))
        row.save()


def _fitting(row: Any, name: str, most: int | None) -> str:
    """The evil text, with the row's key where rows must differ."""
    unique = f"{row.pk}" if name in ("uuid", "object_uid", "pod_name", "device_id") else ""
    return (unique + EVIL)[: most or 2000]


@pytest.fixture
def poisoned(fleet: Cluster) -> Cluster:
    for model in (Pod, PodDevice, Gpu, MigInstance, AgentState, Finding):
        poison(model)
    Node.objects.update(
        labels={EVIL[:63]: EVIL, "nvidia.com/gpu.product": EVIL, "nvidia.com/mig.config": EVIL},
        taints=[{"key": EVIL, "value": EVIL, "effect": "NoSchedule"}],
        conditions=[{"type": EVIL, "status": EVIL, "message": EVIL, "reason": EVIL}],
        info={"kubeletVersion": EVIL, "osImage": EVIL, "containerRuntimeVersion": EVIL},
        ready_reason=EVIL,
    )
    Pod.objects.filter(phase="Pending").update(owner_name=EVIL[:200], requests={EVIL: 3})
    Cluster.objects.update(nodes_error=EVIL, version=EVIL[:60], account=EVIL[:253])
    return fleet


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1440", "390"])
def test_hostile_words_are_text_on_every_page(
    live_server: LiveServer,
    browser: Browser,
    poisoned: Cluster,
    people: dict[Role, str],
    size: tuple[int, int],
) -> None:
    dialogs: list[str] = []
    asked: list[str] = []

    def opened(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    with watched(browser, live_server.url, size=size) as shown:
        page = shown.page
        page.on("dialog", opened)
        page.on("request", lambda request: asked.append(request.url))
        enter(page, live_server.url, people[Role.OPERATOR])
        for address in [*PAGES, *SEARCHES]:
            page.goto(address)
            page.wait_for_load_state("networkidle")
            injected = page.locator("img, [onerror], a[href^='javascript'], body script")
            assert injected.count() == 0, address
            words = page.evaluate("document.documentElement.outerHTML")
            assert not any(bad in words for bad in ("\u202e", "\x1b", "\x07")), address
            assert "injected" not in words, address
            assert shown.sideways() == [], address
        expect(page.locator("main")).to_be_visible()
        assert dialogs == []
        assert [text for text in shown.complaints if "/setup" not in text] == []
        assert [url for url in asked if not url.startswith(live_server.url)] == []
        assert not any(url.endswith("/x") for url in asked)


def test_hostile_words_are_text_in_files_and_over_rest(
    live_server: LiveServer, browser: Browser, poisoned: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        enter(shown.page, live_server.url, people[Role.VIEWER])
        for address in FILES:
            answer = shown.page.request.get(address)
            assert answer.headers["content-type"] == "text/csv; charset=utf-8"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert not any(bad in answer.text() for bad in ("\u202e", "\x1b", "\x07")), address
        told = shown.page.request.get("/api/v1/findings")
        assert told.headers["content-type"].startswith("application/json")
        assert json.loads(told.text())["count"] > 0


@pytest.mark.parametrize(("size", "theme"), [(WIDE, "light"), (NARROW, "dark")])
def test_charts_are_whole_and_readable_in_both_themes(
    live_server: LiveServer,
    browser: Browser,
    fleet: Cluster,
    people: dict[Role, str],
    size: tuple[int, int],
    theme: Any,
) -> None:
    now = timezone.now()
    keep_partitions(now - timedelta(days=1), 240)
    rows = []
    for gpu in Gpu.objects.filter(node__name="h100-02"):
        for minute in [*range(150), *range(200, 350)]:
            wave = (minute * 7 + gpu.index * 31) % 60
            at = now - timedelta(minutes=minute)
            rows.append(ReadingRow(at, gpu.pk, (20 + wave) * 2**30, 200.0 + wave, wave, 40 + wave))
    copy_readings(rows)
    with watched(browser, live_server.url, size=size, theme=theme) as shown:
        enter(shown.page, live_server.url, people[Role.VIEWER])
        shown.page.goto("/nodes/h100-02")
        shown.page.get_by_text("The same as figures").click()
        picture(shown.page, f"charts-{theme}-{size[0]}", whole=True)
        assert shown.page.locator(".charts .line").count() == 4 * 8
        assert shown.axe() == []
        assert shown.sideways() == []
        shown.page.get_by_role("link", name="24 h").click()
        expect(shown.page.get_by_text("one point is 10 min")).to_be_visible()
        assert shown.complaints == []
