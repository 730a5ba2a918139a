"""Getting to know a cluster: what it is, who we are in it, which DaemonSet is ours."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from django.conf import settings

from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.sources import source_of
from gpuadmin.kube import errors, structs
from gpuadmin.kube.access import whoami
from gpuadmin.kube.capabilities import components, held
from gpuadmin.kube.client import KubeClient, decode, path_of

log = logging.getLogger(__name__)
SIMULATED_MARK = "gpuadmin-sim"


def introduce(cluster: Cluster, client: KubeClient) -> None:
    """Note server, version, our account and whether it is a simulation. A failure leaves what was
    known."""
    identity = whoami(client)
    columns: dict[str, object] = {"server": client.connection.server[:500]}
    if identity.version:
        simulated = SIMULATED_MARK in identity.version
        columns |= {"version": identity.version[:60], "simulated": simulated}
    if identity.name:
        columns["account"] = identity.name[:253]
    if identity.error:
        log.warning("%s", identity.error)
    Cluster.objects.filter(pk=cluster.pk).update(**columns)


def note_components(cluster: Cluster, now: datetime) -> None:
    """Note which components we hold. While the API server can't be asked, what was known stays."""
    try:
        client = KubeClient(source_of(cluster).connect())
    except errors.BadConfig as error:
        log.warning("%s", error.sentence)
        return
    wanted = components(settings.NAMESPACE, settings.PLUGIN_NAMESPACE)
    found = {one.component.name: one.held for one in held(client, wanted)}
    if any(answer is not None for answer in found.values()):
        Cluster.objects.filter(pk=cluster.pk).update(components=found, components_at=now)


def daemonset_finder(client: KubeClient) -> Callable[[], tuple[str | None, str]]:
    """A function that reads our DaemonSet's uid: (uid, "") or (None, why there is none)."""
    name, namespace = settings.AGENT_DAEMONSET, settings.NAMESPACE
    path = path_of("apis", "apps", "v1", "namespaces", namespace, "daemonsets", name)

    def find() -> tuple[str | None, str]:
        try:
            found = decode(client.get(path), structs.DaemonSet)
        except errors.NotFound:
            return None, f"There is no DaemonSet {namespace}/{name}: install the agents."
        except errors.Forbidden:
            return None, f"We may not read DaemonSets in {namespace}, so no pod is known as ours."
        except errors.KubeError as error:
            return None, error.sentence
        return found.metadata.uid, f"DaemonSet {namespace}/{name} has no pod on this node."

    return find
