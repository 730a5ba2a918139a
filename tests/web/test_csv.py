"""Tables as files: the same rows as the page, units in the headers, and nothing that calculates."""

from __future__ import annotations

import csv

import pytest
from django.test import Client

from gpuadmin.fleet.models import AgentState, Cluster, Finding, Gpu
from gpuadmin.web.export import cell
from gpuadmin.workloads.models import Pod


def table(client: Client, address: str) -> list[dict[str, str]]:
    answer = client.get(address)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(answer.content.decode().splitlines()))


def test_the_file_has_the_rows_of_the_page_with_its_filters_and_order(
    cluster: Cluster, viewer: Client
) -> None:
    rows = table(viewer, "/nodes.csv?model=H100&sort=-node")
    assert [row["node"] for row in rows] == ["h100-04", "h100-03", "h100-02", "h100-01"]
    assert rows[3]["cards_owned"] == "8"
    assert {row["cluster"] for row in rows} == {"lab-west (simulated)"}


def test_units_stand_in_headers_and_are_not_added_to_each_other(
    cluster: Cluster, viewer: Client
) -> None:
    row = next(row for row in table(viewer, "/nodes.csv") if row["node"] == "h100-02")
    assert row["allocatable_cards"] != row["allocatable_slices"]
    assert "hottest_celsius" in row


def test_unknown_is_an_empty_cell_and_not_zero(cluster: Cluster, viewer: Client) -> None:
    row = next(row for row in table(viewer, "/nodes.csv") if row["node"] == "t4-01")
    assert (row["cards_busy"], row["hottest_celsius"], row["driver"]) == ("", "", "")
    Cluster.objects.update(pods_forbidden=True)
    row = table(viewer, "/nodes.csv")[0]
    assert (row["requested_cards"], row["free_now_cards"]) == ("", "")


def test_the_columns_are_those_of_the_page(cluster: Cluster, viewer: Client) -> None:
    assert list(table(viewer, "/nodes.csv?cols=busy.model")[0]) == [
        "node",
        "uid",
        "model",
        "cards_busy",
        "cluster",
        "read_at",
    ]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "|calc", "＝1+1", "\x1b[0m=1"]
)
def test_what_a_spreadsheet_would_calculate_is_text(text: str) -> None:
    assert str(cell(text)).startswith("'")


def test_numbers_stay_numbers() -> None:
    assert (cell(-3), cell(0), cell(None), cell("h100-01")) == (-3, 0, "", "h100-01")


def test_hostile_names_and_messages_stay_in_their_cell(cluster: Cluster, viewer: Client) -> None:
    pod = Pod.objects.filter(phase="Pending").first()
    assert pod is not None
    Pod.objects.filter(pk=pod.pk).update(message='=HYPERLINK("http://x"),\n"a"\u202e')
    rows = table(viewer, "/pods.csv?waiting=1")
    said = next(row["message"] for row in rows if row["pod"] == pod.name)
    assert said.startswith("'=HYPERLINK(")
    assert "\u202e" not in said


def test_findings_and_operations_are_files_as_well(cluster: Cluster, viewer: Client) -> None:
    rows = table(viewer, "/findings.csv")
    assert len(rows) == Finding.objects.filter(resolved_at=None).count()
    assert table(viewer, "/operations.csv?state=failed") == []


def test_columns_are_remembered_by_the_browser_and_can_be_all_again(
    cluster: Cluster, viewer: Client
) -> None:
    page = viewer.get("/nodes?cols=state.free").content.decode()
    assert 'data-l="Free"' in page
    assert 'data-l="Driver"' not in page
    assert 'data-l="Driver"' not in viewer.get("/nodes").content.decode()
    assert 'data-l="Driver"' in viewer.get("/nodes?cols=all").content.decode()
    assert 'data-l="Driver"' in viewer.get("/nodes").content.decode()


def test_a_silent_agents_last_values_are_no_current_numbers(
    cluster: Cluster, viewer: Client
) -> None:
    AgentState.objects.filter(node__name="h200-01").update(status="unreachable")
    assert Gpu.objects.filter(node__name="h200-01", temperature_celsius__isnull=False).exists()
    row = next(row for row in table(viewer, "/nodes.csv") if row["node"] == "h200-01")
    assert row["hottest_celsius"] == ""
