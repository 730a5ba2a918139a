"""Upkeep of accounts, by the clock."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from gpuadmin.accounts.models import BrowserSession


@shared_task
def forget_sessions() -> None:
    """Drops sessions that are over; none of them lets anybody in any more."""
    BrowserSession.objects.filter(expire_date__lt=timezone.now()).delete()
