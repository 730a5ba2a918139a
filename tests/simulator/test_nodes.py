"""Simulated nodes as others see them: Node objects, pods, devices, agents."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path

import pytest

from agent.contract.report import TOKEN_HEADER, Report, decode_report
from agent.contract.token import make_token
from simulator import hardware
from simulator.cluster import SimulatedCluster
from simulator.nodes.objects import conditions
from tests.simulator.conftest import SECRET
from tests.simulator.support import Api, Value, condition, pod, wait_for

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
SHARED = "nvidia.com/gpu.shared"


@pytest.fixture(autouse=True)
def _no_pods_of_other_tests(two_nodes: SimulatedCluster) -> None:
    api = Api(two_nodes.kubeconfig)
    for each in api.get(PODS)["items"]:
        api.call("DELETE", f"{PODS}/{each['metadata']['name']}", {"gracePeriodSeconds": 1})
    wait_for(lambda: not api.get(PODS)["items"])


def report(api: Api, node_name: str) -> Report:
    """What the agent of a node answers to the server."""
    pods = api.get("/api/v1/namespaces/gpuadmin/pods")["items"]
    found = next(each for each in pods if each["spec"].get("nodeName") == node_name)
    ports = {
        port["name"]: port["containerPort"] for port in found["spec"]["containers"][0]["ports"]
    }
    token = make_token(SECRET.encode(), found["metadata"]["uid"], node_name, time.time())
    request = urllib.request.Request(
        f"http://{found['status']['podIP']}:{ports['agent']}/v1/report",
        headers={TOKEN_HEADER: token},
    )
    with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310
        return decode_report(response.read())


def asking(name: str, node_name: str, resource: str, count: int, **annotations: str) -> Value:
    """A pod for one node, with the simulator's annotations."""
    body = pod(name, 0, nodeSelector={"kubernetes.io/hostname": node_name})
    body["spec"]["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    body["spec"]["containers"][0]["resources"] = {"limits": {resource: str(count)}}
    marked = {f"sim.gpuadmin.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    body["metadata"]["annotations"] = marked
    return body


def in_phase(api: Api, name: str, phase: str) -> Value:
    def found() -> Value | None:
        value = api.get(f"{PODS}/{name}")
        return value if value["status"]["phase"] == phase else None

    value = wait_for(found)
    assert value is not None
    return value


def resources(api: Api, node_name: str, name: str) -> tuple[int, int]:
    """(capacity, allocatable) of one resource."""
    status = api.get(f"{NODES}/{node_name}")["status"]
    return int(status["capacity"][name]), int(status["allocatable"][name])


def test_a_node_registers_ready_with_the_ids_of_its_host(two_nodes: SimulatedCluster) -> None:
    api = Api(two_nodes.kubeconfig)
    found = api.get(f"{NODES}/h100-02")
    assert condition(found, "Ready")["status"] == "True"
    host = two_nodes.run_dir / "hosts" / "h100-02"
    info = found["status"]["nodeInfo"]
    assert (host / "etc/machine-id").read_text().strip() == info["machineID"]
    boot_id = (host / "proc/sys/kernel/random/boot_id").read_text().strip()
    assert boot_id == info["bootID"] == report(api, "h100-02").boot_id
    assert found["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert found["metadata"]["labels"]["nvidia.com/mig.strategy"] == "mixed"


def test_a_pod_runs_with_an_address_of_its_own_and_holds_its_device(
    two_nodes: SimulatedCluster,
) -> None:
    api = Api(two_nodes.kubeconfig)
    api.create(PODS, asking("p", "h100-02", "nvidia.com/gpu", 2, load="40,60", memory="50"))
    running = in_phase(api, "p", "Running")
    assert running["status"]["podIP"].startswith("127.1.")
    assert condition(running, "Ready")["status"] == "True"
    assert running["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]

    def holds() -> Report | None:
        answer = report(api, "h100-02")
        return answer if answer.pods and answer.gpus[1].utilization_percent else None

    answer = wait_for(holds)
    assert answer is not None
    assert answer.pods is not None
    held = next(each for each in answer.pods if each.pod == "p")
    assert held.resource == "nvidia.com/gpu"
    assert [device.gpu_uuid for device in held.devices] == [g.uuid for g in answer.gpus[:2]]
    assert abs((answer.gpus[1].utilization_percent or 0) - 60) <= 3
    assert answer.gpus[0].memory_used_bytes == 81559 * 1024 * 1024 // 2


def test_mig_devices_are_held_by_their_own_ids(two_nodes: SimulatedCluster) -> None:
    api = Api(two_nodes.kubeconfig)
    assert resources(api, "h100-02", "nvidia.com/mig-1g.10gb") == (7, 7)
    api.create(PODS, asking("slice", "h100-02", "nvidia.com/mig-3g.40gb", 1))
    in_phase(api, "slice", "Running")
    answer = report(api, "h100-02")
    held = [each for each in answer.pods or () if each.pod == "slice"]
    instance = next(each for each in answer.gpus[4].mig_instances if each.profile == "3g.40gb")
    assert [device.mig_uuid for device in held[0].devices] == [instance.uuid]


def test_slots_are_spread_over_the_cards(two_nodes: SimulatedCluster) -> None:
    api = Api(two_nodes.kubeconfig)
    wait_for(lambda: resources(api, "l40s-02", SHARED) == (16, 16))
    api.create(PODS, asking("slots", "l40s-02", SHARED, 4))
    in_phase(api, "slots", "Running")
    held = next(e for e in report(api, "l40s-02").pods or () if e.pod == "slots")
    assert len({device.gpu_uuid for device in held.devices}) == 4
    assert {device.slot for device in held.devices} == {0}


def test_a_pod_that_gets_no_devices_fails_as_the_kubelet_says(two_nodes: SimulatedCluster) -> None:
    api = Api(two_nodes.kubeconfig)
    body = asking("greedy", "h100-02", "nvidia.com/gpu", 9)
    api.create(PODS, {**body, "spec": {**body["spec"], "nodeName": "h100-02"}})
    failed = in_phase(api, "greedy", "Failed")["status"]
    assert failed["reason"] == "UnexpectedAdmissionError"
    assert "Requested: 9, Available: 5, which is unexpected" in failed["message"]


def test_a_pod_with_a_time_succeeds_and_a_deleted_one_is_gone(two_nodes: SimulatedCluster) -> None:
    api = Api(two_nodes.kubeconfig)
    api.create(PODS, asking("short", "h100-02", "nvidia.com/gpu", 5, runs_for="1s"))
    in_phase(api, "short", "Running")
    done = in_phase(api, "short", "Succeeded")
    assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    api.create(PODS, asking("next", "h100-02", "nvidia.com/gpu", 5))
    in_phase(api, "next", "Running")
    api.call("DELETE", f"{PODS}/next")
    wait_for(lambda: api.call("GET", f"{PODS}/next").code == 404)


def test_another_load_by_annotation_reaches_the_card(two_nodes: SimulatedCluster) -> None:
    api = Api(two_nodes.kubeconfig)
    api.create(PODS, asking("p", "h100-02", "nvidia.com/gpu", 1, load="90"))
    in_phase(api, "p", "Running")
    file = two_nodes.run_dir / "hw" / "h100-02.json"
    wait_for(lambda: hardware.read(file).cards[0].utilization_percent == 90)
    api.merge(f"{PODS}/p", {"metadata": {"annotations": {"sim.gpuadmin.io/load": "5"}}})
    wait_for(lambda: hardware.read(file).cards[0].utilization_percent == 5)


def test_a_deleted_agent_comes_back_as_another_pod_that_answers(
    two_nodes: SimulatedCluster,
) -> None:
    api = Api(two_nodes.kubeconfig)
    before = report(api, "l40s-02")
    pods = "/api/v1/namespaces/gpuadmin/pods"
    name = next(
        each["metadata"]["name"]
        for each in api.get(pods)["items"]
        if each["metadata"]["uid"] == before.pod_uid
    )
    api.call("DELETE", f"{pods}/{name}")

    def answers() -> Report | None:
        found = [e for e in api.get(pods)["items"] if e["spec"].get("nodeName") == "l40s-02"]
        if len(found) != 1 or found[0]["status"]["phase"] != "Running":
            return None
        return report(api, "l40s-02") if found[0]["metadata"]["uid"] != before.pod_uid else None

    after = wait_for(answers)
    assert after is not None
    assert after.agent_instance != before.agent_instance


def test_the_nodes_renew_their_leases(two_nodes: SimulatedCluster) -> None:
    """The lease isn't readable through the allow-list; its renewal is seen in what was used."""
    api = Api(two_nodes.kubeconfig)
    used: object = ["patch", "leases.coordination.k8s.io", ""]
    wait_for(lambda: used in api.call("GET", "/simulator/used").body, 15)


def test_nothing_is_left_after_a_stop(tmp_path: Path) -> None:
    with SimulatedCluster(tmp_path / "sim", nodes=["gb10-01"], tenants=False) as cluster:
        cluster.wait_ready()
        api_server, nodes = (process.pid for process in cluster.processes)
        [warm] = children(nodes)
        pids = [api_server, nodes, warm, *children(warm)]
        assert len(pids) == 4
    for pid in pids:
        assert not Path(f"/proc/{pid}").exists()


def test_restarted_nodes_take_over_their_pods_and_devices(tmp_path: Path) -> None:
    with SimulatedCluster(tmp_path / "sim", nodes=["l40s-02"], tenants=False) as cluster:
        cluster.wait_ready()
        api = Api(cluster.kubeconfig)
        api.create(PODS, asking("p", "l40s-02", SHARED, 3))
        address = in_phase(api, "p", "Running")["status"]["podIP"]
        before = report(api, "l40s-02")
        since = condition(api.get(f"{NODES}/l40s-02"), "Ready")["lastTransitionTime"]
        cluster.restart_nodes()
        cluster.wait_ready()
        after = report(api, "l40s-02")
        assert after.agent_instance != before.agent_instance
        assert after.pod_uid == before.pod_uid
        assert after.pods == before.pods
        assert api.get(f"{PODS}/p")["status"]["podIP"] == address
        assert condition(api.get(f"{NODES}/l40s-02"), "Ready")["lastTransitionTime"] == since


def test_a_condition_keeps_its_time_until_its_status_is_another_one() -> None:
    before = [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "DiskPressure", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z"},
    ]
    found = {each["type"]: each for each in conditions(before)}
    assert found["Ready"]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert found["Ready"]["lastHeartbeatTime"] > "2026-01-02T00:00:00Z"
    assert found["DiskPressure"]["status"] == "False"
    assert found["DiskPressure"]["lastTransitionTime"] > "2026-01-02T00:00:00Z"


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_agents_die_with_a_killed_node_process(tmp_path: Path) -> None:
    nodes = ["l40s-01", "l40s-02"]
    with SimulatedCluster(tmp_path / "sim", nodes=nodes, tenants=False) as cluster:
        cluster.wait_ready()
        process = cluster.processes[1]
        [warm] = children(process.pid)
        agents = children(warm)
        assert len(agents) == 2
        process.kill()
        process.wait()
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in [warm, *agents]))
