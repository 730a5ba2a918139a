"""With the right to read alone and without agents, the product shows what kubectl shows.

What cannot be known from there is "–", and nothing else is.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from tests.cluster.console import Console
from tests.cluster.html import Element, parse
from tests.cluster.kubectl_count import Node, Resource, count, waiting
from tests.cluster.mixed_bag import AMD, GPU, NODES, SHARED, SMALL, mixed_bag
from tests.cluster.objects import SETTLE_SECONDS, remove_node
from tests.controlplane.client import Document
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.real_only]

DASH = "–"
# What only an agent on the node can tell …
AGENTS_COLUMNS = {"Busy", "Hottest", "Sharing", "Driver", "Seen"}
AGENTS_PARTS = ("working", "busy", "quiet", "idle")
AGENTS_FIGURES = {"Working", "Busy", "Held but idle"}
# … and nobody tells the model of a node without GPU feature discovery's labels.
UNLABELLED = {"over", "withdrawn", "other-vendor"}
WORDS = {
    "unmeasured": "held, not measurable",
    "free": "free now",
    "blocked": "not schedulable",
    "unknown": "unknown",
}
# (requested, free now, over-committed) by hand, to hold the count itself to something.
BY_HAND = {
    ("whole", GPU): (6, 2, 0),
    ("unhealthy", GPU): (3, 3, 0),
    ("sliced", SMALL): (3, 4, 0),
    ("renamed", SHARED): (3, 13, 0),
    ("cordoned", GPU): (1, 0, 0),
    ("silent", GPU): (2, 0, 0),
    ("tainted", GPU): (0, 0, 0),
    ("over", GPU): (3, 0, 1),
    ("other-vendor", AMD): (1, 3, 0),
}
T = TypeVar("T")


class Cluster:
    """The mixed bag: ``counted`` by kubectl with the product's own rights, ``shown`` by it."""

    def __init__(self, plane: ControlPlane, reader: Path) -> None:
        self.admin = plane.admin
        self._kubectl = partial(plane.kubectl, kubeconfig=reader)

    def agree(self, counted: Callable[[list[Document]], T], shown: Callable[[], T]) -> T:
        """Wait until the product shows what is counted, and return it."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            items = json.loads(self._kubectl("get", "nodes,pods", "-A", "-o", "json"))["items"]
            right, seen = counted(items), shown()
            if right == seen:
                return right
            assert time.monotonic() < end or seen == right
            time.sleep(0.2)


@pytest.fixture
def cluster(console: Console, plane: ControlPlane, reader: Path) -> Iterator[Cluster]:
    with mixed_bag(plane.admin):
        yield Cluster(plane, reader)


def gpu_nodes(items: list[Document]) -> dict[str, Node]:
    return {name: node for name, node in count(items).items() if node.resources}


def test_rest_gives_what_kubectl_shows(console: Console, cluster: Cluster) -> None:
    found = cluster.agree(count, lambda: {n["name"]: of_rest(n) for n in console.all("nodes")})
    assert found.keys() == NODES.keys()
    rows = {at: found[at[0]].resources[at[1]] for at in BY_HAND}
    numbers = {at: (r.requested, r.free_now, r.over_committed) for at, r in rows.items()}
    assert numbers == BY_HAND


def of_rest(node: Document) -> Node:
    cards = node["cards"]
    assert [cards[part] for part in AGENTS_PARTS] == [None] * len(AGENTS_PARTS)
    parts = {part: cards[part] for part in (*WORDS, "failed")}
    names = [one.name for one in fields(Resource)]
    return Node(
        owned=cards["owned"],
        held=cards["allocated"],
        parts=+Counter(parts),
        resources={
            item["name"]: Resource(**{name: item[name] for name in names})
            for item in node["resources"]["items"]
        },
    )


def test_the_nodes_page_shows_the_same_numbers_and_a_dash_for_all_that_agents_tell(
    console: Console, cluster: Cluster
) -> None:
    cluster.agree(
        lambda items: {name: as_row(node) for name, node in gpu_nodes(items).items()},
        lambda: {name: numbers(row) for name, row in table(console).items()},
    )
    dashes = {
        name: {column for column, cell in row.items() if cell.text == DASH}
        for name, row in table(console).items()
    }
    assert dashes == {
        name: AGENTS_COLUMNS | ({"Model"} if name in UNLABELLED else set())
        for name in NODES.keys() - {"no-gpus"}
    }


Row = tuple[str | list[str], ...]  # cards; by resource: allocatable, requested, free now


def as_row(node: Node) -> Row:
    """As the table words it."""
    held = "not known how many are held" if node.held is None else f"{node.held} held"
    cards = f"{node.owned} card{'' if node.owned == 1 else 's'}, {held}"
    shown = [(n, r) for n, r in sorted(node.resources.items()) if r.capacity or r.requested]
    return (
        cards,
        [f"{r.allocatable} {name.removeprefix('nvidia.com/')}" for name, r in shown],
        [str(r.requested) for _, r in shown],
        [str(r.free_now) for _, r in shown],
    )


def numbers(row: dict[str, Element]) -> Row:
    lines = [
        [line.text for line in row[column].one("span", "lines").elements]
        for column in ("Allocatable", "Requested", "Free")
    ]
    return row["Cards"].one("span", "sr").text, *lines


def table(console: Console) -> dict[str, dict[str, Element]]:
    """The cells of each node by the heading of their column."""
    found = parse(console.page("/nodes")).one("table")
    headings = [heading.text for heading in found.all("th")]
    return {
        row.attributes["data-key"]: dict(zip(headings, row.all("td"), strict=True))
        for row in found.one("tbody").all("tr")
    }


def test_the_overview_adds_up_to_what_kubectl_shows(console: Console, cluster: Cluster) -> None:
    cluster.agree(as_overview, lambda: overview(console))
    assert figures(console) == {"Owned": "52", "Allocated": DASH} | dict.fromkeys(
        AGENTS_FIGURES, DASH
    )
    for name, node in cluster.agree(gpu_nodes, lambda: rest_nodes(console)).items():
        if node.held is None:
            remove_node(cluster.admin, name)
    cluster.agree(
        lambda items: str(sum(node.held or 0 for node in gpu_nodes(items).values())),
        lambda: figures(console)["Allocated"],
    )


def rest_nodes(console: Console) -> dict[str, Node]:
    found = {node["name"]: of_rest(node) for node in console.all("nodes")}
    return {name: node for name, node in found.items() if node.resources}


def as_overview(items: list[Document]) -> Document:
    nodes = gpu_nodes(items).values()
    parts = sum((node.parts for node in nodes), Counter[str]())
    slices, slots = (
        [r for node in nodes for r in node.resources.values() if r.unit == unit]
        for unit in ("slice", "slot")
    )
    return {
        "owned": str(sum(node.owned for node in nodes)),
        "parts": {WORDS[part]: str(cards) for part, cards in parts.items()},
        "apart": f"Counted apart: {of(slices)} MIG slices and {of(slots)} time slots are free.",
        "waiting": {name: asks(amounts) for name, amounts in waiting(items).items()},
    }


def of(rows: list[Resource]) -> str:
    return f"{sum(r.free_now for r in rows)} of {sum(r.allocatable for r in rows)}"


def asks(amounts: dict[str, int]) -> str:
    short = ((name.removeprefix("nvidia.com/"), n) for name, n in sorted(amounts.items()))
    return ", ".join(f"{n} × {name}" for name, n in short)


def overview(console: Console) -> Document:
    page = parse(console.page("/"))
    legend = page.one("div", "comp").one("div", "legend").all("span")
    parts = {part.text.split(" ", 1)[1]: part.one("b").text for part in legend if part.all("b")}
    waits = page.one("section", aria_labelledby="waits").all("tr")[1:]
    return {
        "owned": figures(console)["Owned"],
        "parts": {words: cards for words, cards in parts.items() if cards != "0"},
        "apart": page.one("div", "comp").one("p").text,
        "waiting": {pod.one("b").text: pod.one("span", "mono").text for pod in waits},
    }


def figures(console: Console) -> dict[str, str]:
    found = parse(console.page("/")).one("div", "truth").all("a")
    return {figure.one("span", "k").text: figure.one("span", "v").text for figure in found}
