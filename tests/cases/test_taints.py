"""C20, C21 and C22 over REST: preview, confirm, run, look at the cluster and at the answer."""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import UUID

import pytest

from gpuadmin.accounts.models import AuditEntry
from gpuadmin.accounts.roles import Role
from gpuadmin.operations.models import Operation
from tests.operations.conftest import run
from tests.operations.world import World
from tests.support.console import Console
from tests.support.scripted_api import Json, node
from tests.support.watching import Watch

BASE = "/api/v1/operations"
A, B = {"key": "gpu", "value": "a"}, {"key": "gpu", "value": "b"}
TEAM = {"key": "team", "value": "a", "effect": "NoSchedule"}
MAINT = {"key": "maint", "effect": "NoSchedule"}
AUTOSCALER = {
    "key": "ToBeDeletedByClusterAutoscaler",
    "effect": "NoSchedule",
    "timeAdded": "2026-11-01T00:00:00Z",
}


class Change:
    """Taints of one node, as an operator's script changes them."""

    def __init__(self, uid: str) -> None:
        self.api, self.uid, self._keys = Console(Role.OPERATOR).api, uid, count()

    def preview(self, kind: str, **parameters: str) -> Json:
        body = {"kind": kind, "parameters": {"nodes": [self.uid], **parameters}}
        answer = self.api.post(f"{BASE}/preview", body)
        assert answer.status_code == 200, answer.json()
        shown: Json = answer.json()
        return shown

    def confirm(self, shown: Json, **more: Any) -> Any:
        body = {name: shown[name] for name in ("kind", "parameters", "fingerprint")}
        body |= {"reason": "maintenance", **more}
        return self.api.post(BASE, body, headers={"Idempotency-Key": f"k{next(self._keys)}"})

    def made(self, kind: str, **parameters: str) -> str:
        """Confirmed, and waiting for a worker; the operation's id."""
        shown = self.preview(kind, **parameters)
        answer = self.confirm(shown, confirm=shown["plan"]["confirm"]["phrase"])
        assert answer.status_code == 201, answer.json()
        return str(answer.json()["id"])

    def work(self, operation: str) -> Json:
        """What a worker does; then the operation as the API tells it."""
        run(Operation.objects.get(pk=UUID(operation)))
        found: Json = self.api.get(f"{BASE}/{operation}").json()
        assert found["state"] == "succeeded", found
        return found


@pytest.mark.django_db
def test_c20_what_another_wrote_meanwhile_stays_and_the_operation_tells_both_lists(
    world: World,
) -> None:
    change = Change(world.node("n1", taints=[TEAM]))
    operation = change.made("taint.add", **MAINT)
    world.write_taints("n1", [TEAM, AUTOSCALER])

    target = change.work(operation)["targets"][0]

    assert world.taints("n1") == [TEAM, AUTOSCALER, MAINT]
    assert target["before"]["value"] == [TEAM, AUTOSCALER]
    assert target["after"]["value"] == [TEAM, AUTOSCALER, MAINT]
    row = AuditEntry.objects.get(object_kind="node", object_name="n1", outcome="done")
    assert row.detail["before"] == [TEAM, AUTOSCALER]
    assert row.detail["after"] == [TEAM, AUTOSCALER, MAINT]


@pytest.mark.django_db
def test_c20_a_node_without_a_list_of_taints_can_be_given_one(world: World) -> None:
    change = Change(world.node("n1", taints=None))
    assert world.get_node("n1")["spec"].get("taints") is None

    change.work(change.made("taint.add", **MAINT))

    assert world.taints("n1") == [MAINT]


@pytest.mark.django_db
def test_c21_after_each_action_only_its_key_and_effect_have_changed(world: World) -> None:
    uid = world.node("n1", taints=[A | {"effect": e} for e in ("NoSchedule", "NoExecute")])
    change = Change(uid)
    change.work(change.made("taint.remove", key="gpu", effect="NoExecute"))
    assert world.taints("n1") == [A | {"effect": "NoSchedule"}]
    change.work(change.made("taint.add", effect="NoSchedule", **B))
    assert world.taints("n1") == [B | {"effect": "NoSchedule"}]

    version = world.get_node("n1")["metadata"]["resourceVersion"]
    again = change.work(change.made("taint.add", effect="NoSchedule", **B))
    absent = change.work(change.made("taint.remove", key="gpu", effect="PreferNoSchedule"))

    assert "Already so" in again["targets"][0]["message"]
    assert "Not present" in absent["targets"][0]["message"]
    assert world.get_node("n1")["metadata"]["resourceVersion"] == version


@pytest.mark.django_db
def test_c21_no_execute_is_confirmed_by_name_over_a_list_of_pods_with_our_agent_in_it(
    world: World,
) -> None:
    change = Change(world.node("n1"))
    world.pod("job", "n1", gpu=1)
    agent = ("DaemonSet", "gpuadmin-agent")
    world.pod("gpuadmin-agent-x", "n1", owner=agent, namespace="gpuadmin")

    shown = change.preview("taint.add", key="gpu", effect="NoExecute")

    pods = shown["plan"]["pods_touched"]
    assert {(p["name"], p["ours"]) for p in pods} == {("job", False), ("gpuadmin-agent-x", True)}
    assert shown["plan"]["confirm"] | {"phrase": "n1", "needed": True} == shown["plan"]["confirm"]
    assert change.confirm(shown).status_code == 422
    assert change.confirm(shown, confirm="n1").status_code == 201


TOLERATIONS: dict[str, Json] = {
    "t1": {"operator": "Exists"},
    "t2": {"operator": "Exists", "effect": "NoExecute"},
    "t3": {"key": "gpu", "operator": "Exists"},
    "t4": {"key": "gpu", "value": "a"},
    "t5": {"key": "gpu", "operator": "Equal", "value": "", "effect": "NoSchedule"},
    "t6": {"key": "", "operator": "Equal", "value": "a"},
    "t7": {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
}


@pytest.mark.django_db
def test_c22_the_preview_of_a_taint_matches_every_form_of_toleration(world: World) -> None:
    change = Change(world.node("n1"))
    for name, toleration in TOLERATIONS.items():
        world.pod(name, "n1", tolerations=[toleration])

    closed = change.preview("taint.add", effect="NoSchedule", **A)["plan"]["pods_touched"]
    evicted = change.preview("taint.add", effect="NoExecute", **A)["plan"]["pods_touched"]

    assert {p["name"] for p in closed} == {"t2", "t5", "t6", "t7"}
    assert {p["name"]: p["effect"] for p in evicted} == {
        "t5": "evicted now",
        "t6": "evicted now",
        "t7": "evicted after 300 s",
    }


@pytest.mark.django_db(transaction=True)
def test_c22_prefer_no_schedule_never_makes_a_node_closed(watch: Watch, console: Console) -> None:
    effects = ("NoSchedule", "PreferNoSchedule")
    watch([node(e.lower(), spec={"taints": [A | {"effect": e}]}) for e in effects])

    nodes = console.by("nodes")
    assert nodes["noschedule"]["closed"] == "tainted gpu:NoSchedule"
    assert nodes["prefernoschedule"]["closed"] == ""
    free = [console.resource(name)["free_now"] for name in ("noschedule", "prefernoschedule")]
    assert free == [0, 8]
    closed = console.page("/nodes?state=closed").html
    assert 'href="/nodes/noschedule"' in closed
    assert 'href="/nodes/prefernoschedule"' not in closed
