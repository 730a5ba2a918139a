"""What the folders of ``deploy/components`` grant, and which of them the cluster has given us.

An action names the component that it takes. Where the API server says that we do not hold it,
pages grey the action and previews are blocked, with the component's name and the line for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuadmin.kube.access import Answer, Need, review
from gpuadmin.kube.client import KubeClient

TEST_NAMESPACE = "gpuadmin-tests"


@dataclass(frozen=True)
class Component:
    """One folder of deploy/components: ``needs`` is all that it grants in the cluster."""

    name: str
    gives: str
    needs: tuple[Need, ...]

    @property
    def grant(self) -> str:
        """The line that grants it; the cluster's administrator runs it."""
        return f"kubectl apply -k deploy/components/{self.name}"


@dataclass(frozen=True)
class Held:
    """Whether we hold a component: None where the server did not say, ``reason`` why."""

    component: Component
    held: bool | None
    reason: str = ""

    @property
    def sentence(self) -> str:
        """What stands against an action that takes it; "" when nothing does."""
        if self.held:
            return ""
        name = self.component.name
        if self.held is None:
            return f"It is not known whether we hold the component “{name}”: {self.reason}"
        return (
            f"Our account does not hold the component “{name}” ({_listed(self.component)}). "
            f"A cluster administrator grants it with: {self.component.grant}"
        )


def components(namespace: str, plugin_namespace: str) -> list[Component]:
    """All of them, in the order of Set-up. ``namespace`` is ours, ``plugin_namespace`` the device
    plugin's."""
    return [
        Component("read", "See nodes, pods and our agents", _read(namespace)),
        Component(
            "taint",
            "Taint, cordon and label nodes",
            (Need("patch", "nodes", "To change taints, cordons and labels"),),
        ),
        Component(
            "drain",
            "Evict pods, within their budgets",
            (Need("create", "pods/eviction", "To drain a node"),),
        ),
        Component("sharing", "Change how cards are shared and cut", _sharing(plugin_namespace)),
        Component("plugin", "Deploy and mend the device plugin", _plugin(plugin_namespace)),
        Component("testpods", "Launch test pods and read their logs", _tests()),
        Component("exec", "Run nvidia-smi in our own agents", _exec(namespace)),
        Component("proxy", "Ask the agents from outside the cluster", _proxy(namespace)),
    ]


def held(client: KubeClient, wanted: Sequence[Component]) -> list[Held]:
    """One verdict for each component, by the API server's own word. Raises nothing."""
    answers = review(client, [need for component in wanted for need in component.needs])
    found, at = [], 0
    for component in wanted:
        mine = answers[at : at + len(component.needs)]
        at += len(component.needs)
        found.append(_verdict(component, mine))
    return found


def _verdict(component: Component, answers: Sequence[Answer]) -> Held:
    if any(answer.allowed is False for answer in answers):
        return Held(component, held=False)
    unsaid = next((answer for answer in answers if answer.allowed is None), None)
    if unsaid is not None:
        return Held(component, None, unsaid.reason)
    return Held(component, held=True)


def _listed(component: Component) -> str:
    by_rule: dict[str, list[str]] = {}
    for need in component.needs:
        where = f" in {need.namespace}" if need.namespace else ""
        by_rule.setdefault(f"{need.rule}{where}", []).append(need.verb)
    return "; ".join(f"{'/'.join(verbs)} {rule}" for rule, verbs in by_rule.items())


def _read(namespace: str) -> tuple[Need, ...]:
    nodes = "Nodes carry the cards: what there is, its labels, taints and conditions"
    pods = "Pods hold the cards: without them, requested and free stay unknown"
    agents = "A pod is our agent only when our own DaemonSet controls it"
    why = "Why the DaemonSet could not make an agent's pod is told by its events alone"
    return (
        *(Need(verb, "nodes", nodes) for verb in ("get", "list", "watch")),
        *(Need(verb, "pods", pods) for verb in ("get", "list", "watch")),
        Need("get", "daemonsets", agents, "apps", namespace),
        Need("list", "events", why, "", namespace, optional=True),
    )


def _sharing(namespace: str) -> tuple[Need, ...]:
    configs = "The device plugin's and the MIG manager's configurations are ConfigMaps"
    restart = "Contents edited under the same key are loaded by a new pod of the plugin"
    operator = "Where a GPU Operator owns the configuration, it is named in its ClusterPolicy"
    return (
        *(
            Need(verb, "configmaps", configs, "", namespace)
            for verb in ("get", "list", "create", "patch", "delete")
        ),
        Need("delete", "pods", restart, "", namespace),
        *(
            Need(verb, "clusterpolicies", operator, "nvidia.com")
            for verb in ("get", "list", "patch")
        ),
    )


def _plugin(namespace: str) -> tuple[Need, ...]:
    plugin = "The device plugin is a DaemonSet"
    restart = "A plugin that holds cards unhealthy is restarted by deleting its pod"
    return (
        *(
            Need(verb, "daemonsets", plugin, "apps", namespace)
            for verb in ("get", "list", "create", "patch", "delete")
        ),
        Need("delete", "pods", restart, "", namespace),
    )


def _tests() -> tuple[Need, ...]:
    tests = "Test pods run in a namespace of their own, which has a quota"
    return (
        *(
            Need(verb, "pods", tests, "", TEST_NAMESPACE)
            for verb in ("get", "list", "create", "delete")
        ),
        Need("get", "pods/log", tests, "", TEST_NAMESPACE),
        Need("list", "events", tests, "", TEST_NAMESPACE),
    )


def _exec(namespace: str) -> tuple[Need, ...]:
    """Over a websocket it is a GET; since 1.35 the server asks for create as well (9.6)."""
    why = "To run a command in an agent's pod"
    return tuple(Need(verb, "pods/exec", why, "", namespace) for verb in ("get", "create"))


def _proxy(namespace: str) -> tuple[Need, ...]:
    why = "Pods have no addresses outside: the API server passes requests on to the agents"
    return tuple(Need(verb, "pods/proxy", why, "", namespace) for verb in ("get", "create"))
