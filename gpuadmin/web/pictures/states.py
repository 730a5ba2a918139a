"""States as a glyph, a word and a colour: one vocabulary for every page (mockups' state table)."""

from __future__ import annotations

from dataclasses import dataclass

from gpuadmin.fleet.models import AgentState, Finding
from gpuadmin.planning.facts import Note, Use
from gpuadmin.web.pictures.text import count, plain
from gpuadmin.workloads.facts import NodeRecord


@dataclass(frozen=True)
class State:
    """``rank`` sorts the worst first; ``glyph`` is a symbol of _icons.svg, ``tone`` its colour;
    ``why`` is a sentence for the words that do not explain themselves.
    """

    rank: int
    glyph: str
    tone: str
    words: str
    why: str = ""

    @property
    def wrong(self) -> bool:
        return self.rank < CORDONED

    @property
    def loud(self) -> bool:
        """Whether the words are set in the colour too."""
        return self.tone in ("crit", "warn")


CRITICAL, UNKNOWN, WARNING, CORDONED, IDLE, FINE = range(6)

AGENT_WORDS = {
    AgentState.Status.OK: "Agent reports",
    AgentState.Status.PAUSED: "Agent paused",
    AgentState.Status.NVML_ERROR: "NVML fails",
    AgentState.Status.MISSING: "No agent",
    AgentState.Status.NOT_RUNNING: "Agent not running",
    AgentState.Status.UNREACHABLE: "Agent silent",
    AgentState.Status.REFUSED: "Agent refuses us",
    AgentState.Status.BAD_ANSWER: "Agent answers nonsense",
    AgentState.Status.WRONG_NODE: "Agent on wrong node",
}
USE_WORDS = {
    Use.BUSY: "busy",
    Use.QUIET: "held, quiet",
    Use.IDLE: "held but idle",
    Use.UNMEASURED: "held, not measurable",
    Use.FAILED: "failed",
    Use.FREE: "free now",
    Use.BLOCKED: "not schedulable",
    Use.UNKNOWN: "unknown",
}
SEVERITIES = {
    Finding.Severity.CRITICAL: State(CRITICAL, "crit", "crit", "critical"),
    Finding.Severity.WARNING: State(WARNING, "warn", "warn", "warning"),
    Finding.Severity.INFO: State(FINE, "todo", "t3", "note"),
}


def agent_words(record: NodeRecord) -> str:
    """What stands between us and the node's agent, in two or three words."""
    if record.agent is None:
        return "No agent"
    return AGENT_WORDS[AgentState.Status(record.agent.status)]


def agent_reason(record: NodeRecord) -> str:
    """Why readings of this node are missing, for the title of a dash; without a full stop."""
    if record.agent is None:
        return "No agent on this node, so nothing reads its cards"
    return record.agent.reason.rstrip(". ") or agent_words(record)


def node_states(record: NodeRecord) -> list[State]:
    """Everything that is worth a word about a node, the worst first; never empty."""
    found = [*_faults(record), *_agent(record), *_counts(record), *_closed(record)]
    idle = record.account.uses[Use.IDLE]
    if idle:
        found.append(State(IDLE, "idle", "idle", f"{count(idle, 'card')} idle"))
    return sorted(found, key=lambda s: s.rank) or [State(FINE, "ok", "ok", "Ready")]


def _faults(record: NodeRecord) -> list[State]:
    found = []
    if record.node.ready is not True:
        unknown = record.node.ready is None
        words = "Readiness unknown" if unknown else "Not ready"
        found.append(State(CRITICAL, "crit", "crit", words))
    failed = record.account.uses[Use.FAILED]
    if failed:
        found.append(State(CRITICAL, "crit", "crit", f"{count(failed, 'card')} failed"))
    return found


def _agent(record: NodeRecord) -> list[State]:
    if record.agent_current:
        return []
    paused = record.agent is not None and record.agent.status == AgentState.Status.PAUSED
    rank = CORDONED if paused else UNKNOWN
    return [State(rank, "unk", "t3" if paused else "warn", agent_words(record))]


def _counts(record: NodeRecord) -> list[State]:
    rows = record.account.rows
    found = []
    over = sum(row.over_committed or 0 for row in rows)
    if over:
        why = f"Its pods ask for {over} more than the node can allocate now"
        found.append(State(WARNING, "warn", "warn", f"Over-committed {over}", why))
    if stale := [row.name for row in rows if row.note is Note.STALE]:
        why = f"{', '.join(stale)}: advertised, but no hardware is behind it; in no total"
        found.append(State(WARNING, "warn", "warn", "Stale name", why))
    if faults := [row.name for row in rows if row.note is Note.FAULT]:
        why = f"{', '.join(faults)}: a value that cannot be; in no total"
        found.append(State(WARNING, "warn", "warn", "Data fault", why))
    return found


def _closed(record: NodeRecord) -> list[State]:
    if record.node.ready is not True or not record.account.closed:
        return []
    if record.node.unschedulable:
        why = "No new pod is scheduled here until it is uncordoned"
        return [State(CORDONED, "cordon", "t2", "Cordoned", why)]
    taint = plain(record.account.closed.removeprefix("tainted "))
    why = f"Pods that do not tolerate {taint} stay away"
    return [State(CORDONED, "cordon", "t2", "Tainted", why)]
