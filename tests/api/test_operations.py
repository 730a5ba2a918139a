"""Changes over REST: preview, confirm, look, undo, cancel."""

from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from gpuadmin.accounts.roles import Role
from gpuadmin.operations.models import Operation
from tests.api.conftest import AsRole
from tests.operations.conftest import run
from tests.operations.world import World

pytestmark = pytest.mark.django_db
BASE = "/api/v1/operations"
MAINT = {"key": "maint", "effect": "NoSchedule"}


def preview(client: APIClient, uid: str, **parameters: Any) -> dict[str, Any]:
    body = {"kind": "taint.add", "parameters": {"nodes": [uid], **parameters}}
    answer = client.post(f"{BASE}/preview", body)
    assert answer.status_code == 200, answer.json()
    return dict(answer.json())


def create(client: APIClient, shown: dict[str, Any], key: str = "k1", **more: Any) -> Any:
    body = {name: shown[name] for name in ("kind", "parameters", "fingerprint")}
    body |= {"reason": "maintenance", **more}
    return client.post(BASE, body, headers={"Idempotency-Key": key})


def test_a_taint_from_preview_to_undo(world: World, as_role: AsRole) -> None:
    operator = as_role(Role.OPERATOR)
    uid = world.node("h100-01")
    shown = preview(operator, uid, **MAINT)
    assert shown["plan"]["kubectl"] == ["kubectl taint nodes h100-01 maint:NoSchedule --overwrite"]

    made = create(operator, shown)
    assert made.status_code == 201
    where = made.headers["Location"]
    assert operator.get(where).json()["state"] == "queued"
    run(Operation.objects.get(pk=made.json()["id"]))

    done = operator.get(where).json()
    assert (done["state"], done["created_via"], done["can_undo"]) == ("succeeded", "token:t0", True)
    assert done["targets"][0]["after"]["value"] == [MAINT]
    assert world.taints("h100-01") == [MAINT]

    back = operator.post(f"{where}/undo/preview").json()
    assert back["plan"]["targets"][0]["after"] == []
    body = {"fingerprint": back["fingerprint"], "reason": "done"}
    undo = operator.post(f"{where}/undo", body, headers={"Idempotency-Key": "k2"})
    assert undo.status_code == 201
    assert undo.json()["undo_of"] == done["id"]
    run(Operation.objects.get(pk=undo.json()["id"]))
    assert world.taints("h100-01") == []
    assert operator.get(where).json()["undos"] == [undo.json()["id"]]
    listed = operator.get(BASE).json()
    assert [one["id"] for one in listed["results"]] == [undo.json()["id"], done["id"]]


def test_the_same_key_gives_the_same_operation_and_another_body_is_refused(
    world: World, as_role: AsRole
) -> None:
    operator = as_role(Role.OPERATOR)
    shown = preview(operator, world.node("h100-01"), **MAINT)
    first, again = create(operator, shown), create(operator, shown)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]

    run(Operation.objects.get(pk=first.json()["id"]))
    assert create(operator, shown).json()["id"] == first.json()["id"], "even after it has run"
    other = create(operator, shown, reason="another")
    assert (other.status_code, other.json()["type"]) == (409, "urn:gpuadmin:key-reused")
    assert Operation.objects.count() == 1


def test_a_snapshot_that_has_moved_is_refused_with_the_difference(
    world: World, as_role: AsRole
) -> None:
    operator = as_role(Role.OPERATOR)
    shown = preview(operator, world.node("h100-01"), key="maint", effect="NoExecute")
    world.write_taints("h100-01", [{"key": "team", "effect": "NoSchedule"}])
    world.pod("newcomer", "h100-01")
    answer = create(operator, shown)
    assert answer.status_code == 409
    assert answer.json()["type"] == "urn:gpuadmin:snapshot-moved"
    assert answer.json()["difference"] == [
        "h100-01 was without any and is team:NoSchedule.",
        "These pods would be ended too: team/newcomer.",
    ]
    assert create(operator, shown | {"fingerprint": "0" * 64}).status_code == 409
    assert not Operation.objects.exists()


def test_a_status_write_of_the_node_does_not_move_the_snapshot(
    world: World, as_role: AsRole
) -> None:
    operator = as_role(Role.OPERATOR)
    shown = preview(operator, world.node("h100-01"), **MAINT)
    world.client.patch("/api/v1/nodes/h100-01", {"metadata": {"labels": {"a": "b"}}})
    assert create(operator, shown).status_code == 201


def test_where_pods_end_the_nodes_name_is_typed(world: World, as_role: AsRole) -> None:
    operator = as_role(Role.OPERATOR)
    uid = world.node("h100-01")
    world.pod("job", "h100-01")
    shown = preview(operator, uid, key="maint", effect="NoExecute")
    assert shown["plan"]["confirm"] == {"needed": True, "phrase": "h100-01"}
    refused = create(operator, shown)
    assert refused.status_code == 422
    assert refused.json()["errors"] == {"confirm": "Pods will be ended: type “h100-01”."}
    assert create(operator, shown, confirm="h100-01").status_code == 201


def test_a_blocked_plan_is_not_made(world: World, as_role: AsRole) -> None:
    operator = as_role(Role.OPERATOR)
    uid = world.node("h100-01")
    world.replace_node("h100-01")
    answer = create(operator, preview(operator, uid, **MAINT))
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:gpuadmin:blocked")
    assert answer.json()["blockers"] == [
        "h100-01: The node is gone: another machine bears its name now."
    ]


def test_a_queued_operation_can_be_cancelled_and_one_that_ran_cannot(
    world: World, as_role: AsRole
) -> None:
    operator = as_role(Role.OPERATOR)
    shown = preview(operator, world.node("h100-01"), **MAINT)
    made = create(operator, shown).json()
    cancelled = operator.post(f"{BASE}/{made['id']}/cancel")
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert run(Operation.objects.get()).state == "cancelled"
    assert world.taints("h100-01") == []
    again = operator.post(f"{BASE}/{made['id']}/cancel")
    assert (again.status_code, again.json()["type"]) == (409, "urn:gpuadmin:not-now")


def test_what_has_written_nothing_cannot_be_undone(world: World, as_role: AsRole) -> None:
    operator = as_role(Role.OPERATOR)
    made = create(operator, preview(operator, world.node("h100-01"), **MAINT)).json()
    answer = operator.post(f"{BASE}/{made['id']}/undo/preview")
    assert answer.status_code == 409
    assert "nothing to undo" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"kind": "node.explode"}, 422, "kind"),
        ({"kind": "taint.restore"}, 422, "kind"),
        ({"kind": None}, 400, "kind"),
        ({"parameters": []}, 400, "parameters"),
        ({"parameters": {"nodes": ["u"], "key": "?", "effect": "NoSchedule"}}, 422, "key"),
    ],
)
def test_a_bad_change_is_told_by_field(
    world: World, as_role: AsRole, change: dict[str, Any], status: int, field: str
) -> None:
    body = {"kind": "taint.add", "parameters": {"nodes": ["u"], **MAINT}} | change
    answer = as_role(Role.OPERATOR).post(f"{BASE}/preview", body)
    assert (answer.status_code, list(answer.json()["errors"])) == (status, [field])


def test_a_key_and_a_reason_are_needed(world: World, as_role: AsRole) -> None:
    operator = as_role(Role.OPERATOR)
    shown = preview(operator, world.node("h100-01"), **MAINT)
    without_key = create(operator, shown, key="")
    assert (without_key.status_code, list(without_key.json()["errors"])) == (
        400,
        ["Idempotency-Key"],
    )
    assert create(operator, shown, reason="  ").json()["errors"].keys() == {"reason"}


def test_a_token_capped_to_viewer_looks_but_does_not_touch(world: World, as_role: AsRole) -> None:
    capped = as_role(Role.ADMIN, cap=Role.VIEWER)
    assert capped.get(BASE).status_code == 200
    body = {"kind": "taint.add", "parameters": {"nodes": [world.node("h100-01")], **MAINT}}
    answer = capped.post(f"{BASE}/preview", body)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:gpuadmin:refused")
    assert answer.json()["detail"].startswith("Your role is viewer.")


def test_an_unknown_operation_is_a_problem(as_role: AsRole) -> None:
    answer = as_role(Role.VIEWER).get(f"{BASE}/{uuid4()}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")


def test_a_cordon_that_puts_itself_back_is_made_over_rest(world: World, as_role: AsRole) -> None:
    operator = as_role(Role.OPERATOR)
    uid = world.node("h100-01")
    change = {"kind": "node.cordon", "parameters": {"nodes": [uid]}}
    shown = operator.post(f"{BASE}/preview", change).json()
    assert shown["plan"]["targets"][0]["after"] == {"unschedulable": True}
    made = create(operator, shown, undo_after_seconds=3600)
    assert made.status_code == 201, made.json()
    assert made.json()["undo_at"] is not None
    run(Operation.objects.get(pk=made.json()["id"]))
    done = operator.get(made.headers["Location"]).json()
    assert (done["state"], done["targets"][0]["reversed_at"]) == ("succeeded", None)
    assert world.get_node("h100-01")["spec"]["unschedulable"] is True
