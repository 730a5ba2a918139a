"""The real API server's word on who changed a node's taints last, which decides what is ours."""

from __future__ import annotations

import pytest

from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.connection import from_kubeconfig
from gpuadmin.operations.kinds import kind_of
from gpuadmin.operations.kinds.base import FIELD_MANAGER, Image, Ref
from tests.cluster.objects import bare_node
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.real_only]

OURS = {"key": "ours", "effect": "NoSchedule"}
THEIRS = {"key": "theirs", "effect": "NoSchedule"}


def test_the_taint_list_belongs_to_whoever_changed_it_last(plane: ControlPlane) -> None:
    client = KubeClient(from_kubeconfig(plane.kubeconfig("admin")))
    with bare_node(plane.admin, "signed", gpus=1) as name:
        path = f"/api/v1/nodes/{name}"
        ref = Ref(plane.admin.get(path)["metadata"]["uid"], name)

        def change(kind: str) -> Image:
            """Our own write, as the engine makes it; then what a later run sees."""
            change = kind_of(kind)
            parameters = change.parse({"nodes": [ref.uid], **OURS})
            image = change.look(client, ref)
            answer = change.write(client, ref, image, change.edit(parameters, ref, image))
            seen = change.look(client, ref)
            assert (seen.value, seen.writer) == (answer.value, answer.writer)
            return seen

        def other(*taints: dict[str, str]) -> Image:
            plane.admin.ok("PATCH", path, {"spec": {"taints": list(taints)}})
            return kind_of("taint.add").look(client, ref)

        assert change("taint.add").writer == FIELD_MANAGER
        plane.admin.ok("PATCH", path, {"metadata": {"labels": {"team": "a"}}})
        assert kind_of("taint.add").look(client, ref).writer == FIELD_MANAGER
        assert other(OURS, THEIRS).writer not in ("", FIELD_MANAGER)
        assert change("taint.remove").writer == FIELD_MANAGER, "theirs is left, the list is ours"
        assert other(OURS).writer not in ("", FIELD_MANAGER)
        assert change("taint.remove").writer == "", "nobody owns an empty list"
