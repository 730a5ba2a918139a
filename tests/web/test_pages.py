"""Every page for every role and state, through the addresses that people use."""

from __future__ import annotations

import re

import pytest

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Cluster
from tests.web.conftest import signed_in

PAGES = ["/", "/nodes", "/nodes/h100-02", "/nodes/t4-01", "/findings", "/operations", "/setup"]


@pytest.mark.parametrize("address", PAGES)
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.ADMIN])
def test_every_page_renders_for_every_role(cluster: Cluster, address: str, role: Role) -> None:
    response = signed_in(role).get(address)
    assert response.status_code == 200
    html = response.content.decode()
    assert "{%" not in html
    assert "{{" not in html
    assert not re.search(r'\sstyle="|<script(?![^>]*\ssrc=)|\son\w+="', html)
