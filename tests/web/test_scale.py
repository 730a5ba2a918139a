"""Pages of a large fleet: as many queries as for a small one, and few bytes."""

from __future__ import annotations

import gzip
from datetime import datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Gpu
from gpuadmin.fleet.rows import cards_of
from tests.web import fleet
from tests.web.conftest import signed_in

PAGES = ["/", "/nodes", "/nodes?sort=-free&state=silent", "/findings"]
NODES = 300  # 2,400 cards: beyond what is drawn with whole sentences


@pytest.mark.django_db
@pytest.mark.parametrize("address", PAGES)
def test_a_page_asks_as_often_for_300_nodes_as_for_12(address: str, now: datetime) -> None:
    client = signed_in(Role.OPERATOR)
    asked = []
    for nodes in (12, NODES):
        cluster = fleet.build(now, nodes)
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        asked.append(len(queries))
        cluster.delete()
    assert asked[0] == asked[1]


@pytest.mark.django_db
def test_the_map_of_a_large_fleet_costs_a_card_few_bytes(now: datetime) -> None:
    fleet.build(now, NODES)
    page = signed_in(Role.VIEWER).get("/").content
    assert b"GPU-0000" not in page
    assert len(gzip.compress(page)) / (NODES * fleet.CARDS) < 14


@pytest.mark.django_db
def test_rows_read_at_once_are_those_that_django_reads(now: datetime) -> None:
    fleet.build(now, 12)
    read = cards_of(Gpu.objects.all(), without=("processes",))
    for quick, slow in zip(read, Gpu.objects.prefetch_related("instances"), strict=True):
        assert [getattr(quick, f.attname) for f in Gpu._meta.fields] == [
            getattr(slow, f.attname) for f in Gpu._meta.fields
        ]
        assert list(quick.instances.all()) == list(slow.instances.all())
        assert quick.node == slow.node
