"""By what a cluster is reached: the setting, a kubeconfig given in the browser, or as our pod.

A source names what it is and holds no secret, so it is the key of whatever keeps connections:
where ``source_of`` gives another one, the old connection is not used any more.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from django.conf import settings

from gpuadmin.fleet.models import Cluster, Kubeconfig
from gpuadmin.fleet.sealing import Unsealable, unseal
from gpuadmin.kube.connection import Connection, connect
from gpuadmin.kube.errors import BadConfig
from gpuadmin.kube.guard import Guard, external, external_or_loopback
from gpuadmin.kube.inline import InlineConfig

AT_REST = "kubeconfig at rest"
_LOST = (
    "The stored kubeconfig can't be opened: GPUADMIN_SECRET_KEY is another one than when it was "
    "given. Give it again on the Set-up page."
)


@dataclass(frozen=True)
class Source:
    """``kubeconfig_id`` is the row that was given in the browser, None where there is none."""

    path: str
    context: str
    kubeconfig_id: int | None = None

    def connect(self) -> Connection:
        """Raises ``BadConfig``."""
        if self.kubeconfig_id is None:
            return connect(self.path, self.context or None)
        row = Kubeconfig.objects.filter(pk=self.kubeconfig_id).first()
        if row is None:
            raise BadConfig("The kubeconfig has just been replaced or removed.")
        try:
            stored = msgspec.json.decode(unseal(row.sealed, AT_REST), type=InlineConfig)
        except (Unsealable, msgspec.DecodeError) as error:
            raise BadConfig(_LOST) from error
        return stored.connection(guard())


def source_of(cluster: Cluster) -> Source:
    """The setting wins; one given in the browser comes before the pod's ServiceAccount."""
    path, context = settings.KUBECONFIG, settings.KUBE_CONTEXT
    if path:
        return Source(path, context)
    given = Kubeconfig.objects.filter(cluster=cluster).values_list("pk", flat=True).first()
    return Source("", "", given)


def guard() -> Guard:
    """Which addresses a kubeconfig given in the browser may name."""
    return external_or_loopback if settings.LOOPBACK_CLUSTERS else external
