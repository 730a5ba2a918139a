"""Accelerator amounts of Kubernetes objects: what a pod asks for, what a node advertises."""

from __future__ import annotations

from collections.abc import Mapping

from gpuadmin.kube import structs
from gpuadmin.planning.requests import ContainerRequest, effective_requests
from gpuadmin.planning.resources import count, recognise


def pod_requests(spec: structs.PodSpec) -> dict[str, int]:
    """Resource name → count, by the scheduler's formula (C06); empty: no GPU pod."""
    return effective_requests(
        map(_request, spec.init_containers or []),
        map(_request, spec.containers or []),
        spec.overhead,
    )


def advertised(amounts: Mapping[str, str] | None) -> dict[str, int | None]:
    """The accelerator names of a node's capacity or allocatable; None: not a number."""
    return {name: count(amount) for name, amount in (amounts or {}).items() if recognise(name)}


def _request(container: structs.Container) -> ContainerRequest:
    resources = container.resources or structs.Resources()
    return ContainerRequest(
        requests=resources.requests or {},
        limits=resources.limits or {},
        sidecar=container.restart_policy == "Always",
    )
