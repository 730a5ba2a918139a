"""Celery's side of operations: thin, and harmless when a message comes twice (C41)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from gpuadmin.operations import engine, nudge
from gpuadmin.operations.models import Preview
from gpuadmin.operations.queries import due

PREVIEW_LIFE = timedelta(hours=1)


@shared_task(name=nudge.RUN, bind=True)
def run(self: Any, operation_id: str) -> None:
    """One stay at one operation; comes again while pods leave or the API server is away."""
    again = engine.run(UUID(operation_id), worker=f"{self.request.hostname}/{self.request.id}")
    if again is not None:
        nudge.send(UUID(operation_id), after_seconds=again)


@shared_task(name="gpuadmin.operations.tasks.sweep")
def sweep() -> None:
    """Takes up what lost its worker or its message, and drops previews that nobody confirmed."""
    now = timezone.now()
    for operation_id in due(now).values_list("pk", flat=True):
        nudge.send(operation_id)
    Preview.objects.filter(made_at__lt=now - PREVIEW_LIFE).delete()
