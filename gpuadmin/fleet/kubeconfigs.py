"""A kubeconfig given in the browser: tried before it is kept, kept sealed, never shown again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from gpuadmin.accounts.access import require
from gpuadmin.accounts.audit import Actor, Outcome, Subject, audit
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Permission
from gpuadmin.fleet.models import Cluster, Kubeconfig
from gpuadmin.fleet.sealing import Unsealable, seal, unseal
from gpuadmin.fleet.sources import AT_REST, guard
from gpuadmin.kube.access import Identity, whoami
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.errors import BadConfig
from gpuadmin.kube.inline import InlineConfig, read

TRY_SECONDS = 5.0
OFFER_SECONDS = 15 * 60
HANDOVER = timedelta(seconds=8)  # longer than a watcher waits between two looks at its lease
_OFFER = "kubeconfig on offer to {} for {}"
SET = (
    "GPUADMIN_KUBECONFIG is set, and what it names is used. Unset it and start the processes "
    "again to give a kubeconfig here."
)


@dataclass(frozen=True)
class Tried:
    """What became of a try. ``offer`` is the kubeconfig, sealed, to be handed back by the same
    person within 15 minutes: the page with the last click never holds it in the clear.
    """

    config: InlineConfig
    client: KubeClient
    identity: Identity
    offer: str


def given_for(cluster: Cluster) -> Kubeconfig | None:
    """What there is, without what is sealed."""
    return Kubeconfig.objects.filter(cluster=cluster).select_related("given_by").first()


def try_out(actor: Actor, cluster: Cluster, text: str, context: str = "") -> Tried:
    """Reads it and asks the server who we are; nothing is kept.

    Raises ``Refused``, and ``BadConfig`` with a sentence for each thing that is wrong.
    """
    _require(actor, cluster)
    config = read(text, context.strip())
    client = KubeClient(config.connection(guard()), timeout_seconds=TRY_SECONDS)
    identity = whoami(client)
    audit(
        actor,
        "cluster.try-kubeconfig",
        Outcome.FAILED if identity.error else Outcome.DONE,
        _subject(cluster),
        detail={"server": config.server, "context": config.context},
    )
    offer = seal(msgspec.json.encode(config).decode(), _offer_of(actor, cluster))
    return Tried(config, client, identity, offer)


def keep(actor: Actor, cluster: Cluster, offer: str) -> Kubeconfig:
    """Keeps what was tried. Watcher, worker and web take it up by themselves.

    Raises ``Refused``, and ``BadConfig`` for an offer that is too old or somebody else's.
    """
    person = _require(actor, cluster)
    try:
        text = unseal(offer, _offer_of(actor, cluster), max_age_seconds=OFFER_SECONDS)
    except Unsealable:
        raise BadConfig(
            "The try is more than 15 minutes old: paste the kubeconfig again."
        ) from None
    config = msgspec.json.decode(text, type=InlineConfig)
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)  # one after the other
        Kubeconfig.objects.filter(cluster=cluster).delete()
        row = Kubeconfig.objects.create(
            cluster=cluster,
            sealed=seal(text, AT_REST),
            server=config.server[:500],
            context=config.context[:253],
            user=config.user[:253],
            given_by=person,
        )
        _hand_over(cluster, server=row.server)
        detail = {"server": row.server, "context": row.context, "user": row.user}
        audit(actor, "cluster.set-kubeconfig", Outcome.DONE, _subject(cluster), detail=detail)
    return row


def remove(actor: Actor, cluster: Cluster) -> bool:
    """Forgets it; False where there is none. Raises ``Refused``."""
    require(actor, Permission.CLUSTER, _subject(cluster))
    with transaction.atomic():
        gone, _ = Kubeconfig.objects.filter(cluster=cluster).delete()
        if gone:
            _hand_over(cluster)
            audit(actor, "cluster.remove-kubeconfig", Outcome.DONE, _subject(cluster))
    return bool(gone)


def _require(actor: Actor, cluster: Cluster) -> User:
    require(actor, Permission.CLUSTER, _subject(cluster))
    if settings.KUBECONFIG:
        raise BadConfig(SET)
    if actor.user is None:
        raise BadConfig("A kubeconfig is given by somebody who is signed in.")
    return actor.user


def _hand_over(cluster: Cluster, **columns: str) -> None:
    """Ends the turn of the watcher that leads: the next turn begins with the new source. Until
    then nobody can lead, or the old one would take its own place again."""
    Cluster.objects.filter(pk=cluster.pk).update(
        leader="a new kubeconfig",
        leader_term=F("leader_term") + 1,
        leader_until=timezone.now() + HANDOVER,
        **columns,
    )


def _offer_of(actor: Actor, cluster: Cluster) -> str:
    return _OFFER.format(actor.user.pk if actor.user else "nobody", cluster.pk)


def _subject(cluster: Cluster) -> Subject:
    return Subject("cluster", str(cluster.pk), cluster.name)
