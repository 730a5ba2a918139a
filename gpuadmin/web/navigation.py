"""The pages that exist, with the counts beside them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from gpuadmin.fleet.models import Cluster, Finding
from gpuadmin.fleet.queries import open_findings
from gpuadmin.web.queries import gpu_node_count, under_way

SCHEMA = "/api/v1/schema"


@dataclass(frozen=True)
class Place:
    """A page in the side bar. ``count`` None: it has none to show; ``loud``: it is bad news."""

    title: str
    icon: str
    href: str
    current: bool
    count: int | None = None
    loud: bool = False


def navigation(
    cluster: Cluster, path: str, now: datetime, *, with_users: bool = False
) -> list[Place]:
    """In the order of the side bar."""
    severities = list(open_findings(cluster).values_list("severity", flat=True))
    critical = severities.count(Finding.Severity.CRITICAL)

    def place(
        title: str, icon: str, name: str, count: int | None = None, *, loud: bool = False
    ) -> Place:
        href = reverse(name)
        inside = path == href if href == "/" else path == href or path.startswith(href + "/")
        return Place(title, icon, href, inside, count, loud)

    return [
        place("Overview", "overview", "overview"),
        place("Nodes", "nodes", "nodes", gpu_node_count(cluster)),
        place("Operations", "operations", "operations", under_way(cluster, now).count() or None),
        place("Findings", "alerts", "findings", len(severities) or None, loud=critical > 0),
        place("Set-up", "setup", "setup"),
        *([place("Users", "users", "users")] if with_users else []),
        Place("API", "api", SCHEMA, current=False),
    ]
