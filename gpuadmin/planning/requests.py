"""What one pod requests, by the scheduler's formula (C06; contracts.md 9.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuadmin.planning.resources import asked, recognise

Quantities = Mapping[str, str | int]


@dataclass(frozen=True)
class ContainerRequest:
    """One container's ``resources``. ``sidecar``: an init container with restartPolicy Always."""

    requests: Quantities = field(default_factory=dict)
    limits: Quantities = field(default_factory=dict)
    sidecar: bool = False

    def amount(self, name: str) -> int:
        """Only limits given: they are the request (Kubernetes defaults it so)."""
        return asked(self.requests.get(name, self.limits.get(name, 0)))


def effective_requests(
    init: Iterable[ContainerRequest],
    containers: Iterable[ContainerRequest],
    overhead: Quantities | None = None,
) -> dict[str, int]:
    """Per accelerator resource name, what the scheduler charges; names that come to 0 are left out.

    The larger of (apps + all sidecars) and (each ordinary init container + the sidecars started
    before it), plus overhead. ``init`` is in order: order matters.
    """
    init, containers = list(init), list(containers)
    totals = {name: _effective(name, init, containers) for name in _names([*init, *containers])}
    for name, amount in (overhead or {}).items():
        if recognise(name):
            totals[name] = totals.get(name, 0) + asked(amount)
    return {name: total for name, total in sorted(totals.items()) if total > 0}


def _effective(name: str, init: list[ContainerRequest], containers: list[ContainerRequest]) -> int:
    sidecars = peak = 0
    for container in init:
        amount = container.amount(name)
        if container.sidecar:
            sidecars += amount
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + amount)
    running = sum(container.amount(name) for container in containers)
    return max(peak, running + sidecars)


def _names(containers: list[ContainerRequest]) -> set[str]:
    return {
        name
        for container in containers
        for name in (*container.requests, *container.limits)
        if recognise(name)
    }
