"""Scheduler, taint manager, node lifecycle and DaemonSets, seen through the API."""

from __future__ import annotations

from datetime import timedelta

import pytest

from simulator.control.matching import effective_requests, tolerates
from simulator.marks import parse_timestamp
from tests.simulator.support import Api, Value, condition, node, pod, wait_for

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/{}/pods"
TAINT = {"key": "gpu", "value": "x", "effect": "NoSchedule"}


@pytest.fixture
def lab(api: Api, namespace: str) -> str:
    """A namespace, and no nodes and pods but those that the test makes."""
    for each in api.get("/api/v1/pods")["items"]:
        path = f"{PODS.format(each['metadata']['namespace'])}/{each['metadata']['name']}"
        api.call("DELETE", path, {"gracePeriodSeconds": 0})
    for each in api.get(NODES)["items"]:
        api.call("DELETE", f"{NODES}/{each['metadata']['name']}")
    return namespace


def scheduled_to(api: Api, namespace: str, name: str) -> str:
    path = f"{PODS.format(namespace)}/{name}"
    return str(wait_for(lambda: api.get(path)["spec"].get("nodeName")))


def why_not(api: Api, namespace: str, name: str) -> str:
    path = f"{PODS.format(namespace)}/{name}"
    refused = wait_for(lambda: condition(api.get(path), "PodScheduled"))
    assert (refused["status"], refused["reason"]) == ("False", "Unschedulable")
    return str(refused["message"])


def test_pods_fill_a_node_and_the_next_one_waits_with_the_reason(api: Api, lab: str) -> None:
    api.create(NODES, node("n", gpus=2))
    api.create(PODS.format(lab), pod("both", gpus=2))
    assert scheduled_to(api, lab, "both") == "n"
    api.create(PODS.format(lab), pod("late", gpus=1))
    message = why_not(api, lab, "late")
    assert message.startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu. ")
    events = api.get(f"/api/v1/namespaces/{lab}/events")["items"]
    assert [each["message"] for each in events if each["reason"] == "FailedScheduling"] == [message]
    api.call("DELETE", f"{PODS.format(lab)}/both", {"gracePeriodSeconds": 0})
    assert scheduled_to(api, lab, "late") == "n"


def test_a_finished_pod_gives_its_card_back(api: Api, lab: str) -> None:
    api.create(NODES, node("n", gpus=1))
    api.create(PODS.format(lab), pod("first"))
    assert scheduled_to(api, lab, "first") == "n"
    api.merge(f"{PODS.format(lab)}/first/status", {"status": {"phase": "Succeeded"}})
    api.create(PODS.format(lab), pod("second"))
    assert scheduled_to(api, lab, "second") == "n"


def test_taints_cordons_and_selectors_are_counted_apart(api: Api, lab: str) -> None:
    api.create(NODES, node("closed", unschedulable=True))
    api.create(NODES, node("tainted", taints=[TAINT]))
    api.create(NODES, node("other"))
    api.create(PODS.format(lab), pod("p", nodeSelector={"kubernetes.io/hostname": "tainted"}))
    message = why_not(api, lab, "p")
    assert "1 node(s) were unschedulable" in message
    assert "1 node(s) had untolerated taint(s)" in message
    assert "1 node(s) didn't match Pod's node affinity/selector" in message


def test_what_an_aged_pod_met_at_once_is_as_old_as_it_and_a_late_bind_is_now(
    api: Api, lab: str
) -> None:
    aged = pod("aged")
    aged["metadata"]["annotations"] = {"sim.gpuadmin.io/age": "2h"}
    created = api.create(PODS.format(lab), aged)["metadata"]["creationTimestamp"]
    path = f"{PODS.format(lab)}/aged"
    refused = wait_for(lambda: condition(api.get(path), "PodScheduled"))
    assert (refused["status"], refused["lastTransitionTime"]) == ("False", created)
    api.create(NODES, node("n"))
    assert scheduled_to(api, lab, "aged") == "n"
    bound = wait_for(lambda: condition(api.get(path), "PodScheduled")["status"] == "True")
    assert bound
    since = parse_timestamp(condition(api.get(path), "PodScheduled")["lastTransitionTime"])
    assert since - parse_timestamp(created) > timedelta(hours=1, minutes=59)


def test_a_toleration_opens_a_tainted_node(api: Api, lab: str) -> None:
    api.create(NODES, node("n", taints=[TAINT]))
    api.create(PODS.format(lab), pod("p", tolerations=[{"key": "gpu", "operator": "Exists"}]))
    assert scheduled_to(api, lab, "p") == "n"


def test_another_scheduler_and_a_gate_keep_ours_away(api: Api, lab: str) -> None:
    api.create(NODES, node("n"))
    api.create(PODS.format(lab), pod("other", schedulerName="train-queue"))
    api.create(PODS.format(lab), pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    api.create(PODS.format(lab), pod("ours"))
    assert scheduled_to(api, lab, "ours") == "n"
    for name in ("other", "gated"):
        assert "nodeName" not in api.get(f"{PODS.format(lab)}/{name}")["spec"]


def test_cordon_and_not_ready_become_taints_and_go_again(api: Api, lab: str) -> None:
    def taints() -> set[tuple[str, str]]:
        found = api.get(f"{NODES}/n")["spec"].get("taints") or []
        return {(each["key"].removeprefix("node.kubernetes.io/"), each["effect"]) for each in found}

    not_ready = {"conditions": [{"type": "Ready", "status": "False"}]}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    api.create(NODES, node("n", taints=[TAINT]))
    api.merge(f"{NODES}/n", {"spec": {"unschedulable": True}})
    wait_for(lambda: taints() == {("gpu", "NoSchedule"), ("unschedulable", "NoSchedule")})
    api.merge(f"{NODES}/n", {"spec": {"unschedulable": None}})
    api.merge(f"{NODES}/n/status", {"status": not_ready})
    closed = {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}
    wait_for(lambda: taints() == {("gpu", "NoSchedule"), *closed})
    api.merge(f"{NODES}/n/status", {"status": ready})
    wait_for(lambda: taints() == {("gpu", "NoSchedule")})


def test_no_execute_evicts_at_once_later_or_never_by_toleration(api: Api, lab: str) -> None:
    def leaving(name: str) -> bool:
        return "deletionTimestamp" in api.get(f"{PODS.format(lab)}/{name}")["metadata"]

    patient = {"key": "gpu", "operator": "Exists", "tolerationSeconds": 1}
    api.create(NODES, node("n", gpus=3))
    api.create(PODS.format(lab), pod("at-once"))
    api.create(PODS.format(lab), pod("later", tolerations=[patient]))
    api.create(PODS.format(lab), pod("never", tolerations=[{"operator": "Exists"}]))
    for name in ("at-once", "later", "never"):
        scheduled_to(api, lab, name)
    api.merge(f"{NODES}/n", {"spec": {"taints": [{**TAINT, "effect": "NoExecute"}]}})
    wait_for(lambda: leaving("at-once"))
    assert not leaving("later")
    wait_for(lambda: leaving("later"), 3)
    assert not leaving("never")
    events = api.get(f"/api/v1/namespaces/{lab}/events")["items"]
    evicted = [e["involvedObject"]["name"] for e in events if e["reason"] == "TaintManagerEviction"]
    assert sorted(evicted) == ["at-once", "later"]


def daemonset(name: str, **spec: object) -> Value:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def test_a_daemonset_keeps_one_pod_on_each_node_that_fits(api: Api, lab: str) -> None:
    def placed() -> dict[str, str]:
        pods = api.get(f"{PODS.format(lab)}?labelSelector=app%3Dagent")["items"]
        return {
            each["spec"].get("nodeName", ""): each["metadata"]["uid"]
            for each in pods
            if "deletionTimestamp" not in each["metadata"]
        }

    for name in ("a", "b", "c"):
        api.create(NODES, node(name))
    api.merge(f"{NODES}/c", {"metadata": {"labels": {"agent": "false"}}})
    api.merge(f"{NODES}/b", {"spec": {"unschedulable": True}})
    term = {"matchExpressions": [{"key": "agent", "operator": "NotIn", "values": ["false"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    path = f"/apis/apps/v1/namespaces/{lab}/daemonsets"
    uid = api.create(path, daemonset("agent", affinity={"nodeAffinity": required}))["metadata"][
        "uid"
    ]
    before = wait_for(lambda: placed() if placed().keys() == {"a", "b"} else None)
    assert before is not None
    first = api.get(f"{PODS.format(lab)}?labelSelector=app%3Dagent")["items"][0]["metadata"]
    assert [each["uid"] for each in first["ownerReferences"] if each["controller"]] == [uid]
    api.call("DELETE", f"{PODS.format(lab)}/{first['name']}", {"gracePeriodSeconds": 0})
    wait_for(lambda: placed().keys() == {"a", "b"} and first["uid"] not in placed().values())
    api.merge(f"{NODES}/a", {"spec": {"taints": [{**TAINT, "effect": "NoSchedule"}]}})
    wait_for(lambda: api.get(f"{path}/agent")["status"]["desiredNumberScheduled"] == 1)
    assert placed().keys() == {"a", "b"}  # what runs is ended by NoExecute only
    api.merge(f"{NODES}/a", {"spec": {"taints": [{**TAINT, "effect": "NoExecute"}]}})
    wait_for(lambda: placed().keys() == {"b"})


def test_c22_which_tolerations_match() -> None:
    taint = {"key": "gpu", "value": "a", "effect": "NoSchedule"}
    assert tolerates({"operator": "Exists"}, taint)
    assert not tolerates({"operator": "Exists", "effect": "NoExecute"}, taint)
    assert tolerates({"key": "gpu", "operator": "Exists"}, taint)
    assert tolerates({"key": "gpu", "value": "a"}, taint)
    empty = {"key": "gpu", "operator": "Equal", "value": "", "effect": "NoSchedule"}
    assert not tolerates(empty, taint)
    assert not tolerates({"key": "", "operator": "Equal", "value": "a"}, taint)


def test_c06_what_one_pod_requests() -> None:
    def container(gpus: int, **more: str) -> Value:
        return {"resources": {"requests": {"nvidia.com/gpu": str(gpus)}}, **more}

    spec = {
        "initContainers": [container(1, restartPolicy="Always"), container(3)],
        "containers": [container(1), container(1)],
        "overhead": {"cpu": "250m"},
    }
    assert effective_requests(spec) == {"nvidia.com/gpu": 4000, "cpu": 250}
