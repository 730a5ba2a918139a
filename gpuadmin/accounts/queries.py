"""Users, tokens and sessions as pages and API list them."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, Q, QuerySet

from gpuadmin.accounts.models import AccessToken, BrowserSession, User


def users(now: datetime) -> QuerySet[User]:
    """By name, each with ``session_count`` (those that still let in) and ``token_count``."""
    open_sessions = Q(sessions__expire_date__gt=now)
    return (
        User.objects.order_by("username")
        .prefetch_related("groups")
        .annotate(
            session_count=Count("sessions", filter=open_sessions, distinct=True),
            token_count=Count("auth_token_set", distinct=True),
        )
    )


def tokens_of(user: User) -> QuerySet[AccessToken]:
    """The newest first, expired ones too: the list says so."""
    return AccessToken.objects.filter(user=user)


def sessions_of(user: User, now: datetime) -> QuerySet[BrowserSession]:
    """Those that still let in, the latest used first."""
    return BrowserSession.objects.filter(user=user, expire_date__gt=now)
