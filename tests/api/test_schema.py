"""The OpenAPI description: valid, complete in its errors, and exact in what a change takes."""

from typing import Any

import pytest
from django.core.management import call_command
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from gpuadmin.accounts.roles import Role
from gpuadmin.operations.kinds import KINDS
from tests.api.conftest import AsRole

pytestmark = pytest.mark.django_db


@pytest.fixture
def schema(as_role: AsRole) -> dict[str, Any]:
    found: dict[str, Any] = as_role(Role.VIEWER).get("/api/v1/schema").json()
    return found


def test_the_schema_is_openapi_3_1_and_without_warnings(
    schema: dict[str, Any], tmp_path: Any
) -> None:
    assert schema["openapi"].startswith("3.1")
    assert "/api/v1/operations/{operation_id}/undo/preview" in schema["paths"]
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "schema"))


def test_every_operation_tells_its_errors_as_problems(schema: dict[str, Any]) -> None:
    [[kind, body]] = schema["components"]["responses"]["Problem"]["content"].items()
    assert (kind, body) == (
        "application/problem+json",
        {"schema": {"$ref": "#/components/schemas/Problem"}},
    )
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            told = {
                status: answer["$ref"]
                for status, answer in operation["responses"].items()
                if status >= "4"
            }
            assert {"401", "403"} <= set(told), (method, path)
            assert set(told.values()) == {"#/components/responses/Problem"}
            assert ("404" in told) >= ("{" in path), path
            assert ("409" in told) == (method != "get"), path


def test_null_is_told_in_the_way_of_3_1(schema: dict[str, Any]) -> None:
    assert "nullable" not in str(schema)
    pages = schema["components"]["schemas"]["PaginatedPodOutList"]["properties"]
    assert pages["next"]["type"] == ["string", "null"]


@pytest.mark.parametrize(
    ("kind", "parameters", "good"),
    [
        ("taint.add", {"nodes": ["u"], "key": "a", "effect": "NoSchedule"}, True),
        ("taint.add", {"nodes": ["u"], "key": "a", "effect": "Sometimes"}, False),
        ("taint.add", {"nodes": [], "key": "a", "effect": "NoSchedule"}, False),
        ("taint.remove", {"nodes": ["u"], "key": "a", "effect": "NoSchedule", "force": 1}, False),
        ("node.cordon", {"nodes": ["u"]}, True),
        ("node.cordon", {"nodes": ["u"], "key": "a"}, False),
        ("node.explode", {"nodes": ["u"]}, False),
    ],
)
def test_the_parameters_of_a_change_are_described_by_its_kind(
    schema: dict[str, Any], kind: str, parameters: dict[str, Any], good: bool
) -> None:
    whole = {"$ref": "#/components/schemas/ChangeIn", "components": schema["components"]}
    assert Draft202012Validator(whole).is_valid({"kind": kind, "parameters": parameters}) is good


def test_every_change_that_may_be_asked_for_is_described(schema: dict[str, Any]) -> None:
    described = schema["components"]["schemas"]["ChangeIn"]["discriminator"]["mapping"]
    assert set(described) == {kind.name for kind in KINDS.values() if kind.offered}
