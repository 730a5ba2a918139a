"""The client of a cluster for previews and runs: one per process, its connections kept open."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from gpuadmin.fleet.models import Cluster
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.connection import connect


def client_for(cluster: Cluster) -> KubeClient:
    """The client of the configured cluster. Raises ``BadConfig``."""
    return _client(settings.KUBECONFIG, settings.KUBE_CONTEXT or None)


@lru_cache(maxsize=4)
def _client(kubeconfig: str, context: str | None) -> KubeClient:
    return KubeClient(connect(kubeconfig, context))
