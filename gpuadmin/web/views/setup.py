"""Set-up: is everything in place, and if not, the line that puts it there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.conf import settings
from django.db import connections
from django.http import HttpRequest
from django.utils import timezone
from django.views.decorators.http import require_safe

from gpuadmin.accounts.roles import Permission
from gpuadmin.collect.absence import read_daemons
from gpuadmin.fleet.kubeconfigs import given_for
from gpuadmin.fleet.sources import Source, source_of
from gpuadmin.kube.access import Answer, Identity, Remembered, review, whoami
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.errors import KubeError
from gpuadmin.planning.absence import Daemons
from gpuadmin.web.needs import needs, our_components
from gpuadmin.web.page import Here, Page, page
from gpuadmin.web.pictures import setup as pictures
from gpuadmin.web.queries import heartbeats
from gpuadmin.workloads.queries import gpu_records

TIMEOUT_SECONDS = 3.0
REMEMBERED_SECONDS = 10.0
PATIENCE_SECONDS = 4.0
NOT_YET = "It has not answered yet. This page asks again by itself."


@dataclass(frozen=True)
class Access:
    identity: Identity
    answers: list[Answer]
    at: datetime | None = None
    daemons: Daemons | None = None


@require_safe
@page(live_reads=True)
def setup(request: HttpRequest, here: Here) -> Page:
    access = _access(source_of(here.cluster))() or _not_yet()
    records = gpu_records(here.cluster, here.now)
    missing = pictures.missing_agents(records, access.daemons)
    return Page(
        "setup.html",
        {
            "identity": access.identity,
            "source": "setting" if settings.KUBECONFIG else "",
            "given": given_for(here.cluster),
            "may_connect": here.may(Permission.CLUSTER),
            "components": pictures.component_lines(
                our_components(), access.answers, access.identity
            ),
            "asked_at": access.at,
            "missing": missing,
            "reporting": len(records) - len(missing),
            "total": len(records),
            "processes": pictures.processes(heartbeats(here.cluster), here.now),
            "daemonset": settings.AGENT_DAEMONSET,
            "namespace": settings.NAMESPACE,
        },
    )


@lru_cache(maxsize=4)
def _access(source: Source) -> Remembered[Access]:
    """One memory per connection: the live page asks every few seconds, the cluster seldom."""
    return Remembered(lambda: _ask(source), REMEMBERED_SECONDS, patience_seconds=PATIENCE_SECONDS)


def _not_yet() -> Access:
    return Access(Identity(None, error=NOT_YET), pictures.unasked(needs(), NOT_YET))


def _ask(source: Source) -> Access:
    wanted, now = needs(), timezone.now()
    try:
        client = KubeClient(source.connect(), timeout_seconds=TIMEOUT_SECONDS)
    except KubeError as error:
        why = error.sentence
        return Access(Identity(None, error=why), pictures.unasked(wanted, why), now)
    finally:
        connections.close_all()  # of this thread, which ends when the cluster has answered
    identity = whoami(client)
    if identity.version is None:  # it does not answer: nine more questions would only hang as well
        return Access(identity, pictures.unasked(wanted, identity.error), now)
    daemons = read_daemons(client, settings.NAMESPACE, settings.AGENT_DAEMONSET)
    return Access(identity, review(client, wanted), now, daemons)
