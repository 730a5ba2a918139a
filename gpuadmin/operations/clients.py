"""The client of a cluster for previews and runs: one per process, its connections kept open."""

from __future__ import annotations

from functools import lru_cache

from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.sources import Source, source_of
from gpuadmin.kube.client import KubeClient


def client_for(cluster: Cluster) -> KubeClient:
    """The client of the cluster, by what it is reached now. Raises ``BadConfig``."""
    return _client(source_of(cluster))


@lru_cache(maxsize=4)
def _client(source: Source) -> KubeClient:
    return KubeClient(source.connect())
