"""Small pieces of every page: glyphs, icons, ages, and the dash for what is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gpuadmin.web.pictures import text
from gpuadmin.web.pictures.states import State

register = template.Library()


@register.simple_tag
def glyph(name: str, tone: str, words: str = "") -> SafeString:
    """A state's sign. Without ``words`` it is decoration beside a text that says the same."""
    said = format_html('role="img" aria-label="{}"', words) if words else 'aria-hidden="true"'
    spin = " spin" if name == "run" else ""
    return format_html(
        '<svg class="g {}{}" viewBox="0 0 12 12" {}><use href="#g-{}"/></svg>',
        tone,
        spin,
        said if words else SafeString(said),
        name,
    )


@register.simple_tag
def state(one: State) -> SafeString:
    """Glyph and words of a state; only what is wrong is coloured text."""
    return format_html(
        '<span class="st {}"{}>{}{}</span>',
        one.tone if one.loud else "",
        format_html(' title="{}"', one.why) if one.why else "",
        glyph(one.glyph, one.tone),
        one.words,
    )


@register.simple_tag
def icon(name: str, size: str = "") -> SafeString:
    """A picture of a place or an action; always beside a text or in a labelled button."""
    return format_html(
        '<svg class="i {}" viewBox="0 0 16 16" aria-hidden="true"><use href="#i-{}"/></svg>',
        size,
        name,
    )


@register.simple_tag(takes_context=True)
def age(
    context: Mapping[str, Any], at: datetime | None, after: str = "", why: str = "never read"
) -> SafeString:
    """An age that ticks, with the time itself on hover; a dash when there is none."""
    if not at:  # also "", which a template makes of a missing agent's time
        return dash(None, why)
    seconds = (context["now"] - at).total_seconds()
    return format_html(
        '<time datetime="{}" data-age="{}" title="{}">{}{}</time>',
        at.isoformat(),
        after,
        f"{at:%d %b %Y %H:%M:%S} UTC",
        text.age(seconds),
        after,
    )


@register.filter
def dash(value: object, why: str = "unknown") -> SafeString:
    """The value, or "–" with the reason; unknown is never 0."""
    if value is None or value == "":
        return format_html(
            '<span class="unknown" title="{}">–<span class="sr"> ({})</span></span>', why, why
        )
    return format_html("{}", text.thousands(value) if type(value) is int else value)


@register.filter
def counted(number: int, words: str) -> str:
    """``{{ 3|counted:"pod" }}`` is ``3 pods``; ``"this,these"`` gives both forms."""
    one, _, many = words.partition(",")
    return text.count(number, one, many or None)


@register.filter
def uuid(value: str) -> str:
    return text.short_uuid(value)


@register.filter
def times(number: int) -> range:
    """To repeat a piece ``number`` times."""
    return range(number)
