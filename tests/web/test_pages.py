"""Every page for every role and state, through the addresses that people use."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role
from gpuadmin.collect.findings import refresh_findings
from gpuadmin.fleet.models import AgentState, Cluster, Gpu, Heartbeat, Node
from gpuadmin.workloads.models import Pod, PodDevice
from tests.web import world
from tests.web.conftest import signed_in

PAGES = ["/", "/nodes", "/nodes/h100-02", "/nodes/t4-01", "/findings", "/operations", "/setup"]
HOSTILE = "<script>alert(1)</script>\x1b[31m"


def html(client: Client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, address
    return response.content.decode()


def text(client: Client, address: str) -> str:
    """What a person reads: without tags, spaces joined."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html(client, address)))


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.ADMIN])
def test_every_page_renders_for_every_role_without_inline_style_or_script(
    cluster: Cluster, role: Role
) -> None:
    client = signed_in(role)
    for address in PAGES:
        page = html(client, address)
        assert "{%" not in page
        assert "{{" not in page
        assert not re.search(r'\sstyle="|<style|<script(?![^>]*\ssrc=)|\son\w+="', page), address


def test_a_viewer_sees_no_way_to_change_anything(cluster: Cluster, viewer: Client) -> None:
    for address in ("/nodes", "/nodes/h100-02"):
        assert "taint?" not in html(viewer, address)
        assert "data-pick" not in html(viewer, address)
    response = viewer.get("/nodes/taint?node=h100-02")
    assert response.status_code == 403
    assert "It takes operator to preview, add, remove and undo taints" in response.content.decode()


def test_somebody_without_a_role_is_told_so_on_every_page(cluster: Cluster) -> None:
    client = signed_in(Role.NONE)
    for address in PAGES:
        response = client.get(address)
        assert response.status_code == 403
        assert "has no role here" in response.content.decode()


def test_a_stranger_is_asked_to_sign_in_and_comes_back(cluster: Cluster, client: Client) -> None:
    world.person("v.stone", Role.VIEWER, "correct horse battery")
    response = client.get("/nodes?sort=-free")
    assert response["Location"] == "/sign-in?next=/nodes%3Fsort%3D-free"
    answer = client.post(
        response["Location"],
        {"username": "v.stone", "password": "correct horse battery", "next": "/nodes?sort=-free"},
    )
    assert answer["Location"] == "/nodes?sort=-free"


def test_a_session_that_ended_sends_a_live_page_to_sign_in(cluster: Cluster) -> None:
    response = Client().get("/", headers={"HX-Request": "true"})
    assert response["HX-Redirect"] == "/sign-in?next=/"


def test_a_locked_name_is_told_so_in_one_sentence(db: None, client: Client) -> None:
    world.person("v.stone", Role.VIEWER, "correct horse battery")
    answers = [
        client.post("/sign-in", {"username": "v.stone", "password": f"wrong {n}"}) for n in range(6)
    ]
    assert answers[0].status_code == 200
    assert "do not fit together" in answers[0].content.decode()
    assert answers[-1].status_code == 429
    assert "locked from your address for 15 m" in answers[-1].content.decode()


def test_the_five_figures_and_the_parts_that_add_up(cluster: Cluster, viewer: Client) -> None:
    read = text(viewer, "/")
    assert "Owned 73 12 nodes · 6 models" in read
    assert "Working 68 1 failed · 4 not observed" in read
    assert "Held but idle 5" in read
    [parts] = re.findall(r'aria-label="73 cards: ([^"]+)"', html(viewer, "/"))
    assert sum(map(int, re.findall(r"\d+", parts))) == 73


def test_what_nobody_measures_is_a_dash_with_the_reason_never_a_zero(
    cluster: Cluster, viewer: Client
) -> None:
    page = html(viewer, "/nodes")
    row = page[page.index('data-key="t4-01"') : page.index("</tr>", page.index('data-key="t4-01"'))]
    reason = "The DaemonSet&#x27;s node selector does not match this node"
    for column in ("Busy", "Hottest", "Sharing", "Driver"):
        cell = row[row.index(f'data-l="{column}"') :].split("</td>")[0]
        assert "–" in cell
        assert reason in cell


def test_without_the_right_to_list_pods_requested_and_free_are_dashes(
    cluster: Cluster, viewer: Client
) -> None:
    Cluster.objects.update(pods_forbidden=True, pods_observed_at=None)
    assert "Capacity is here; requested and free are not." in text(viewer, "/nodes")
    page = html(viewer, "/nodes")
    requested = re.findall(r'data-l="Requested">(.*?)</td>', page, re.S)
    assert len(requested) == 12
    assert all("–" in cell and not re.search(r">\d", cell) for cell in requested)
    overview = text(viewer, "/")
    assert "We may not list pods" in overview
    assert re.search(r"Allocated – unknown of 73", overview)


def test_sorting_and_filters_are_the_address(cluster: Cluster, viewer: Client) -> None:
    def names(query: str) -> list[str]:
        return re.findall(r'<tr data-key="([^"]+)"', html(viewer, f"/nodes{query}"))

    assert names("")[:2] == ["h100-02", "t4-01"]
    assert names("?sort=node") == sorted(names(""))
    assert names("?sort=-node") == sorted(names(""), reverse=True)
    assert names("?model=L40S&sort=node") == ["l40s-01", "l40s-02"]
    assert names("?namespace=vision&model=H100&sort=node") == ["h100-02", "h100-03"]
    assert names("?use=failed") == ["h100-02"]
    assert "h100-04" not in names("?free=1")
    assert names("?state=silent") == ["t4-01"]
    assert len(names("?sort=nonsense&state=nonsense&use=nonsense")) == 12
    assert "No node matches these filters" in text(viewer, "/nodes?model=L40S&namespace=vision")


@pytest.mark.parametrize("way", ["", "-"])
@pytest.mark.parametrize("column", ["busy", "hottest", "sharing", "driver", "seen"])
def test_what_is_unknown_sorts_last_either_way(
    cluster: Cluster, viewer: Client, column: str, way: str
) -> None:
    page = html(viewer, f"/nodes?sort={way}{column}")
    assert re.findall(r'<tr data-key="([^"]+)"', page)[-1] == "t4-01"


def test_counts_sort_by_whole_cards_before_slices_and_slots(
    cluster: Cluster, viewer: Client
) -> None:
    Pod.objects.all().delete()
    for name, amounts in {
        "h100-01": {"nvidia.com/gpu": 1},
        "h100-03": {"nvidia.com/mig-1g.10gb": 7},
        "h100-04": {"nvidia.com/gpu.shared": 40},
    }.items():
        Node.objects.filter(name=name).update(capacity=amounts, allocatable=amounts)
    page = html(viewer, "/nodes?model=H100&sort=allocatable")
    found = re.findall(r'<tr data-key="([^"]+)"', page)
    assert found == ["h100-04", "h100-03", "h100-01", "h100-02"]
    Cluster.objects.update(pods_forbidden=True, pods_observed_at=None)
    page = html(viewer, "/nodes?sort=-free")
    names = re.findall(r'<tr data-key="([^"]+)"', page)
    assert names == sorted(names)


def test_a_hundred_rows_a_page(cluster: Cluster, viewer: Client, now: datetime) -> None:
    _many_nodes(cluster, now, 150)
    assert html(viewer, "/nodes").count("<tr data-key=") == 100
    assert "101–162 of 162" in text(viewer, "/nodes?page=2")


def _many_nodes(cluster: Cluster, now: datetime, number: int) -> None:
    Node.objects.bulk_create(
        Node(
            cluster=cluster,
            uid=f"many-{n}",
            name=f"many-{n:03}",
            observed_at=now,
            ready=True,
            is_gpu_node=True,
            capacity={"nvidia.com/gpu": 1},
            allocatable={"nvidia.com/gpu": 1},
        )
        for n in range(number)
    )


@pytest.mark.parametrize("address", ["/", "/nodes", "/findings", "/setup"])
def test_the_number_of_queries_does_not_grow_with_the_rows(
    cluster: Cluster, viewer: Client, now: datetime, address: str
) -> None:
    viewer.get(address)
    with CaptureQueriesContext(connection) as few:
        viewer.get(address)
    _many_nodes(cluster, now, 50)
    with CaptureQueriesContext(connection) as many:
        viewer.get(address)
    assert len(many) == len(few)


def test_text_of_the_cluster_stays_text(cluster: Cluster, operator: Client) -> None:
    node = Node.objects.get(name="h100-02")
    node.labels["evil"] = HOSTILE
    node.taints = [{"key": HOSTILE, "value": HOSTILE, "effect": "NoSchedule"}]
    node.conditions = [{"type": HOSTILE, "status": HOSTILE, "message": HOSTILE}]
    node.ready, node.ready_reason = False, HOSTILE
    node.save()
    Gpu.objects.filter(node=node).update(name=HOSTILE, error=HOSTILE, state="lost")
    AgentState.objects.update(reason=HOSTILE, driver_version="<b>&", status="bad_answer")
    Pod.objects.update(name=HOSTILE, message=HOSTILE, reason=HOSTILE)
    Heartbeat.objects.update(ok=False, message=HOSTILE)
    refresh_findings(cluster, node.observed_at)
    for address in PAGES:
        page = html(operator, address)
        assert "<script>alert" not in page, address
        assert "\x1b" not in page, address


def test_of_the_schedulers_message_the_first_sentence_is_shown_and_the_rest_is_folded(
    cluster: Cluster, viewer: Client
) -> None:
    page = html(viewer, "/findings")
    first = "0/12 nodes are available: 3 Insufficient nvidia.com/gpu, 2 were unschedulable"
    assert f"<summary>{first}</summary>preemption: 0/12 nodes" in page
    assert "preemption" not in re.sub(r"</summary>.*?</details>", "", page)


def test_an_unchanged_page_is_answered_with_204(cluster: Cluster, viewer: Client) -> None:
    first = html(viewer, "/")
    match = re.search(r'data-hash="([0-9a-f]+)"', first)
    assert match
    headers = {"If-None-Match": match[1], "HX-Request": "true"}
    assert viewer.get("/", headers=headers).status_code == 204
    Gpu.objects.filter(node__name="h100-01", index=0).update(utilization_percent=17)
    answer = viewer.get("/", headers=headers)
    assert answer.status_code == 200
    assert "17 % busy" in answer.content.decode()


def test_late_data_is_said_at_the_title_and_in_a_banner_and_keeps_its_numbers(
    cluster: Cluster, viewer: Client, now: datetime
) -> None:
    old = now - timedelta(minutes=41)
    Heartbeat.objects.filter(kind__startswith="watch").update(
        ok=False, ok_at=old, message="The API server at https://10.0.0.1:6443 can't be reached"
    )
    page = html(viewer, "/")
    assert 'class="heart late"' in page
    assert "can&#x27;t be reached" in page
    assert "Owned 73" in text(viewer, "/")
    assert "41 m ago" in text(viewer, "/")


def test_when_every_agent_is_silent_use_is_unknown_not_zero_and_no_old_reading_passes_for_new(
    cluster: Cluster, viewer: Client, now: datetime
) -> None:
    AgentState.objects.filter(reported_at__isnull=False).update(
        status="unreachable", reported_at=now - timedelta(minutes=41), reason="No answer in 5 s."
    )
    assert "Busy – use is not measured" in text(viewer, "/")
    assert "Held but idle – use is not measured" in text(viewer, "/")
    assert "0 busy" not in text(viewer, "/")
    assert html(viewer, "/").count('title="No held card has a current reading of its use"') == 2
    node = text(viewer, "/nodes/h100-02")
    assert "Agent silent. No answer in 5 s. Capacity is the API" in node
    assert "% mem" not in node


def test_empty_states_say_what_is_missing(db: None, viewer: Client, now: datetime) -> None:
    assert "No cluster yet" in text(viewer, "/")
    cluster = Cluster.objects.create(name="bare")
    assert "Never read the agents yet" in text(viewer, "/")
    assert "The cluster has not been read yet" in text(viewer, "/nodes")
    world.beat(cluster, now)
    assert "This cluster has no GPU nodes" in text(viewer, "/")
    assert "This cluster has no GPU nodes" in text(viewer, "/nodes")
    assert "Nothing that we look for" in text(viewer, "/findings")
    assert "Nothing has been changed yet" in text(viewer, "/operations")


def test_a_node_that_is_gone_is_a_404_that_says_so(cluster: Cluster, viewer: Client) -> None:
    response = viewer.get("/nodes/nobody")
    assert response.status_code == 404
    assert "There is no node “nobody”" in response.content.decode()
    assert "There is no such page" in viewer.get("/nowhere").content.decode()


def test_slices_are_drawn_to_scale_with_the_pods_in_them(cluster: Cluster, viewer: Client) -> None:
    page = html(viewer, "/nodes/h100-02")
    card = page[page.index('id="gpu-4"') : page.index('id="gpu-5"')]
    assert re.findall(r'class="blk (r\d x\d)', card) == ["r1 x2", "r3 x2", "r5 x4"]
    assert "segment-train-0" in card
    seven = page[page.index('id="gpu-5"') : page.index('id="gpu-6"')]
    assert re.findall(r'class="blk (r\d x\d)', seven)[-1] == "r8 x1"
    assert "not used" in seven
    slots = page[page.index('id="gpu-6"') : page.index('id="gpu-7"')]
    assert "7g × 4 slots" in slots
    assert slots.count("free</span>") == 2
    lost = page[page.index('id="gpu-7"') :]
    assert "still bound, cannot work" in lost


def test_of_thousands_of_slots_sixteen_are_drawn_the_held_ones_first(
    cluster: Cluster, viewer: Client
) -> None:
    device = PodDevice.objects.filter(node__name="l40s-02", slot=0).first()
    assert device
    PodDevice.objects.filter(pk=device.pk).update(slot=60_000)
    page = html(viewer, "/nodes/l40s-02")
    index = Gpu.objects.get(uuid=device.gpu_uuid).index
    card = page[page.index(f'id="gpu-{index}"') :].split("</article>")[0]
    assert card.count('class="blk') == 17
    assert "slot 60001" in card
    assert "60\u202f001 slots" in card
    assert "and 59\u202f985 more" in card
    assert f"of {60_001} slots held" in html(viewer, "/")


def test_a_disabled_person_is_out_at_once(cluster: Cluster, viewer: Client) -> None:
    assert viewer.get("/").status_code == 200
    User.objects.update(is_active=False)
    assert viewer.get("/").status_code == 302
