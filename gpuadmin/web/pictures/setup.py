"""Set-up: the connection, each permission, the agents and our own processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.conf import settings

from gpuadmin.fleet.models import AgentState, Heartbeat
from gpuadmin.kube.access import Answer, Identity, Need, grant_command
from gpuadmin.kube.capabilities import Component
from gpuadmin.planning.absence import Absence, Daemons, why_absent
from gpuadmin.planning.taints import Taint
from gpuadmin.web.pictures import states
from gpuadmin.web.pictures.freshness import KINDS
from gpuadmin.web.pictures.states import State, agent_reason, agent_words
from gpuadmin.web.pictures.text import plain
from gpuadmin.workloads.facts import NodeRecord

YES = State(states.FINE, "ok", "ok", "yes")
NO = State(states.CRITICAL, "crit", "crit", "no")
HELD = State(states.FINE, "ok", "ok", "held")
OFF = State(states.FINE, "todo", "t3", "off")
UNKNOWN = State(states.UNKNOWN, "unk", "unk", "unknown")


@dataclass(frozen=True)
class Verdict:
    """One verb: yes, no, or unknown with the reason."""

    verb: str
    state: State
    reason: str


@dataclass(frozen=True)
class Permission:
    """The verbs on one resource. ``grant`` is the line that gives what is missing."""

    resource: str
    where: str
    purpose: str
    verdicts: list[Verdict]
    grant: str

    @property
    def key(self) -> str:
        return f"{self.resource}-{self.verdicts[0].verb}"


@dataclass(frozen=True)
class ComponentLine:
    """One component of deploy/. What we hold of ``read`` is needed; all others may stay off."""

    name: str
    gives: str
    state: State
    permissions: list[Permission]
    grant: str  # "" when there is nothing to grant
    needed: bool


@dataclass(frozen=True)
class AgentLine:
    """One node without readings. ``command`` is a line to run, ``original`` the cluster's text."""

    node: str
    words: str
    reason: str
    since: datetime | None
    command: str = ""
    original: str = ""


@dataclass(frozen=True)
class Process:
    name: str
    state: State
    says: str
    ok_at: datetime | None


def permissions(answers: Sequence[Answer], identity: Identity) -> list[Permission]:
    """Grouped by resource and purpose, in the order of the needs."""

    def together(answer: Answer) -> tuple[str, str]:
        return answer.need.rule, answer.need.purpose

    return [_permission(list(group), identity) for _, group in groupby(answers, key=together)]


def component_lines(
    components: Sequence[Component], answers: Sequence[Answer], identity: Identity
) -> list[ComponentLine]:
    """Each component with its permissions; ``answers`` are to all their needs, in order."""
    found, rest = [], list(answers)
    for component in components:
        mine, rest = rest[: len(component.needs)], rest[len(component.needs) :]
        found.append(_component(component, mine, identity))
    return found


def _component(
    component: Component, answers: Sequence[Answer], identity: Identity
) -> ComponentLine:
    needed = component.name == "read"
    counted = [answer for answer in answers if not answer.need.optional]
    if any(answer.allowed is False for answer in counted):
        state = NO if needed else OFF
    elif any(answer.allowed is None for answer in counted):
        state = UNKNOWN
    else:
        state = HELD
    missing = any(answer.allowed is False for answer in answers)
    return ComponentLine(
        name=component.name,
        gives=component.gives,
        state=state,
        permissions=permissions(answers, identity),
        grant=component.grant if missing else "",
        needed=needed,
    )


def _permission(answers: list[Answer], identity: Identity) -> Permission:
    need = answers[0].need
    refused = [answer.need.verb for answer in answers if answer.allowed is False]
    grant = grant_command(refused, need, identity.name) if refused and identity.name else ""
    return Permission(
        resource=need.rule,
        where=f"in {need.namespace}" if need.namespace else "in the whole cluster",
        purpose=need.purpose,
        verdicts=[_verdict(answer) for answer in answers],
        grant=grant,
    )


def _verdict(answer: Answer) -> Verdict:
    state = UNKNOWN if answer.allowed is None else YES if answer.allowed else NO
    return Verdict(answer.need.verb, state, plain(answer.reason))


def unasked(needs: Sequence[Need], why: str) -> list[Answer]:
    """Answers for when the cluster cannot be asked at all."""
    return [Answer(need, None, why) for need in needs]


def missing_agents(records: Iterable[NodeRecord], daemons: Daemons | None) -> list[AgentLine]:
    """Each node whose agent does not report, and why; ``daemons`` is None where it is unread."""
    return [_agent_line(record, daemons) for record in records if not record.agent_current]


def _agent_line(record: NodeRecord, daemons: Daemons | None) -> AgentLine:
    node, agent = record.node, record.agent
    missing = agent is None or agent.status == AgentState.Status.MISSING
    if missing and daemons:
        taints = [Taint.of(taint) for taint in node.taints]
        why = why_absent(node.name, node.labels, taints, daemons)
    else:
        why = Absence(agent_reason(record), _look(agent))
    return AgentLine(
        node.name,
        agent_words(record),
        plain(why.sentence),
        agent.since if agent else None,
        plain(why.command),
        plain(why.original),
    )


def _look(agent: AgentState | None) -> str:
    """The line that shows more of an agent that is there and does not report."""
    where = f"-n {settings.NAMESPACE}"
    if agent is None or agent.status == AgentState.Status.MISSING or not agent.pod_name:
        return f"kubectl get daemonset {settings.AGENT_DAEMONSET} {where}"
    if agent.status == AgentState.Status.NOT_RUNNING:
        return f"kubectl describe pod {agent.pod_name} {where}"
    return f"kubectl logs {agent.pod_name} {where} --tail=50"


def processes(beats: Iterable[Heartbeat], now: datetime) -> list[Process]:
    """One line per kind of cycle, those that never beat too."""
    by_kind = {beat.kind: beat for beat in beats}
    return [_process(kind, by_kind.get(kind), now) for kind in KINDS]


def _process(kind: str, beat: Heartbeat | None, now: datetime) -> Process:
    by = "worker and beat (Celery)" if kind == "poll" else "watcher (manage.py watch)"
    name = f"Reading {KINDS[kind]}"
    if beat is None:
        return Process(name, NO, f"Never ran. Start the {by}.", None)
    allowed_seconds = 3 * beat.expected_seconds
    late = beat.ok_at is None or (now - beat.ok_at).total_seconds() > allowed_seconds
    silent = (now - beat.at).total_seconds() > allowed_seconds  # not even a failure comes
    if beat.ok and not late:
        return Process(name, YES, f"every {beat.expected_seconds} s, by the {by}", beat.ok_at)
    says = plain(beat.message) or f"Late: it should come every {beat.expected_seconds} s."
    return Process(name, NO, f"{says} Is the {by} running?" if silent else says, beat.ok_at)
