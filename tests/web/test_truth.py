"""What a page may say of what nobody sees now: silent agents, cards without one, states."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from django.test import Client

from gpuadmin.fleet.models import AgentState, Cluster, Gpu, Node
from tests.web.test_pages import html, text


def silence(node: str, now: datetime) -> None:
    """The node's agent reported ten minutes ago and does not answer since."""
    AgentState.objects.filter(node__name=node).update(
        status=AgentState.Status.UNREACHABLE,
        reason="No answer within 3 s.",
        since=now - timedelta(minutes=9),
        reported_at=now - timedelta(minutes=10),
    )
    Gpu.objects.filter(node__name=node).update(read_at=now - timedelta(minutes=10))


def test_cards_of_a_silent_agent_are_owned_but_nobody_vouches_that_they_work(
    cluster: Cluster, viewer: Client, now: datetime
) -> None:
    silence("h100-01", now)
    assert "Working 60 1 failed · 12 not observed" in text(viewer, "/")


def test_the_node_of_a_silent_agent_shows_its_last_values_dimmed_with_their_age(
    cluster: Cluster, viewer: Client, now: datetime
) -> None:
    silence("h200-01", now)
    page = html(viewer, "/nodes/h200-01")
    assert "those of the last report, 10 m ago , and dimmed" in text(viewer, "/nodes/h200-01")
    read = Gpu.objects.get(node__name="h200-01", index=0)
    assert read.temperature_celsius is not None
    dimmed = re.findall(r'<span class="old" title="temperature: ([^"]+)">([^<]+)', page)
    assert dimmed[0] == (
        f"No answer within 3 s; no reading since {read.read_at:%d %b %H:%M} UTC",
        f"{read.temperature_celsius}°",
    )
    assert 'class="old"' not in html(viewer, "/nodes/h100-01")


def test_c24_without_an_agent_nobody_says_which_of_the_cards_are_held(
    cluster: Cluster, viewer: Client
) -> None:
    labels = re.findall(r'aria-label="(t4-01 GPU [^"]+)"', html(viewer, "/nodes/t4-01"))
    assert len(labels) == 4
    which = "unknown (of 4 cards: 1 free now, 3 held, not measurable; only an agent can tell which)"
    assert all(label.endswith(which) for label in labels)


def test_idle_is_not_said_to_be_nothing_where_held_cards_can_not_be_measured(
    cluster: Cluster, viewer: Client
) -> None:
    Gpu.objects.update(idle_since=None)
    overview = text(viewer, "/")
    assert re.search(r"Held but idle 0 known · \d+ not measurable", overview)
    assert "no card is wasted" not in overview


def test_the_overview_and_the_side_bar_count_the_same_findings(
    cluster: Cluster, viewer: Client
) -> None:
    page = text(viewer, "/")
    [critical, warnings] = re.search(r"(\d+) critical · (\d+) warnings", page).groups()  # type: ignore[union-attr]
    count = int(critical) + int(warnings)
    assert f"Findings {count}" in page
    assert f"All {count} findings" in page


def test_every_state_of_a_node_is_in_its_row_and_odd_words_explain_themselves(
    cluster: Cluster, viewer: Client
) -> None:
    Node.objects.filter(name="t4-01").update(
        taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}]
    )
    page = html(viewer, "/nodes")
    row = page[page.index('data-key="t4-01"') :].split("</tr>")[0]
    assert "No agent" in row
    assert "Tainted" in row
    assert 'title="Pods that do not tolerate team:NoSchedule stay away"' in row


def test_where_nobody_listens_no_xid_is_not_said_to_be_none(
    cluster: Cluster, viewer: Client
) -> None:
    assert "Nobody listens for XIDs here now" in text(viewer, "/nodes/t4-01")
    assert "No XID and no change is on record." in text(viewer, "/nodes/h200-01")
