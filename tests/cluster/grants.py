"""Folders of ``deploy/`` given to gpuadmin's own ServiceAccount and taken away again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpuadmin.kube.capabilities import Component, components, held
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.connection import from_kubeconfig
from tests.cluster.objects import SETTLE_SECONDS
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAMESPACE, PLUGIN_NAMESPACE = "gpuadmin", "nvidia-device-plugin"
COMPONENTS = {one.name: one for one in components(NAMESPACE, PLUGIN_NAMESPACE)}


def held_names(user: Path) -> set[str]:
    """The components that the product finds its account to hold; all must be answered for."""
    found = held(KubeClient(from_kubeconfig(user)), list(COMPONENTS.values()))
    assert all(one.held is not None for one in found), found
    return {one.component.name for one in found if one.held}


@contextmanager
def granted(plane: ControlPlane, user: Path, name: str) -> Iterator[Component]:
    """The component of that name, applied with kubectl and deleted on leaving.

    Grants act a moment after they are written: the API server's authorizer watches them.
    """
    folder = str(DEPLOY / "components" / name)
    plane.kubectl("apply", "-k", folder)
    try:
        until(lambda: name in held_names(user), SETTLE_SECONDS, f"{name} to be held")
        yield COMPONENTS[name]
    finally:
        plane.kubectl("delete", "-k", folder, "--wait=false")
        until(lambda: name not in held_names(user), SETTLE_SECONDS, f"{name} to be taken away")
