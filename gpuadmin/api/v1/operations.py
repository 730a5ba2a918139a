"""Operations: preview, create, look, undo, cancel. Rights are checked by the services."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpuadmin.accounts.access import actor_of
from gpuadmin.api.v1.common import CLUSTER, LIST, cluster_of, missing
from gpuadmin.api.v1.operations_out import (
    ChangeIn,
    ConfirmIn,
    CreateIn,
    OperationDetail,
    OperationOut,
    PreviewOut,
)
from gpuadmin.fleet.snapshot import one_snapshot
from gpuadmin.operations import queries, services
from gpuadmin.operations.errors import UnknownKind
from gpuadmin.operations.kinds import kind_of
from gpuadmin.operations.models import Operation
from gpuadmin.operations.store import Confirmation, Previewed

KEY_HEADER = "Idempotency-Key"
MAX_KEY = 120
KEY = OpenApiParameter(
    KEY_HEADER,
    str,
    OpenApiParameter.HEADER,
    required=True,
    description="The same key again gives the same operation, whatever became of the first reply.",
)


class Operations(generics.ListAPIView[Operation]):
    """The newest first."""

    serializer_class = OperationOut
    queryset = Operation.objects.none()

    def get_queryset(self) -> QuerySet[Operation]:
        return queries.operations(cluster_of(self.request))

    @extend_schema(parameters=LIST)
    @one_snapshot()
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A page of operations."""
        return super().get(request, *args, **kwargs)

    @extend_schema(
        parameters=[CLUSTER, KEY],
        request=CreateIn,
        responses={201: OperationDetail, 200: OperationDetail},
    )
    def post(self, request: Request) -> Response:
        """Queues a previewed change: 201, or 200 with the operation that this key made before."""
        sent = _valid(CreateIn, request)
        made = services.create(
            actor_of(request),
            cluster_of(request),
            _offered(sent["kind"]),
            sent["parameters"],
            _confirmation(request, sent),
        )
        return _made(*made)


class PreviewOperation(APIView):
    """What a change would do now; nothing is written to the cluster."""

    @extend_schema(parameters=[CLUSTER], request=ChangeIn, responses=PreviewOut)
    def post(self, request: Request) -> Response:
        sent = _valid(ChangeIn, request)
        shown = services.preview(
            actor_of(request), cluster_of(request), _offered(sent["kind"]), sent["parameters"]
        )
        return _preview(shown)


class OneOperation(APIView):
    """One operation with plan, targets and steps."""

    @extend_schema(responses=OperationDetail)
    @one_snapshot()
    def get(self, request: Request, operation_id: UUID) -> Response:
        return Response(OperationDetail(_operation(operation_id)).data)


class PreviewUndo(APIView):
    """What an undo would put back, and what it would leave alone."""

    @extend_schema(request=None, responses=PreviewOut)
    def post(self, request: Request, operation_id: UUID) -> Response:
        return _preview(services.preview_undo(actor_of(request), _operation(operation_id)))


class UndoOperation(APIView):
    """A new operation that puts back what the first one changed."""

    @extend_schema(
        parameters=[KEY],
        request=ConfirmIn,
        responses={201: OperationDetail, 200: OperationDetail},
    )
    def post(self, request: Request, operation_id: UUID) -> Response:
        sent = _valid(ConfirmIn, request)
        operation = _operation(operation_id)
        return _made(*services.undo(actor_of(request), operation, _confirmation(request, sent)))


class CancelOperation(APIView):
    """Takes an operation out of the queue."""

    @extend_schema(request=None, responses=OperationDetail)
    def post(self, request: Request, operation_id: UUID) -> Response:
        services.cancel(actor_of(request), _operation(operation_id))
        return Response(OperationDetail(_operation(operation_id)).data)


def _operation(operation_id: UUID) -> Operation:
    found = queries.operation_detail().filter(pk=operation_id).first()
    if found is None:
        raise missing(f"operation {operation_id}", "operations")
    return found


def _offered(kind: str) -> str:
    """A kind that may be asked for by name; an undo is asked for at its operation."""
    if not kind_of(kind).offered:
        raise UnknownKind(f"“{kind}” is only made by undoing an operation.")
    return kind


def _valid(serializer: Any, request: Request) -> dict[str, Any]:
    checked = serializer(data=request.data)
    checked.is_valid(raise_exception=True)
    found: dict[str, Any] = checked.validated_data
    return found


def _confirmation(request: Request, sent: dict[str, Any]) -> Confirmation:
    key = request.headers.get(KEY_HEADER, "")
    if not (key.isprintable() and 1 <= len(key) <= MAX_KEY):
        raise ValidationError({KEY_HEADER: [f"This header is needed: 1 to {MAX_KEY} characters."]})
    return Confirmation(
        sent["fingerprint"], sent["reason"], sent["confirm"], key, sent["undo_after_seconds"]
    )


def _preview(shown: Previewed) -> Response:
    body = {
        "kind": shown.kind,
        "parameters": shown.parameters,
        "fingerprint": shown.fingerprint,
        "plan": shown.plan.json(),
    }
    return Response(PreviewOut(body).data)


def _made(operation: Operation, new: bool) -> Response:
    where = reverse("api:operation", args=[operation.pk])
    body = OperationDetail(_operation(operation.pk)).data
    return Response(body, status=201 if new else 200, headers={"Location": where})
