"""A kubelet's PodResources server on a unix socket, over real gRPC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from agent.protos.podresources_pb2 import (
    ContainerDevices,
    ContainerResources,
    ListPodResourcesRequest,
    ListPodResourcesResponse,
    PodResources,
)

Answer = Callable[[ListPodResourcesRequest, grpc.ServicerContext], ListPodResourcesResponse]


def pod(name: str, **containers: list[tuple[str, list[str]]]) -> PodResources:
    """``pod("train", main=[("nvidia.com/gpu", [id, …]), …])`` in the namespace ``llm``."""
    return PodResources(
        name=name,
        namespace="llm",
        containers=[
            ContainerResources(
                name=container,
                devices=[
                    ContainerDevices(resource_name=resource, device_ids=ids)
                    for resource, ids in devices
                ],
            )
            for container, devices in containers.items()
        ],
    )


@contextmanager
def kubelet(socket: Path, *pods: PodResources, answer: Answer | None = None) -> Iterator[None]:
    """Serve ``pods``, or whatever ``answer`` gives, on ``socket``."""

    def list_(
        request: ListPodResourcesRequest, context: grpc.ServicerContext
    ) -> ListPodResourcesResponse:
        return answer(request, context) if answer else ListPodResourcesResponse(pod_resources=pods)

    handler = grpc.unary_unary_rpc_method_handler(
        list_,
        request_deserializer=ListPodResourcesRequest.FromString,
        response_serializer=ListPodResourcesResponse.SerializeToString,
    )
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler})]
    )
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()
        socket.unlink(missing_ok=True)
