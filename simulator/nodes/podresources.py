"""The kubelet's PodResources API on one unix socket per node (contracts.md 5.1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc

from agent.protos.podresources_pb2 import ListPodResourcesRequest, ListPodResourcesResponse

LIST = "/v1.PodResourcesLister/List"


async def serve(socket: Path, answer: Callable[[], ListPodResourcesResponse]) -> grpc.aio.Server:
    """Listen on ``socket`` and answer List. Only List: our agent asks for nothing else."""

    async def handle(
        _: ListPodResourcesRequest,
        __: grpc.aio.ServicerContext[ListPodResourcesRequest, ListPodResourcesResponse],
    ) -> ListPodResourcesResponse:
        return answer()

    method = grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=ListPodResourcesRequest.FromString,
        response_serializer=ListPodResourcesResponse.SerializeToString,
    )
    service, _, name = LIST.strip("/").partition("/")
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {name: method}),)
    )
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    return server
