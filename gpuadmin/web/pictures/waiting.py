"""What waits, with the scheduler's own first sentence; and what is wrong, with a way on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gpuadmin.fleet.models import Finding
from gpuadmin.planning.resources import recognise
from gpuadmin.web.pictures.states import SEVERITIES, State
from gpuadmin.web.pictures.text import count, first_sentence, plain
from gpuadmin.workloads.models import Pod


@dataclass(frozen=True)
class Waiting:
    name: str
    namespace: str
    asks: str
    verdict: str
    since: datetime | None


@dataclass(frozen=True)
class Wrong:
    """A finding as it reads in a list. Of a scheduler's message ``advice`` is the first sentence,
    ``rest`` what follows."""

    key: int
    state: State
    sentence: str
    advice: str
    rest: str
    since: datetime
    last: datetime
    times: int
    node: str
    set_up: bool


def waiting(pods: Iterable[Pod]) -> list[Waiting]:
    """In the order given: the longest wait first."""
    return [
        Waiting(
            pod.name,
            pod.namespace,
            asks(pod.requests),
            _verdict(pod),
            pod.created_at,
        )
        for pod in pods
    ]


def _verdict(pod: Pod) -> str:
    if pod.message:
        return first_sentence(pod.message)
    if pod.scheduler_name not in ("", "default-scheduler"):
        return f"Nothing said by its own scheduler, {pod.scheduler_name}"
    return "The scheduler has not said why yet"


def asks(requests: dict[str, int]) -> str:
    """``8 × gpu, 1 × mig-1g.10gb``."""
    return ", ".join(f"{n} × {_short(name)}" for name, n in sorted(requests.items()))


def _short(name: str) -> str:
    resource = recognise(name)
    return resource.short if resource else name


def asked_in_all(pods: Iterable[Pod]) -> str:
    """``7 pods · 19 cards and 3 slices asked``, each unit for itself."""
    pods = list(pods)
    units: Counter[str] = Counter()
    for pod in pods:
        for name, amount in pod.requests.items():
            resource = recognise(name)
            units[resource.unit if resource else "other"] += amount
    words = [count(units[unit], unit) for unit in ("card", "slice", "slot") if units[unit]]
    return " · ".join(filter(None, [count(len(pods), "pod"), " and ".join(words)]))


def wrongs(findings: Iterable[Finding]) -> list[Wrong]:
    """In the order given: worst first, then newest."""
    return [_wrong(finding) for finding in findings]


def _wrong(finding: Finding) -> Wrong:
    whole = plain(finding.advice)
    advice = first_sentence(whole) if finding.object_kind == "pods" else whole
    rest = whole.strip().removeprefix(advice).lstrip(". ")
    return Wrong(
        key=finding.pk,
        state=SEVERITIES[Finding.Severity(finding.severity)],
        sentence=plain(finding.sentence),
        advice=advice,
        rest=rest,
        since=finding.first_seen,
        last=finding.last_seen,
        times=finding.count,
        node=finding.node_name,
        set_up=finding.code.startswith(("agent", "collect", "cluster", "watch", "poll")),
    )


def tally(found: Iterable[Wrong]) -> str:
    """``2 critical · 3 warnings``."""
    by_state = Counter(wrong.state.words for wrong in found)
    critical, warnings, notes = (by_state[w] for w in ("critical", "warning", "note"))
    words = [
        f"{critical} critical" if critical else "",
        count(warnings, "warning") if warnings else "",
        count(notes, "note") if notes else "",
    ]
    return " · ".join(filter(None, words))
