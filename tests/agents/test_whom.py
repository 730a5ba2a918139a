"""Whom the poll asks: pods of our own DaemonSet at addresses where an agent can be."""

from __future__ import annotations

import msgspec
import pytest

from agent.contract.report import PORT_NAME
from gpuadmin.agents.discovery import AgentPod, agent_pod
from gpuadmin.kube import structs
from tests.support.scripted_api import Json


def pod(address: str = "10.4.0.7", *, namespace: str = "gpuadmin", owner: str = "ds") -> Json:
    return {
        "metadata": {
            "name": "gpuadmin-agent-x",
            "namespace": namespace,
            "uid": "p1",
            "labels": {"app.kubernetes.io/name": "gpuadmin-agent"},
            "ownerReferences": [
                {"kind": "DaemonSet", "uid": owner, "name": "gpuadmin-agent", "controller": True}
            ],
        },
        "spec": {
            "nodeName": "h100-01",
            "containers": [{"name": "a", "ports": [{"name": PORT_NAME, "containerPort": 9477}]}],
        },
        "status": {"phase": "Running", "podIP": address},
    }


def found(raw: Json, *, loopback: bool = False) -> AgentPod | None:
    decoded = msgspec.convert(raw, structs.Pod)
    return agent_pod(decoded, namespace="gpuadmin", ours="ds", loopback=loopback)


def test_a_pod_of_our_daemonset_is_asked_at_its_own_address() -> None:
    agent = found(pod())
    assert agent is not None
    assert (agent.address, agent.port, agent.problem) == ("10.4.0.7", 9477, "")


@pytest.mark.parametrize(
    "decoy",
    [
        pod(namespace="tenant"),  # our label and name, and a DaemonSet that says it is ours
        pod(owner="another"),
        pod() | {"metadata": pod()["metadata"] | {"ownerReferences": []}},
    ],
)
def test_a_decoy_with_our_label_is_nobody(decoy: Json) -> None:
    assert found(decoy) is None


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1", "this machine itself"),
        ("::1", "this machine itself"),
        ("::ffff:127.0.0.1", "this machine itself"),
        ("169.254.169.254", "a link-local address"),
        ("::ffff:169.254.169.254", "a link-local address"),
        ("fe80::1", "a link-local address"),
        ("0.0.0.0", "the unspecified address"),
        ("::", "the unspecified address"),
        ("224.0.0.1", "a multicast or reserved address"),
        ("100.100.100.200", "where a cloud keeps its machines' credentials"),
        ("fd00:ec2::254", "where a cloud keeps its machines' credentials"),
    ],
)
def test_nobody_is_asked_where_no_agent_can_be(address: str, why: str) -> None:
    agent = found(pod(address))
    assert agent is not None
    assert agent.address is None
    assert agent.problem.endswith(f"{why}: nobody is asked there")


@pytest.mark.parametrize("address", ["", "localhost", "10.4.0.7:80", "2130706433", "0x7f.1"])
def test_what_is_no_address_is_none(address: str) -> None:
    agent = found(pod(address))
    assert agent is not None
    assert agent.address is None


def test_simulated_agents_may_be_on_this_machine() -> None:
    agent = found(pod("127.1.0.3"), loopback=True)
    assert agent is not None
    assert agent.address == "127.1.0.3"
    link_local = found(pod("169.254.169.254"), loopback=True)
    assert link_local is not None
    assert link_local.address is None
