"""The agents' manifests: what each overlay asks for, and that the agent gets all that it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import KUBELET_SOCKET, from_environment
from agent.contract.report import DEFAULT_PORT, PORT_NAME
from gpuadmin import env
from tests.controlplane.client import Document
from tests.deploy.manifests import OVERLAYS, agent, named

GFD, NFD = "nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present"
CLIENT = "nvidia.com/gpu.deploy.client"


def container(overlay: str) -> Document:
    containers: list[Document] = agent(overlay)["containers"]
    [found] = containers
    return found


def environ(overlay: str) -> dict[str, str]:
    return {one["name"]: one.get("value", "by the node") for one in container(overlay)["env"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_its_environment_is_enough_for_the_agent(overlay: str, tmp_path: Path) -> None:
    mounts = {one["name"]: one["mountPath"] for one in container(overlay)["volumeMounts"]}
    given = environ(overlay)
    secret = Path(given["AGENT_TOKEN_SECRET_FILE"])
    assert (str(secret.parent), secret.name) == (mounts["token"], "secret")
    (tmp_path / "secret").write_text("a secret of the tests")
    config = from_environment(given | {"AGENT_TOKEN_SECRET_FILE": str(tmp_path / "secret")})
    assert config.host_pid == agent(overlay).get("hostPID", False) == (overlay == "processes")
    assert str(KUBELET_SOCKET.parent) == mounts["pod-resources"]
    assert config.port == DEFAULT_PORT


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_console_finds_it_and_the_network_lets_a_worker_reach_it(overlay: str) -> None:
    [daemonset] = named(f"agent/{overlay}", "DaemonSet").values()
    meta = daemonset["metadata"]
    assert (meta["namespace"], meta["name"]) == (env.NAMESPACE.default, env.AGENT_DAEMONSET.default)
    assert container(overlay)["ports"] == [{"name": PORT_NAME, "containerPort": DEFAULT_PORT}]
    policy = named("base", "NetworkPolicy")["gpuadmin-agent"]["spec"]
    labels = daemonset["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    [rule] = policy["ingress"]
    assert [port["port"] for port in rule["ports"]] == [DEFAULT_PORT]
    worker = named("server", "Deployment")["gpuadmin-worker"]["spec"]["template"]["metadata"]
    [peer] = rule["from"]
    assert peer["podSelector"]["matchLabels"].items() <= worker["labels"].items()
    assert policy["egress"] == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_c24_the_shipped_manifest_tolerates_the_gpu_taint_and_asks_only_for_what_it_needs(
    overlay: str,
) -> None:
    pod, context = agent(overlay), container(overlay)["securityContext"]
    assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["securityContext"]["runAsUser"] == 0
    added = {"add": ["SYS_ADMIN"]} if overlay == "mig" else {}
    assert context == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]} | added,
    }
    assert all(mount["readOnly"] for mount in container(overlay)["volumeMounts"])
    hosts = [one["hostPath"]["path"] for one in pod["volumes"] if "hostPath" in one]
    assert hosts == [str(KUBELET_SOCKET.parent)]


def test_c24_hostpid_is_an_overlay_of_its_own() -> None:
    assert [name for name in OVERLAYS if agent(name).get("hostPID")] == ["processes"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_it_sees_every_card_and_of_the_driver_nvml_alone(overlay: str) -> None:
    given = environ(overlay)
    assert given["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert given["NVIDIA_DRIVER_CAPABILITIES"] == "utility"
    assert given.get("NVIDIA_MIG_MONITOR_DEVICES") == ("all" if overlay == "mig" else None)
    expected = None if overlay == "default-runtime" else "nvidia"
    assert agent(overlay).get("runtimeClassName") == expected


@pytest.mark.parametrize(
    ("labels", "runs"),
    [
        ({GFD: "true"}, True),
        ({NFD: "true"}, True),
        ({GFD: "true", CLIENT: "true"}, True),
        ({GFD: "true", CLIENT: "paused-for-mig-change"}, False),
        ({NFD: "true", CLIENT: "paused-for-driver-upgrade"}, False),
        ({GFD: "true", NFD: "true", CLIENT: "false"}, False),
        ({}, False),
    ],
)
def test_c18_with_the_label_absent_the_agent_runs_and_while_paused_it_does_not(
    labels: dict[str, str], runs: bool
) -> None:
    affinity = agent("runtimeclass")["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    found = [all(_holds(one, labels) for one in term["matchExpressions"]) for term in terms]
    assert any(found) == runs


def _holds(expression: Document, labels: dict[str, str]) -> bool:
    """As the scheduler has it: NotIn holds for a label that is absent."""
    among = labels.get(expression["key"]) in expression["values"]
    return among if expression["operator"] == "In" else not among
