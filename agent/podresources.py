"""Who holds which device: the kubelet's PodResources API on its unix socket (contracts.md 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import grpc

from agent.contract.devices import parse_device_id
from agent.contract.report import PodDevices
from agent.protos.podresources_pb2 import (
    ContainerResources,
    ListPodResourcesRequest,
    ListPodResourcesResponse,
)

LIST = "/v1.PodResourcesLister/List"
MAX_MESSAGE_BYTES = 16 * 1024 * 1024  # gRPC's own limit of 4 MiB is too small for a full node
_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.default_authority", "localhost"),  # a socket's path is no authority to Go's server
    ("grpc.enable_http_proxy", 0),
)


class KubeletError(Exception):
    """The kubelet gave no list. The message is one sentence for a person."""


def list_pods(socket: Path, timeout: float) -> ListPodResourcesResponse:
    """The kubelet's answer. Raises ``KubeletError`` after at most ``timeout`` seconds.

    A channel for each call: the kubelet makes its socket anew when it restarts.
    """
    if not socket.exists():
        raise KubeletError(
            f"There is no kubelet socket at {socket}: mount the host's pod-resources folder there."
        )
    with grpc.insecure_channel(f"unix:{socket}", options=_OPTIONS) as channel:
        ask = channel.unary_unary(
            LIST,
            request_serializer=ListPodResourcesRequest.SerializeToString,
            response_deserializer=ListPodResourcesResponse.FromString,
        )
        try:
            answer: ListPodResourcesResponse = ask(ListPodResourcesRequest(), timeout=timeout)
        except grpc.RpcError as error:
            raise KubeletError(_sentence(error, timeout)) from error
    return answer


def held_devices(
    answer: ListPodResourcesResponse, uuid_of_index: Mapping[int, str]
) -> tuple[PodDevices, ...]:
    """One entry per container and resource; what NUMA nodes split is put together again (C30)."""
    return tuple(
        PodDevices(
            namespace=pod.namespace,
            pod=pod.name,
            container=container.name,
            resource=resource,
            devices=tuple(parse_device_id(each, uuid_of_index) for each in ids),
        )
        for pod in answer.pod_resources
        for container in pod.containers
        for resource, ids in _ids_of_resource(container).items()
    )


def _ids_of_resource(container: ContainerResources) -> dict[str, list[str]]:
    merged: dict[str, list[str]] = {}
    for part in container.devices:
        merged.setdefault(part.resource_name, []).extend(part.device_ids)
    return merged


def _sentence(error: grpc.RpcError, timeout: float) -> str:
    call = cast(grpc.Call, error)  # what a channel raises is both
    if call.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"The kubelet did not list its pods' devices within {timeout:g} s."
    if call.code() == grpc.StatusCode.UNAVAILABLE:
        return "The kubelet's socket is dead: nobody answers on it; look at the kubelet."
    return f"The kubelet refused to list its pods' devices: {call.details()[:200]}."
