"""Label and field selectors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from simulator.api.errors import ApiError
from simulator.api.kinds import Kind

Matcher = Callable[[dict[str, Any]], bool]
LabelMatcher = Callable[[dict[str, str]], bool]

_SPLIT = re.compile(r",(?![^(]*\))")
_SET = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s+\((?P<values>[^)]*)\)")
_EQUAL = re.compile(r"(?P<key>[^=!\s]+)\s*(?P<operator>==|=|!=)\s*(?P<values>\S*)")
_EXISTS = re.compile(r"(?P<not>!?)\s*(?P<key>[^=!\s,()]+)")

# What a real API server can select by, beside metadata.name and metadata.namespace.
FIELDS = {
    "pods": "spec.nodeName spec.schedulerName spec.restartPolicy status.phase status.podIP",
    "nodes": "spec.unschedulable",
    "events": "involvedObject.kind involvedObject.name involvedObject.namespace "
    "involvedObject.uid reason type",
}


def matcher(kind: Kind, labels: str, fields: str) -> Matcher:
    """One predicate for both selectors; raises 400 for one that cannot be read."""
    by_label = label_matcher(labels)
    by_field = _field_matcher(kind, fields)
    return lambda value: by_label(value["metadata"].get("labels") or {}) and by_field(value)


def label_matcher(selector: str) -> LabelMatcher:
    """``a=b,c!=d,e in (f,g),h notin (i),j,!k`` as a predicate on a label map."""
    terms = [_label_term(term.strip()) for term in _SPLIT.split(selector) if term.strip()]
    return lambda labels: all(term(labels) for term in terms)


def _label_term(text: str) -> LabelMatcher:
    if found := (_SET.fullmatch(text) or _EQUAL.fullmatch(text)):
        key, wanted = found["key"], found["operator"] in ("in", "=", "==")
        values = {value.strip() for value in found["values"].split(",")}
        return lambda labels: (labels.get(key) in values) is wanted
    if found := _EXISTS.fullmatch(text):
        key, wanted = found["key"], not found["not"]
        return lambda labels: (key in labels) is wanted
    raise ApiError(400, f'unable to parse requirement: "{text}"')


def _field_matcher(kind: Kind, selector: str) -> Matcher:
    known = f"metadata.name metadata.namespace {FIELDS.get(kind.resource, '')}".split()
    terms: list[tuple[str, bool, str]] = []
    for text in filter(None, selector.split(",")):
        found = _EQUAL.fullmatch(text.strip())
        if found is None or found["key"] not in known:
            raise ApiError(400, f'field label not supported: "{text}"')
        terms.append((found["key"], found["operator"] != "!=", found["values"]))
    return lambda value: all((_at(value, path) == text) is equal for path, equal, text in terms)


def _at(value: Any, path: str) -> str:
    for part in path.split("."):
        value = (value or {}).get(part)
    if path == "spec.unschedulable":
        return "true" if value else "false"
    return "" if value is None else str(value)
