"""Pods that wait or have failed: one finding an owner, however many pods (C25)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuadmin.collect.findings.about import WARNING
from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.services import FindingFact
from gpuadmin.workloads.queries import PodGroup, failed_groups, waiting_groups

CODES = ("pods_pending", "pods_failed")


def of_pods(cluster: Cluster) -> Iterator[FindingFact]:
    """12,000 failed pods of a Deployment are one sentence, and are counted by the database."""
    for group in waiting_groups(cluster):
        yield _finding("pods_pending", group, "waits", "wait")
    for group in failed_groups(cluster):
        yield _finding("pods_failed", group, "failed", "failed")


def _finding(code: str, group: PodGroup, one: str, many: str) -> FindingFact:
    first, name = group.first, f"{group.namespace}/{group.owner}"
    asks = ", ".join(f"{n} × {resource}" for resource, n in first.requests.items())
    if group.count == 1:
        sentence = f"{first} {one}: {asks}"
    elif group.owner:
        sentence = f"{group.count} pods of {name} {many}: {asks}"
    else:  # each may ask for something else
        sentence = f"{group.count} pods of {group.namespace} that nothing owns {many}"
    return FindingFact(
        code=code,
        severity=WARNING,
        object_kind="pods",
        object_uid=name,
        object_name=name,
        sentence=sentence,
        advice=first.message or first.reason or "The scheduler has not said why yet.",
    )
