"""Patches as pure functions: RFC 6902, RFC 7386 and Kubernetes' strategic merge."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.api.errors import ApiError
from simulator.api.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, apply_patch, merge

CONDITIONS = {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Disk", "status": "F"}]}


def test_a_merge_patch_replaces_lists_and_removes_nulls() -> None:
    before = {"a": [1, 2], "b": {"c": 1, "d": 2}}
    assert apply_patch(MERGE_PATCH, before, {"a": [3], "b": {"c": None}}) == {
        "a": [3],
        "b": {"d": 2},
    }


def test_a_strategic_patch_merges_conditions_by_type() -> None:
    patch = {"conditions": [{"type": "Ready", "status": "False"}]}
    after = apply_patch(STRATEGIC_PATCH, CONDITIONS, patch)
    assert after["conditions"] == [
        {"type": "Ready", "status": "False"},
        {"type": "Disk", "status": "F"},
    ]


def test_a_strategic_patch_deletes_one_entry_of_a_keyed_list() -> None:
    patch = {"conditions": [{"type": "Disk", "$patch": "delete"}]}
    after = apply_patch(STRATEGIC_PATCH, CONDITIONS, patch)
    assert after["conditions"] == [{"type": "Ready", "status": "True"}]


def test_a_strategic_patch_replaces_taints_whole() -> None:
    """Contracts.md 9.1: the list of taints is atomic."""
    before = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    patch = {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}
    assert apply_patch(STRATEGIC_PATCH, before, patch) == patch


def test_a_strategic_patch_edits_finalizers_as_a_set() -> None:
    before = {"finalizers": ["a", "b"]}
    added = apply_patch(STRATEGIC_PATCH, before, {"finalizers": ["b", "c"]})
    assert added == {"finalizers": ["a", "b", "c"]}
    removed = apply_patch(STRATEGIC_PATCH, before, {"$deleteFromPrimitiveList/finalizers": ["a"]})
    assert removed == {"finalizers": ["b"]}


def test_a_strategic_patch_can_replace_a_map() -> None:
    before = {"m": {"a": 1, "b": 2}}
    after = apply_patch(STRATEGIC_PATCH, before, {"m": {"$patch": "replace", "c": 3}})
    assert after == {"m": {"c": 3}}


@pytest.mark.parametrize(
    ("operations", "after"),
    [
        ([{"op": "add", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}),
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3]}),
        ([{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2]}),
        ([{"op": "replace", "path": "/a/1", "value": 9}], {"a": [1, 9]}),
        ([{"op": "remove", "path": "/a"}], {}),
        ([{"op": "move", "from": "/a", "path": "/x~1y"}], {"x/y": [1, 2]}),
        ([{"op": "copy", "from": "/a/0", "path": "/c"}], {"a": [1, 2], "c": 1}),
        ([{"op": "test", "path": "/a/0", "value": 1}], {"a": [1, 2]}),
        ([{"op": "replace", "path": "", "value": {"z": 1}}], {"z": 1}),
    ],
)
def test_json_patch_operations(operations: list[dict[str, Any]], after: dict[str, Any]) -> None:
    assert apply_patch(JSON_PATCH, {"a": [1, 2]}, operations) == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a/0", "value": 2},
        {"op": "remove", "path": "/nothing"},
        {"op": "add", "path": "/a/9", "value": 1},
        {"op": "replace", "path": "/a/x", "value": 1},
        {"op": "guess", "path": "/a"},
        {"path": "/a"},
        "remove",
    ],
)
def test_a_json_patch_that_does_not_fit_is_422_and_changes_nothing(operation: object) -> None:
    before = {"a": [1, 2]}
    with pytest.raises(ApiError) as refused:
        apply_patch(JSON_PATCH, before, [{"op": "add", "path": "/b", "value": 1}, operation])
    assert refused.value.code == 422
    assert before == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("content_type", "patch", "code"),
    [
        (JSON_PATCH, {}, 400),
        (MERGE_PATCH, [], 400),
        (STRATEGIC_PATCH, {"conditions": [{"status": "True"}]}, 400),
        ("application/apply-patch+yaml", {}, 415),
    ],
)
def test_a_patch_of_the_wrong_kind_is_refused(content_type: str, patch: Any, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        apply_patch(content_type, {}, patch)
    assert refused.value.code == code


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


@given(target=OBJECTS, patch=OBJECTS)
def test_a_merge_patch_applied_twice_gives_the_same_and_leaves_its_target_alone(
    target: dict[str, Any], patch: dict[str, Any]
) -> None:
    before = deepcopy(target)
    once = merge(target, patch)
    assert merge(once, patch) == once
    assert target == before
