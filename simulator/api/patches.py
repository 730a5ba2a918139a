"""The three kinds of patch: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

Pure: the target is never changed, the patched copy is answered.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from simulator.api.errors import ApiError

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

# patchMergeKey of the lists in core/v1 and apps/v1 that have one. Taints, tolerations and
# containerStatuses have none: a patch replaces them whole (contracts.md 9.1).
MERGE_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "env", "imagePullSecrets", "volumes"), "name"),
    **dict.fromkeys(("addresses", "conditions"), "type"),
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
}
PRIMITIVE_SETS = {"finalizers"}


def apply_patch(content_type: str, target: dict[str, Any], patch: Any) -> Any:
    """Raises 400 or 422 for a patch that does not fit, 415 for an unknown kind of patch."""
    if content_type not in _KINDS:
        raise ApiError(415, f"the body of the request was in an unknown format: {content_type}")
    patched_by, json_type = _KINDS[content_type]
    if not isinstance(patch, json_type):
        raise ApiError(400, "the patch has the wrong JSON type")
    return patched_by(target, patch)


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def _strategic(target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    if patch.get("$patch") == "replace":
        return {key: deepcopy(value) for key, value in patch.items() if key != "$patch"}
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.partition("/")[2]
            result[field] = [entry for entry in result.get(field) or [] if entry not in value]
        elif key.startswith("$"):
            continue  # $setElementOrder: the order of a keyed list carries no meaning here
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = _strategic_field(key, result.get(key), value)
    return result


def _strategic_field(field: str, target: Any, patch: Any) -> Any:
    if isinstance(patch, dict):
        return _strategic(target, patch)
    if isinstance(patch, list) and field in PRIMITIVE_SETS:
        return list(dict.fromkeys([*(target or []), *patch]))
    if isinstance(patch, list) and field in MERGE_KEYS:
        return _keyed_list(MERGE_KEYS[field], target or [], patch)
    return deepcopy(patch)


def _keyed_list(merge_key: str, target: list[Any], patch: list[Any]) -> list[Any]:
    if any(entry == {"$patch": "replace"} for entry in patch):
        return [deepcopy(entry) for entry in patch if entry != {"$patch": "replace"}]
    result = {entry.get(merge_key): entry for entry in target}
    for entry in patch:
        if not isinstance(entry, dict) or merge_key not in entry:
            message = f"map: {entry} does not contain declared merge key: {merge_key}"
            raise ApiError(400, message)
        if entry.get("$patch") == "delete":
            result.pop(entry[merge_key], None)
        else:
            result[entry[merge_key]] = _strategic(result.get(entry[merge_key]), entry)
    return list(result.values())


def _json_patch(target: dict[str, Any], operations: list[Any]) -> Any:
    document: Any = {"": deepcopy(target)}
    for operation in operations:
        try:
            _json_operation(document, operation)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise ApiError(422, f"the server rejected our request: {operation}: {error}") from None
    return document[""]


def _json_operation(document: Any, operation: dict[str, Any]) -> None:
    name, path = operation["op"], operation["path"]
    if name not in ("add", "remove", "replace", "move", "copy", "test"):
        raise ValueError(f"unexpected kind: {name}")
    if name in ("move", "copy"):
        value = deepcopy(_at(document, operation["from"]))
    else:
        value = None if name == "remove" else operation["value"]
    if name == "test" and _at(document, path) != value:
        raise ValueError("testing value failed")
    if name in ("remove", "replace"):
        _remove(document, path)
    if name == "move":
        _remove(document, operation["from"])
    if name in ("add", "replace", "move", "copy"):
        _add(document, path, value)


def _walk(document: Any, path: str) -> tuple[Any, Any]:
    parent = document
    tokens = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")]
    for token in tokens[:-1]:
        parent = parent[int(token)] if isinstance(parent, list) else parent[token]
    last = tokens[-1]
    if isinstance(parent, list):
        return parent, len(parent) if last == "-" else int(last)
    return parent, last


def _at(document: Any, path: str) -> Any:
    parent, token = _walk(document, path)
    return parent[token]


def _add(document: Any, path: str, value: Any) -> None:
    parent, token = _walk(document, path)
    if not isinstance(parent, list):
        parent[token] = value
    elif 0 <= token <= len(parent):
        parent.insert(token, value)
    else:
        raise IndexError(f"index {token} is out of bounds")


def _remove(document: Any, path: str) -> None:
    parent, token = _walk(document, path)
    del parent[token]


_KINDS: dict[str, tuple[Callable[[Any, Any], Any], type]] = {
    JSON_PATCH: (_json_patch, list),
    MERGE_PATCH: (merge, dict),
    STRATEGIC_PATCH: (_strategic, dict),
}
