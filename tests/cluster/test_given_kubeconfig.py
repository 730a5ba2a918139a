"""A kubeconfig given in the browser, on a real API server: by token and by client certificate."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from gpuadmin.accounts.audit import Actor
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role
from gpuadmin.fleet import kubeconfigs
from gpuadmin.fleet.models import Cluster
from gpuadmin.kube.capabilities import components, held
from gpuadmin.kube.errors import BadConfig
from gpuadmin.operations.clients import client_for
from tests.cluster.objects import bare_node
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.real_only, pytest.mark.django_db]


@pytest.fixture
def cluster(db: None, settings: Settings) -> Cluster:
    settings.KUBECONFIG, settings.LOOPBACK_CLUSTERS = "", True
    return Cluster.objects.create(name="real")


@pytest.fixture
def admin(db: None) -> Actor:
    return Actor(User.objects.create_user("k.osei"), Role.ADMIN, "session")


def flat(plane: ControlPlane, file: Path) -> str:
    """As `kubectl config view --flatten` gives it: the data inline."""
    return plane.kubectl("config", "view", "--raw", "--flatten", "--minify", kubeconfig=file)


def test_our_own_accounts_kubeconfig_is_tried_kept_and_used(
    plane: ControlPlane, reader: Path, cluster: Cluster, admin: Actor
) -> None:
    tried = kubeconfigs.try_out(admin, cluster, flat(plane, reader))
    assert tried.identity.name == "system:serviceaccount:gpuadmin:gpuadmin"
    assert (tried.identity.version or "").startswith("v1.")
    wanted = components("gpuadmin", "nvidia-device-plugin")
    holds = {one.component.name: one.held for one in held(tried.client, wanted)}
    assert (holds["drain"], holds["plugin"]) == (False, False)
    kubeconfigs.keep(admin, cluster, tried.offer)
    with bare_node(plane.admin, "given", gpus=1) as name:
        assert f'"{name}"'.encode() in client_for(cluster).get("/api/v1/nodes")


def test_a_client_certificate_signs_in_as_well(
    plane: ControlPlane, cluster: Cluster, admin: Actor
) -> None:
    tried = kubeconfigs.try_out(admin, cluster, flat(plane, plane.kubeconfig("admin")))
    assert tried.config.token is None
    assert tried.identity.name
    assert not tried.identity.error


def test_where_it_names_files_it_is_refused(
    plane: ControlPlane, cluster: Cluster, admin: Actor
) -> None:
    with pytest.raises(BadConfig, match=r"“client-certificate” names a file.*“client-key” names"):
        kubeconfigs.try_out(admin, cluster, plane.kubeconfig("admin").read_text())
