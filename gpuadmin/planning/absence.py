"""Why a node has no pod of our DaemonSet, in one sentence, with the line that mends it (C24)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuadmin.planning.taints import Taint, Toleration, closes, is_tolerated

_POD_SECURITY = re.compile(r'violates PodSecurity "(?P<level>[^"]+)":\s*(?P<fields>.*)', re.S)
_NO_CONSTRAINT = "unable to validate against any security context constraint"
# The DaemonSet controller adds tolerations for these by itself.
_ADDED = re.compile(
    r"node\.kubernetes\.io/(not-ready|unreachable|(disk|memory|pid)-pressure|unschedulable)"
)


@dataclass(frozen=True)
class Daemons:
    """Our DaemonSet: whom it wants, what it tolerates, and why pods of it could not be made:
    ``refusals`` are texts of its FailedCreate events, the newest first."""

    namespace: str
    name: str
    selector: Mapping[str, str]
    tolerations: tuple[Toleration, ...]
    service_account: str = "default"
    desired: int = 0
    current: int = 0
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Absence:
    """``original`` is the cluster's own text, ``command`` one line of kubectl."""

    sentence: str
    command: str = ""
    original: str = ""


def why_absent(
    node: str, labels: Mapping[str, str], taints: Iterable[Taint], daemons: Daemons
) -> Absence:
    """What keeps the agent away from a node: label, taint, or a refusal when its pod is made."""
    where = f"-n {daemons.namespace}"
    for key, value in sorted(daemons.selector.items()):
        if labels.get(key) != value:
            return Absence(
                f"The DaemonSet wants nodes with the label {key}={value}, and this one has not.",
                f"kubectl label node {node} {key}={value} --overwrite",
            )
    for taint in taints:
        if not closes(taint) or _ADDED.fullmatch(taint.key):
            continue
        if not is_tolerated(daemons.tolerations, taint):
            return Absence(
                f"The taint {taint} keeps it away: the DaemonSet does not tolerate it.",
                f"kubectl patch daemonset {daemons.name} {where} --type=json -p "
                f"'{_tolerating(taint, first=not daemons.tolerations)}'",
            )
    if daemons.refusals and daemons.current < daemons.desired:
        return _refused(daemons, daemons.refusals[0], where)
    return Absence(
        "Our DaemonSet has no pod on this node, and nothing says why.",
        f"kubectl describe daemonset {daemons.name} {where}",
    )


def _tolerating(taint: Taint, *, first: bool) -> str:
    toleration = {"key": taint.key, "operator": "Exists", "effect": taint.effect}
    path = "/spec/template/spec/tolerations"
    added: dict[str, object] = {"op": "add", "path": path, "value": [toleration]}
    if not first:
        added = {"op": "add", "path": f"{path}/-", "value": toleration}
    return json.dumps([added])


def _refused(daemons: Daemons, text: str, where: str) -> Absence:
    if match := _POD_SECURITY.search(text):
        fields = ", ".join(re.findall(r"(?:^|\), |, (?![^(]*\)))([^(,]+?) \(", match["fields"]))
        return Absence(
            f"Pod Security of the namespace {daemons.namespace}, at the level {match['level']}, "
            f"refuses its pod: {fields or match['fields'][:200]}.",
            f"kubectl label namespace {daemons.namespace} "
            "pod-security.kubernetes.io/enforce=privileged --overwrite",
            text,
        )
    if _NO_CONSTRAINT in text:
        tried = ", ".join(dict.fromkeys(re.findall(r'provider "?([\w.-]+)"?', text)))
        return Absence(
            f"No security context constraint ({tried or 'none is named'}) lets the service account "
            f"{daemons.service_account} run its pod.",
            f"oc adm policy add-scc-to-user privileged -z {daemons.service_account} {where}",
            text,
        )
    return Absence(
        "The API server refuses its pod.",
        f"kubectl describe daemonset {daemons.name} {where}",
        text,
    )
