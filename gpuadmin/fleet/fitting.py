"""Making what others sent fit our columns: PostgreSQL takes no NUL, and columns have a length.

Names and messages of a cluster are anybody's text. What doesn't fit is cut or made unknown; it
must never stop the reading of everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection, models

MAX_JSON_TEXT = 4096


def fit(model: type[models.Model], columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns as ``model`` can store them: text without NUL and cut to its length, numbers
    outside their column's range unknown where that may be."""
    return {name: _fit(model._meta.get_field(name), value) for name, value in columns.items()}


def plain(text: str) -> str:
    """Text that UTF-8 and PostgreSQL can hold: no NUL, no half of a surrogate pair."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _fit(field: Any, value: Any) -> Any:
    if isinstance(value, str):
        limit = getattr(field, "max_length", None)
        return plain(value)[:limit] if limit else plain(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return _json(value) if isinstance(field, models.JSONField) else value
    return _integer(field, value)


def _integer(field: Any, value: int) -> int | None:
    kind = field.get_internal_type()
    if "Integer" not in kind:
        return value
    low, high = connection.ops.integer_field_range(kind)
    inside = (low is None or value >= low) and (high is None or value <= high)
    return value if inside or not field.null else None


def _json(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)[:MAX_JSON_TEXT]
    if isinstance(value, dict):
        return {plain(str(key)): _json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    return value
