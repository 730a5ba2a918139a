"""Matching and editing taints: C20, C21, C22 on the pure rules."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuadmin.kube.structs import Toleration
from gpuadmin.planning import taints
from gpuadmin.planning.taints import EFFECTS, Taint

NO_SCHEDULE = Taint("gpu", "NoSchedule", "a")
NO_EXECUTE = Taint("gpu", "NoExecute", "a")


def toleration(**fields: Any) -> Toleration:
    return msgspec.convert(fields, Toleration)


@pytest.mark.parametrize(
    ("name", "fields", "taint", "expected"),
    [
        ("t1", {"operator": "Exists"}, NO_SCHEDULE, True),
        ("t1 of the other effect", {"operator": "Exists"}, NO_EXECUTE, True),
        ("t2", {"operator": "Exists", "effect": "NoExecute"}, NO_SCHEDULE, False),
        ("t3", {"key": "gpu", "operator": "Exists"}, NO_SCHEDULE, True),
        ("t4", {"key": "gpu", "value": "a"}, NO_SCHEDULE, True),
        (
            "t5",
            {"key": "gpu", "operator": "Equal", "value": "", "effect": "NoSchedule"},
            NO_SCHEDULE,
            False,
        ),
        ("t6", {"key": "", "operator": "Equal", "value": "a"}, NO_SCHEDULE, False),
        ("t6 against an empty value", {"key": "", "operator": "Equal"}, Taint("gpu", "X"), False),
        (
            "t7",
            {
                "key": "gpu",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
            NO_EXECUTE,
            True,
        ),
        ("another key", {"key": "cpu", "operator": "Exists"}, NO_SCHEDULE, False),
        ("another value", {"key": "gpu", "value": "b"}, NO_SCHEDULE, False),
        ("an unknown operator", {"key": "gpu", "operator": "Near"}, NO_SCHEDULE, False),
        ("no field at all", {}, NO_SCHEDULE, False),
    ],
)
def test_c22_which_tolerations_match(
    name: str, fields: dict[str, Any], taint: Taint, expected: bool
) -> None:
    assert taints.tolerates(toleration(**fields), taint) is expected, name


def test_c22_a_toleration_with_seconds_holds_for_so_long() -> None:
    t7 = toleration(key="gpu", operator="Exists", effect="NoExecute", tolerationSeconds=300)
    assert taints.seconds_until_eviction([t7], NO_EXECUTE) == 300
    assert taints.seconds_until_eviction([], NO_EXECUTE) == 0
    assert taints.seconds_until_eviction([toleration(operator="Exists")], NO_EXECUTE) is None
    assert taints.seconds_until_eviction([], NO_SCHEDULE) is None


def test_the_first_matching_toleration_decides_when_a_pod_goes() -> None:
    short = toleration(key="gpu", operator="Exists", tolerationSeconds=-5)
    forever = toleration(operator="Exists")
    assert taints.seconds_until_eviction([short, forever], NO_EXECUTE) == 0
    assert taints.seconds_until_eviction([forever, short], NO_EXECUTE) is None


def test_c22_prefer_no_schedule_never_closes() -> None:
    assert [effect for effect in EFFECTS if taints.closes(Taint("gpu", effect))] == [
        "NoSchedule",
        "NoExecute",
    ]


def test_c21_same_key_with_different_effects() -> None:
    listed = [NO_SCHEDULE.json(), NO_EXECUTE.json()]

    removed = taints.remove(listed, "gpu", "NoExecute")
    assert removed.value == [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]

    replaced = taints.add(removed.value, Taint("gpu", "NoSchedule", "b"))
    assert replaced.value == [{"key": "gpu", "value": "b", "effect": "NoSchedule"}]

    again = taints.add(replaced.value, Taint("gpu", "NoSchedule", "b"))
    assert again.value is None
    assert again.message == "Already so: gpu=b:NoSchedule is there."

    absent = taints.remove(replaced.value, "gpu", "PreferNoSchedule")
    assert absent.value is None
    assert absent.message == "Not present: there is no gpu:PreferNoSchedule."


def test_c20_a_null_list_can_be_added_to_and_removed_from() -> None:
    assert taints.add(None, NO_SCHEDULE).value == [NO_SCHEDULE.json()]
    assert taints.remove(None, "gpu", "NoSchedule").value is None


def test_c20_what_others_wrote_stays_to_the_letter() -> None:
    autoscaler = {
        "key": "ToBeDeletedByClusterAutoscaler",
        "effect": "NoSchedule",
        "timeAdded": "2026-11-01T00:00:00Z",
    }
    added = taints.add([autoscaler], NO_SCHEDULE)
    assert added.value == [autoscaler, NO_SCHEDULE.json()]
    assert taints.remove(added.value, "gpu", "NoSchedule").value == [autoscaler]


def test_restoring_leaves_alone_what_somebody_changed_since() -> None:
    wrote, was = NO_SCHEDULE.json(), Taint("gpu", "NoSchedule", "old").json()
    changed = Taint("gpu", "NoSchedule", "theirs").json()

    left = taints.restore([changed], wrote, was)
    assert left.value is None
    assert "Left alone" in left.message
    assert "gpu=theirs:NoSchedule" in left.message
    assert taints.restore([], wrote, None).message.startswith("Already as it was")
    assert taints.restore([wrote], wrote, was).value == [was]


KEYS = st.sampled_from(["gpu", "team", "nvidia.com/gpu"])
VALUES = st.sampled_from(["", "a", "b"])
TAINTS = st.builds(Taint, KEYS, st.sampled_from(EFFECTS), VALUES)
LISTS = st.one_of(
    st.none(),
    st.lists(TAINTS, unique_by=lambda t: (t.key, t.effect), max_size=6).map(
        lambda found: [one.json() for one in found]
    ),
)


@given(LISTS, TAINTS)
def test_adding_twice_writes_once_and_touches_nothing_else(
    listed: list[dict[str, Any]] | None, taint: Taint
) -> None:
    after = taints.add(listed, taint).value or listed or []
    assert taints.add(after, taint).value is None
    others = [one for one in listed or [] if (one["key"], one["effect"]) != _identity(taint)]
    assert [one for one in after if (one["key"], one["effect"]) != _identity(taint)] == others
    assert len({(one["key"], one["effect"]) for one in after}) == len(after)


@given(LISTS, TAINTS)
def test_restoring_after_adding_gives_the_first_list_back(
    listed: list[dict[str, Any]] | None, taint: Taint
) -> None:
    edit = taints.add(listed, taint)
    after = listed if edit.value is None else edit.value
    was = taints.find(listed, *_identity(taint))
    wrote = taints.find(after, *_identity(taint))
    back = taints.restore(after, wrote, was)
    assert (back.value if back.value is not None else after or []) == (listed or [])


@pytest.mark.parametrize(
    ("taint", "fields"),
    [
        (Taint("nvidia.com/gpu", "NoSchedule", "present"), set()),
        (Taint("gpu", "NoExecute"), set()),
        (Taint("", "NoSchedule"), {"key"}),
        (Taint("a b", "NoSchedule"), {"key"}),
        (Taint("-gpu", "NoSchedule"), {"key"}),
        (Taint("x" * 64, "NoSchedule"), {"key"}),
        (Taint("UPPER.com/gpu", "NoSchedule"), {"key"}),
        (Taint("/gpu", "NoSchedule"), {"key"}),
        (Taint("a/b/c", "NoSchedule"), {"key"}),
        (Taint("gpu\n", "NoSchedule"), {"key"}),
        (Taint("gpu", "NoSchedule", "v" * 64), {"value"}),
        (Taint("gpu", "NoSchedule", "<script>"), {"value"}),
        (Taint("gpu", "Never", "a."), {"effect", "value"}),
    ],
)
def test_a_taint_that_kubernetes_would_refuse_is_refused_by_field(
    taint: Taint, fields: set[str]
) -> None:
    assert set(taints.problems(taint)) == fields


def _identity(taint: Taint) -> tuple[str, str]:
    return taint.key, taint.effect
