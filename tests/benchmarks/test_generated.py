"""The generated fleets: as large as real objects are, the same each time, served like a list."""

from __future__ import annotations

import itertools

import msgspec

from benchmarks import generate
from benchmarks.replay import EVENTS_PER_POD, Replay, lives
from gpuadmin.kube import structs
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.connection import Connection
from gpuadmin.kube.objects import Unreadable, reader
from gpuadmin.kube.stream import Changed, Listed, stream


def test_generated_objects_have_the_sizes_of_real_ones_and_never_change() -> None:
    nodes = [len(msgspec.json.encode(one)) for one in generate.nodes(20)]
    pods = [len(msgspec.json.encode(one)) for one in generate.pods(200, 0.3, 20)]
    assert all(9_500 < size < 10_500 for size in nodes)
    assert all(5_700 < size < 6_300 for size in pods)
    assert generate.node(7) == generate.node(7)


def test_no_generated_node_is_asked_for_more_cards_than_it_has() -> None:
    asked: dict[str, int] = {}
    for one in generate.pods(1000, 0.3, 100):
        requests = one["spec"]["containers"][0]["resources"]["requests"]
        node = one["spec"]["nodeName"]
        asked[node] = asked.get(node, 0) + int(requests.get("nvidia.com/gpu", 0))
    assert set(asked.values()) == {7}


def test_a_replay_is_listed_in_pages_and_its_events_follow() -> None:
    pages = generate.pages(generate.pods(1100, 0.3, 10), "PodList")
    assert len(pages) == 3
    events = lives(400, 0.3, 10, first=1100)
    with Replay(generate.pages([], "NodeList"), pages, events, rate=10_000) as replay:
        client = KubeClient(Connection(replay.url, lambda: None))
        changes = stream(client, "/api/v1/pods", reader(structs.Pod), sleep=lambda _: True)
        listed = next(changes)
        came = (one for one in changes if isinstance(one, Changed | Unreadable))
        changed = list(itertools.islice(came, 400))
        assert replay.late_seconds < 5
    assert isinstance(listed, Listed)
    assert len(listed.items) == 1100
    assert not any(isinstance(item, Unreadable) for item in listed.items)
    gone = [one for one in changed if isinstance(one, Changed) and one.gone]
    assert len(gone) == 400 // EVENTS_PER_POD
