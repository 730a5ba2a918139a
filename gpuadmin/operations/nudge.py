"""Tells a worker that an operation may be run. Only a nudge: the row is the truth."""

from __future__ import annotations

import logging
import threading
from uuid import UUID

from django.db import transaction
from kombu.exceptions import OperationalError

from gpuadmin.celery import app

PATIENCE_SECONDS = 1.0
RUN = "gpuadmin.operations.tasks.run"
log = logging.getLogger(__name__)


def send(operation_id: UUID, *, after_seconds: float = 0) -> None:
    """Puts one message into the queue. Without a broker the sweep finds the row a little later.

    A queue that accepts and stalls (fault 5) costs its client several time limits in a row, so
    nobody waits for the sending longer than PATIENCE_SECONDS.
    """
    arguments = (operation_id, after_seconds)
    sending = threading.Thread(target=_send, args=arguments, name="nudge", daemon=True)
    sending.start()
    sending.join(PATIENCE_SECONDS)


def _send(operation_id: UUID, after_seconds: float) -> None:
    try:
        app.send_task(RUN, args=[str(operation_id)], countdown=after_seconds)
    except (OperationalError, OSError) as error:
        log.warning("operation %s waits for the sweep, the queue is away: %s", operation_id, error)


def send_on_commit(operation_id: UUID) -> None:
    """The same once the row can be seen by a worker."""
    transaction.on_commit(lambda: send(operation_id))
