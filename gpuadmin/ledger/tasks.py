"""Upkeep of the ledger, by the clock."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from gpuadmin.ledger.services import keep_partitions


@shared_task
def partitions() -> None:
    """Make the coming days' partitions and drop what is past its time."""
    keep_partitions(timezone.now(), settings.RAW_HOURS)
