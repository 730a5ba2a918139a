"""Which agents are to let go of NVML in this cycle (C18): the labels of their nodes say so."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from agent.contract.report import ReleaseRequest
from gpuadmin.fleet.models import AgentState, Node
from gpuadmin.planning.release import change_signalled, release_for

# Labels of a thousand nodes are much to read in every cycle, so the database looks first.
_PERHAPS = r': "(paused-|pending"|rebooting")'


def releases(node_ids: Iterable[int], now: datetime) -> dict[int, ReleaseRequest]:
    """What to tell each agent first, by its node's id; nothing for most.

    A label has no time of its own: it is as old as we have seen it, which is noted here.
    """
    nodes = Node.objects.filter(pk__in=list(node_ids)).alias(text=Cast("labels", TextField()))
    perhaps = nodes.filter(Q(text__regex=_PERHAPS) | Q(agent__change_since__isnull=False))
    told: dict[int, ReleaseRequest] = {}
    begun, ended = [], []
    for pk, labels, since in perhaps.values_list("pk", "labels", "agent__change_since"):
        if not change_signalled(labels):
            if since is not None:
                ended.append(pk)
            continue
        if since is None:
            begun.append(pk)
        release = release_for(
            labels,
            since or now,
            now,
            poll_seconds=settings.POLL_SECONDS,
            limit_seconds=settings.RELEASE_LIMIT_SECONDS,
        )
        if release is not None:
            told[pk] = release
    if begun:
        AgentState.objects.filter(node__in=begun).update(change_since=now)
    if ended:
        AgentState.objects.filter(node__in=ended).update(change_since=None)
    return told
