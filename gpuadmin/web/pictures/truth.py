"""The line of truth: five figures, and the partition of all cards that adds up to the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gpuadmin.planning.facts import Use
from gpuadmin.web.pictures.states import USE_WORDS
from gpuadmin.web.pictures.text import DASH, count, short_model, thousands
from gpuadmin.workloads.facts import NodeRecord
from gpuadmin.workloads.queries import Amount, Overview, Totals

ORDER = [
    Use.BUSY,
    Use.QUIET,
    Use.IDLE,
    Use.UNMEASURED,
    Use.FAILED,
    Use.FREE,
    Use.BLOCKED,
    Use.UNKNOWN,
]
MEASURED = {Use.BUSY, Use.QUIET, Use.IDLE}
ONLY_WHEN_ANY = {Use.QUIET, Use.UNKNOWN}
MOST_TICKS = 200


@dataclass(frozen=True)
class Figure:
    """``value`` is a dash when unknown, and ``why`` says so. ``source``: agents or cluster."""

    label: str
    value: str
    detail: str
    href: str
    glyph: str = ""
    tone: str = ""
    why: str = ""
    source: str = "agents"


@dataclass(frozen=True)
class Share:
    """One part of the partition: ``css`` names its look, ``ticks`` is how many it gets."""

    use: Use
    cards: int
    ticks: int

    @property
    def words(self) -> str:
        return USE_WORDS[self.use]

    @property
    def css(self) -> str:
        return f"f-{self.use.value}"


@dataclass(frozen=True)
class Truth:
    figures: list[Figure]
    shares: list[Share]
    per_tick: int
    sentence: str
    apart: str


def truth(shown: Overview) -> Truth:
    """The line of truth of one overview."""
    totals = shown.totals
    per_tick = cards_per_tick(totals.owned)
    unsaid = ONLY_WHEN_ANY | (MEASURED if _why_unmeasured(totals) else set())
    shares = [
        Share(use, totals.uses[use], round(totals.uses[use] / per_tick))
        for use in ORDER
        if totals.uses[use] or use not in unsaid
    ]
    parts = ", ".join(f"{share.cards} {share.words}" for share in shares if share.cards)
    return Truth(
        figures=_figures(shown, totals),
        shares=shares,
        per_tick=per_tick,
        sentence=f"{count(totals.owned, 'card')}: {parts}" if parts else "No cards",
        apart=_apart(totals),
    )


def cards_per_tick(cards: int) -> int:
    """1, 2, 5, 10, 20 … cards a tick, so that there are never more than 200."""
    step = 1
    for factor in (2, 2.5, 2) * 6:
        if cards / step <= MOST_TICKS:
            break
        step = int(step * factor)
    return step


def _figures(shown: Overview, totals: Totals) -> list[Figure]:
    uses = totals.uses
    models = {m for record in shown.records if (m := _model(record))}
    unseen = [
        f"{uses[Use.FAILED]} failed" if uses[Use.FAILED] else "",
        f"{totals.not_observed} not observed" if totals.not_observed else "",
    ]
    allocated = totals.allocated
    dark, unmeasured = _why_dark(totals), _why_unmeasured(totals)
    return [
        Figure(
            "Owned",
            thousands(totals.owned),
            f"{count(totals.nodes, 'node')} · {count(len(models), 'model')}",
            "",
        ),
        Figure(
            "Working",
            DASH if dark else thousands(totals.working),
            " · ".join(filter(None, unseen)) or "every card answers",
            "use=failed",
            "ok",
            "ok",
            dark,
        ),
        Figure(
            "Allocated",
            DASH if allocated is None else thousands(allocated),
            _share(allocated, totals.owned),
            "",
            "busy",
            "t3",
            "Of some cards it is not known whether a pod holds them" if allocated is None else "",
            "cluster",
        ),
        Figure(
            "Busy",
            DASH if unmeasured else thousands(totals.busy),
            "use is not measured" if unmeasured else _more_held(uses),
            "use=busy",
            "busy",
            "busy",
            unmeasured,
        ),
        Figure(
            "Held but idle",
            DASH if unmeasured else thousands(totals.idle),
            "use is not measured" if unmeasured else _idle_models(shown.records, uses),
            "use=idle",
            "idle",
            "idle",
            unmeasured,
        ),
    ]


def _why_dark(totals: Totals) -> str:
    """Why nothing is known of what cards do; "" when an agent tells of any."""
    if totals.owned and totals.not_observed == totals.owned:
        return "No agent tells of any card now: they are known by the cluster's counts alone"
    return ""


def _why_unmeasured(totals: Totals) -> str:
    """Why nothing is known of how busy held cards are; "" when it is of any, or none is held."""
    measured = sum(totals.uses[use] for use in MEASURED)
    if totals.uses[Use.UNMEASURED] and not measured:
        return "No held card has a current reading of its use"
    return _why_dark(totals)


def _share(allocated: int | None, owned: int) -> str:
    if allocated is None:
        return f"unknown of {owned}"
    return f"{round(100 * allocated / owned)} % of owned" if owned else "nothing to hold"


def _more_held(uses: Counter[Use]) -> str:
    more = [
        f"{uses[Use.UNMEASURED]} held, not measurable" if uses[Use.UNMEASURED] else "",
        f"{uses[Use.QUIET]} quiet" if uses[Use.QUIET] else "",
    ]
    return " · ".join(filter(None, more)) or "all that is held is busy or idle"


def _idle_models(records: Iterable[NodeRecord], uses: Counter[Use]) -> str:
    """Which models are idle. Of held cards that can't be measured nobody knows."""
    idle: Counter[str] = Counter()
    for record in records:
        if idle_here := record.account.uses[Use.IDLE]:
            idle[_model(record) or "card"] += idle_here
    known = ", ".join(f"{n} {model}" for model, n in idle.most_common(3))
    if unmeasured := uses[Use.UNMEASURED]:
        return f"{known or 'known'} · {unmeasured} not measurable"
    return known or "no card is wasted"


def _model(record: NodeRecord) -> str:
    name = record.gpus[0].name if record.gpus else ""
    return short_model(name or record.node.labels.get("nvidia.com/gpu.product", ""))


def _apart(totals: Totals) -> str:
    """Slices and slots in their own units: never added to cards."""
    found = [
        _amount(totals.slices, "MIG slice"),
        _amount(totals.slots, "time slot"),
    ]
    named = [text for text in found if text]
    return f"Counted apart: {' and '.join(named)} are free." if named else ""


def _amount(amount: Amount, unit: str) -> str:
    if not amount.total:
        return ""
    free = "an unknown number" if amount.free is None else str(amount.free)
    return f"{free} of {count(amount.total, unit)}"
