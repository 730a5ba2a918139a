"""What the OpenAPI description says beyond the serializers: errors, and the changes by kind."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuadmin.api.problems import CONTENT_TYPE
from gpuadmin.operations.kinds import KINDS

Json = dict[str, Any]
SCHEMAS = "#/components/schemas/"
_TEXTS = {"type": "array", "items": {"type": "string"}}
_PROBLEM: Json = {
    "type": "object",
    "description": "An error (RFC 9457). `type` names it for programs, `detail` is a sentence.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "examples": ["urn:gpuadmin:snapshot-moved"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "object",
            "description": "Field → sentence.",
            "additionalProperties": {"type": "string"},
        },
        "difference": {**_TEXTS, "description": "What moved since the preview."},
        "blockers": {**_TEXTS, "description": "Why the plan is not carried out."},
    },
}
_ALWAYS = {
    "401": "Nobody is signed in, or the token is none.",
    "403": "The role, or the token's cap, does not allow it.",
}
_ASKED = {"400": "A parameter or the body is no such thing."}
_NAMED = {"404": "There is no such object, or no such cluster."}
_CHANGES = {
    "409": "It can't be done as things are: the detail says why.",
    "422": "A field is not acceptable: `errors` says which.",
}
_CLUSTER = {
    "502": "The Kubernetes API server refused us.",
    "503": "The Kubernetes API server can't be reached now.",
}


def complete(result: Json, generator: Any, request: Any, public: bool) -> Json:
    """drf-spectacular's hook: the description with its errors, changes and 3.1's way of null."""
    components = result["components"]
    components["schemas"]["Problem"] = _PROBLEM
    components["responses"] = {
        "Problem": {
            "description": "An error.",
            "content": {CONTENT_TYPE: {"schema": {"$ref": f"{SCHEMAS}Problem"}}},
        }
    }
    _describe_changes(components["schemas"])
    components["schemas"] = dict(sorted(components["schemas"].items()))
    for path, methods in result["paths"].items():
        for method, operation in methods.items():
            for status, words in _errors(path, method, operation).items():
                reference = {"$ref": "#/components/responses/Problem", "description": words}
                operation["responses"].setdefault(status, reference)
    whole: Json = _null_as_in_3_1(result)
    return whole


def _errors(path: str, method: str, operation: Json) -> dict[str, str]:
    """Status → when, for one operation."""
    parameters = operation.get("parameters", [])
    asked = "requestBody" in operation or any(one["in"] != "path" for one in parameters)
    named = any(one["in"] == "path" or one["name"] == "cluster" for one in parameters)
    found = dict(_ALWAYS)
    if asked:
        found |= _ASKED
    if named:
        found |= _NAMED
    if method != "get":
        found |= _CHANGES
    if method == "post" and "/operations" in path and not path.endswith("/cancel"):
        found |= _CLUSTER
    return dict(sorted(found.items()))


def _describe_changes(schemas: Json) -> None:
    """Of each change that may be asked for, its parameters: one of them by ``kind``."""
    offered = [kind for kind in KINDS.values() if kind.offered]
    _, parts = msgspec.json.schema_components(
        [kind.parameters for kind in offered], ref_template=SCHEMAS + "{name}"
    )
    schemas |= parts
    mapping = {}
    for kind in offered:
        name = "Change" + "".join(word.capitalize() for word in kind.name.split("."))
        mapping[kind.name] = SCHEMAS + name
        schemas[name] = {
            "type": "object",
            "required": ["kind", "parameters"],
            "properties": {
                "kind": {"type": "string", "const": kind.name},
                "parameters": {"$ref": SCHEMAS + kind.parameters.__name__},
            },
        }
    schemas["ChangeIn"] = {
        "description": "A change, by its kind.",
        "oneOf": [{"$ref": reference} for reference in mapping.values()],
        "discriminator": {"propertyName": "kind", "mapping": mapping},
    }
    schemas["CreateIn"] = {
        "description": "A previewed change, confirmed.",
        "allOf": [{"$ref": f"{SCHEMAS}ChangeIn"}, {"$ref": f"{SCHEMAS}ConfirmIn"}],
    }


def _null_as_in_3_1(part: Any) -> Any:
    """``nullable: true``, which drf-spectacular has in its pages of lists, is 3.0's and no more."""
    if isinstance(part, list):
        return [_null_as_in_3_1(one) for one in part]
    if not isinstance(part, dict):
        return part
    found = {name: _null_as_in_3_1(inner) for name, inner in part.items() if name != "nullable"}
    if part.get("nullable") is True and isinstance(part.get("type"), str):
        found["type"] = [part["type"], "null"]
    return found
