"""The search box and its page: what people have at hand leads to where the thing is shown."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gpuadmin.fleet.models import Cluster, Gpu, MigInstance, Node
from gpuadmin.workloads.models import Pod

BOX = {"HX-Request": "true", "HX-Target": "found"}


def box(client: Client, text: str) -> str:
    return client.get("/search", {"q": text}, headers=BOX).content.decode()


def test_a_node_is_found_by_any_part_of_its_name_in_either_case(
    cluster: Cluster, viewer: Client
) -> None:
    assert 'href="/nodes/h100-02"' in box(viewer, "100-02")
    assert 'href="/nodes/h100-02"' in box(viewer, "H100-02")


def test_the_only_find_is_where_the_page_goes(cluster: Cluster, viewer: Client) -> None:
    assert viewer.get("/search?q=h200-01")["Location"] == "/nodes/h200-01"


def test_a_card_is_found_by_uuid_serial_and_by_a_mig_device_of_it(
    cluster: Cluster, viewer: Client
) -> None:
    gpu = Gpu.objects.get(node__name="h100-02", index=3)
    Gpu.objects.filter(pk=gpu.pk).update(serial="1654221000042")
    for text in (gpu.uuid, gpu.uuid[4:16].upper(), "1654221000042"):
        assert viewer.get("/search", {"q": text})["Location"] == "/nodes/h100-02#gpu-3"
    device = MigInstance.objects.filter(gpu__node__name="a100-03").first()
    assert device is not None
    address = viewer.get("/search", {"q": device.uuid})["Location"]
    assert address == f"/nodes/a100-03#gpu-{device.gpu.index}"


def test_pods_and_namespaces_are_groups_of_their_own(cluster: Cluster, viewer: Client) -> None:
    shown = box(viewer, "llm-train")
    assert 'href="/nodes?namespace=llm-train"' in shown
    pod = Pod.objects.filter(phase="Pending", node_name="").first()
    assert pod is not None
    assert "waits for a node" in box(viewer, pod.name)


def test_more_than_eight_of_a_kind_are_said(cluster: Cluster, viewer: Client) -> None:
    assert "the first 8" in box(viewer, "-0")


@pytest.mark.parametrize("text", ["", "h", "   "])
def test_less_than_two_characters_find_nothing_and_it_is_said(
    cluster: Cluster, viewer: Client, text: str
) -> None:
    assert "At least two characters" in box(viewer, text)


def test_nothing_found_is_a_sentence_with_the_text_as_text(
    cluster: Cluster, viewer: Client
) -> None:
    assert "Nothing has “&lt;b&gt;no%” in its name." in box(viewer, "<b>no%")


def test_what_is_gone_is_not_found(cluster: Cluster, viewer: Client) -> None:
    Node.objects.filter(name="h200-01").update(gone_at=cluster.created_at)
    assert "Nothing has" in box(viewer, "h200-01")


def test_rest_finds_the_same(cluster: Cluster, viewer: Client) -> None:
    found = viewer.get("/api/v1/search?q=l40s-0").json()
    assert [node["name"] for node in found["nodes"]] == ["l40s-01", "l40s-02"]
    assert found["gpus"] == []
    assert found["more"] == []


def test_a_search_asks_a_fixed_number_of_times(cluster: Cluster, viewer: Client) -> None:
    asked = []
    for text in ("h200-01", "00"):
        with CaptureQueriesContext(connection) as queries:
            box(viewer, text)
        asked.append(len(queries))
    assert asked[0] == asked[1]
