"""Whether our account may do in the cluster what a plan would do there."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings

from gpuadmin.kube.capabilities import components, held
from gpuadmin.kube.client import KubeClient
from gpuadmin.planning.plan import Plan


def with_rights(plan: Plan, client: KubeClient, component: str) -> Plan:
    """The plan, blocked where the API server says that we lack ``component``, with the line that
    grants it; where it does not say, with a warning.
    """
    if not plan.targets or all(target.already for target in plan.targets):
        return plan
    wanted = [
        one
        for one in components(settings.NAMESPACE, settings.PLUGIN_NAMESPACE)
        if one.name == component
    ]
    [verdict] = held(client, wanted)
    if verdict.held is False:
        return replace(plan, blockers=(*plan.blockers, verdict.sentence))
    if verdict.held is None:
        return replace(plan, warnings=(*plan.warnings, verdict.sentence))
    return plan
