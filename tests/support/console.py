"""What an administrator sees: the REST interface and the pages, signed in as a viewer."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any

from django.test import Client
from rest_framework.test import APIClient

from gpuadmin.accounts.audit import COMMAND
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import set_role
from gpuadmin.accounts.tokens import create_token

Json = dict[str, Any]


@dataclass(frozen=True)
class Shown:
    """A page: its HTML with the entities resolved, and the words that a reader sees."""

    html: str

    @property
    def text(self) -> str:
        return " ".join(re.sub(r"<[^>]+>", " ", self.html).split())


class Console:
    """Reads only through the two doors that people and programs have."""

    def __init__(self, role: Role = Role.VIEWER) -> None:
        user = User.objects.create_user(f"case-{role.label}")
        set_role(COMMAND, user.username, role)
        token = create_token(COMMAND, user.username, "cases", cap=None, days=1)
        self.api = APIClient()
        self.api.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
        self.browser = Client()
        self.browser.force_login(user)

    def all(self, noun: str) -> list[Json]:
        """Every item of a list, by following its pages."""
        found: list[Json] = []
        address: str | None = f"/api/v1/{noun}?page_size=500"
        while address:
            answer = self.api.get(address)
            assert answer.status_code == 200, answer.content
            body = answer.json()
            found += body["results"]
            address = body["next"]
        return found

    def by(self, noun: str, key: str = "name") -> dict[str, Json]:
        """A list by one of its fields."""
        return {item[key]: item for item in self.all(noun)}

    def one(self, noun: str, name: str, key: str = "name") -> Json:
        """One item of a list, which must be there."""
        return self.by(noun, key)[name]

    def resource(self, node: str, name: str = "nvidia.com/gpu") -> Json:
        """One row of a node's resources."""
        rows = self.one("nodes", node)["resources"]["items"]
        found: Json = next(row for row in rows if row["name"] == name)
        return found

    def page(self, address: str = "/") -> Shown:
        """A page, which must come."""
        answer = self.browser.get(address)
        assert answer.status_code == 200, address
        return Shown(html.unescape(answer.content.decode()))
