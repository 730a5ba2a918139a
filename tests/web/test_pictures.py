"""Drawings and words, as pure functions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gpuadmin.web.pictures import text
from gpuadmin.web.pictures.operations import diff
from gpuadmin.web.pictures.truth import cards_per_tick
from gpuadmin.web.pictures.waiting import asked_in_all


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"),
        (8.9, "8 s"),
        (60, "1 m"),
        (8040, "2 h 14 m"),
        (7200, "2 h"),
        (367200, "4 d 6 h"),
    ],
)
def test_ages_read_as_people_say_them(seconds: float, words: str) -> None:
    assert text.age(seconds) == words


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA-A100-SXM4-80GB", "A100"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla-T4", "T4"),
        ("NVIDIA GB10", "GB10"),
        ("Something else", "Something else"),
    ],
)
def test_models_are_called_by_the_part_that_people_say(name: str, short: str) -> None:
    assert text.short_model(name) == short


def test_memory_is_one_figure_with_one_unit_and_a_dash_for_what_is_unknown() -> None:
    assert text.gigabytes(8 * text.GIB + text.GIB * 4 // 5, 80 * text.GIB) == "8.8/80 GB"
    assert text.gigabytes(None, None) == "–/– GB"


def test_terminal_colours_and_control_characters_are_gone() -> None:
    assert text.plain("\x1b[31mred\x1b[0m\x00 tab\t\u202e") == "red tab\t"


def test_a_share_of_the_unknown_is_unknown() -> None:
    assert text.percent(None, 8) is None
    assert text.percent(1, None) is None


@pytest.mark.parametrize(("cards", "tick"), [(73, 1), (200, 1), (201, 2), (900, 5), (1900, 10)])
def test_ticks_stand_for_more_cards_on_a_large_fleet(cards: int, tick: int) -> None:
    assert cards_per_tick(cards) == tick


def test_what_is_asked_is_summed_in_each_unit_for_itself() -> None:
    pods = [
        SimpleNamespace(requests={"nvidia.com/gpu": 8}),
        SimpleNamespace(requests={"nvidia.com/mig-1g.10gb": 2, "nvidia.com/gpu.shared": 1}),
    ]
    assert asked_in_all(pods) == "2 pods · 8 cards and 2 slices and 1 slot"  # type: ignore[arg-type]


def test_a_changed_value_is_one_taint_removed_and_one_added() -> None:
    old, new = (
        {"key": "a", "value": "1", "effect": "NoSchedule"},
        {"key": "b", "effect": "NoExecute"},
    )
    found = diff([old, new], [{**old, "value": "2"}, new])
    assert (found.removed, found.added, found.kept) == (
        ["a=1:NoSchedule"],
        ["a=2:NoSchedule"],
        ["b:NoExecute"],
    )
