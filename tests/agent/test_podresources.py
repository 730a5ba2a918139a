"""Who holds which device, asked of a kubelet over real gRPC on a unix socket."""

from __future__ import annotations

import socket as sockets
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from agent.contract.report import PodDevices
from agent.protos.podresources_pb2 import ListPodResourcesRequest, ListPodResourcesResponse
from tests.agent.conftest import OpenDoor
from tests.agent.kubelet import kubelet, pod
from tests.agent.world import card, gpu_uuid

GPU = "nvidia.com/gpu"
A0, A1 = gpu_uuid(0xA0), gpu_uuid(0xA1)


@pytest.fixture
def socket() -> Iterator[Path]:
    """A short path: unix sockets take at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as folder:
        yield Path(folder) / "kubelet.sock"


def test_pods_are_listed_with_their_devices(open_door: OpenDoor, socket: Path) -> None:
    door = open_door(card(0), card(1), kubelet_socket=socket)

    with kubelet(socket, pod("train", main=[(GPU, [A0])]), pod("web", main=[])):
        pods = door.report().pods

    assert pods is not None
    (train,) = pods
    assert (train.namespace, train.pod, train.container, train.resource) == (
        "llm",
        "train",
        "main",
        GPU,
    )
    assert [device.gpu_uuid for device in train.devices] == [A0]


def test_c30_devices_split_over_numa_nodes_are_put_together(
    open_door: OpenDoor, socket: Path
) -> None:
    door = open_door(card(0), card(1), kubelet_socket=socket)
    split = pod("train", main=[(GPU, [A0]), ("example.com/nic", ["nic-1"]), (GPU, [A1])])

    with kubelet(socket, split):
        pods = door.report().pods

    assert ids(pods) == {("main", GPU): [A0, A1], ("main", "example.com/nic"): ["nic-1"]}


def test_sidecars_are_containers_of_their_own(open_door: OpenDoor, socket: Path) -> None:
    door = open_door(card(0), card(1), kubelet_socket=socket)

    with kubelet(socket, pod("train", main=[(GPU, [A0])], sidecar=[(GPU, [A1])])):
        pods = door.report().pods

    assert ids(pods) == {("main", GPU): [A0], ("sidecar", GPU): [A1]}


def test_c30_an_index_is_resolved_by_the_agents_own_table(
    open_door: OpenDoor, socket: Path
) -> None:
    door = open_door(card(0), card(1), kubelet_socket=socket)

    with kubelet(socket, pod("shared", main=[(GPU, ["nvidia1/vgpu2", "odd-one"])])):
        pods = door.report().pods

    assert pods is not None
    indexed, odd = pods[0].devices
    assert (indexed.gpu_uuid, indexed.slot) == (A1, 2)
    assert (odd.id, odd.recognised) == ("odd-one", False)


def test_more_pods_than_grpc_takes_by_default_are_read(open_door: OpenDoor, socket: Path) -> None:
    door = open_door(card(0), kubelet_socket=socket)
    many = [pod(f"pod-{number}" + "x" * 5000, main=[(GPU, [A0])]) for number in range(1000)]

    with kubelet(socket, *many):
        pods = door.report().pods

    assert pods is not None
    assert len(pods) == 1000


def test_no_socket_spoils_nothing_but_the_pods(open_door: OpenDoor, socket: Path) -> None:
    door = open_door(card(0), kubelet_socket=socket)

    report = door.report()

    assert (report.state, report.gpus[0].state) == ("ok", "ok")
    assert report.pods is None
    assert report.pods_error is not None
    assert "mount the host's pod-resources folder" in report.pods_error


def test_a_dead_socket_is_told_from_no_pods(open_door: OpenDoor, socket: Path) -> None:
    door = open_door(card(0), kubelet_socket=socket)
    with sockets.socket(sockets.AF_UNIX) as dead:
        dead.bind(str(socket))

        report = door.report()

    assert (report.state, report.pods) == ("ok", None)
    assert report.pods_error is not None
    assert "socket is dead" in report.pods_error


def test_a_kubelet_that_hangs_costs_no_more_than_the_time_limit(
    open_door: OpenDoor, socket: Path
) -> None:
    door = open_door(card(0), kubelet_socket=socket, read_seconds=0.5)
    over = threading.Event()

    def hang(_: ListPodResourcesRequest, __: grpc.ServicerContext) -> ListPodResourcesResponse:
        over.wait(10)
        return ListPodResourcesResponse()

    with kubelet(socket, answer=hang):
        started = time.monotonic()
        report = door.report()
        seconds = time.monotonic() - started
        over.set()

    assert report.gpus[0].state == "ok"
    assert report.pods_error is not None
    assert "did not list" in report.pods_error
    assert seconds < 2


def test_the_kubelets_refusal_is_passed_on(open_door: OpenDoor, socket: Path) -> None:
    door = open_door(card(0), kubelet_socket=socket)

    def refuse(
        _: ListPodResourcesRequest, context: grpc.ServicerContext
    ) -> ListPodResourcesResponse:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        raise AssertionError

    with kubelet(socket, answer=refuse):
        report = door.report()

    assert report.pods_error is not None
    assert "rejected by rate limit" in report.pods_error


def test_a_restarted_kubelet_is_found_again(open_door: OpenDoor, socket: Path) -> None:
    door = open_door(card(0), kubelet_socket=socket)
    with kubelet(socket, pod("before", main=[(GPU, [A0])])):
        assert door.report().pods
    assert door.report().pods is None

    with kubelet(socket, pod("after", main=[(GPU, [A0])])):
        pods = door.report().pods

    assert pods is not None
    assert [each.pod for each in pods] == ["after"]


def ids(pods: tuple[PodDevices, ...] | None) -> dict[tuple[str, str], list[str]]:
    assert pods is not None
    return {
        (each.container, each.resource): [device.id for device in each.devices] for each in pods
    }
