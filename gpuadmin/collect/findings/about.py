"""The common shape of a finding about one node."""

from __future__ import annotations

from gpuadmin.fleet.models import Finding, Node
from gpuadmin.fleet.services import FindingFact

CRITICAL, WARNING, NOTE = (
    Finding.Severity.CRITICAL,
    Finding.Severity.WARNING,
    Finding.Severity.INFO,
)


def about(node: Node, code: str, severity: str, sentence: str, advice: str) -> FindingFact:
    """A finding whose object is the node; there is one of each code at a time."""
    return FindingFact(
        code=code,
        severity=severity,
        object_kind="node",
        object_uid=node.uid,
        object_name=node.name,
        node_name=node.name,
        sentence=sentence,
        advice=advice,
    )
