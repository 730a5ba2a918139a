"""Celery's side of operations: thin, and harmless when a message comes twice (C41)."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from gpuadmin.fleet.queries import clusters
from gpuadmin.kube.errors import KubeError
from gpuadmin.operations import engine, nudge, services
from gpuadmin.operations.models import Preview
from gpuadmin.operations.queries import due, to_put_back
from gpuadmin.operations.reversals import note_reversals

log = logging.getLogger(__name__)
PREVIEW_LIFE = timedelta(hours=1)


@shared_task(name=nudge.RUN, bind=True)
def run(self: Any, operation_id: str) -> None:
    """One stay at one operation; comes again while pods leave or the API server is away."""
    again = engine.run(UUID(operation_id), worker=f"{self.request.hostname}/{self.request.id}")
    if again is not None:
        nudge.send(UUID(operation_id), after_seconds=again)


@shared_task(name="gpuadmin.operations.tasks.sweep")
def sweep() -> None:
    """Takes up what lost its worker or its message, puts back what has lasted its time, looks what
    others changed back, and drops previews that nobody confirmed.
    """
    now = timezone.now()
    for operation_id in due(now).values_list("pk", flat=True):
        nudge.send(operation_id)
    for operation in to_put_back(now):
        try:
            services.put_back(operation)
        except KubeError as error:  # the next sweep tries again
            log.warning("%s is not put back yet: %s", operation, error.sentence)
    for cluster in clusters():
        note_reversals(cluster, now)
    Preview.objects.filter(made_at__lt=now - PREVIEW_LIFE).delete()
