"""Create, read, patch, replace and delete, with a real API server's refusals."""

from __future__ import annotations

import pytest

from tests.simulator.support import Api, node, pod

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/{}/pods"
CONFIGMAPS = "/api/v1/namespaces/{}/configmaps"


def test_a_created_object_gets_uid_version_time_and_a_generated_name(
    api: Api, namespace: str
) -> None:
    body = {**pod(""), "metadata": {"generateName": "job-"}}
    made = api.create(PODS.format(namespace), body)["metadata"]
    assert made["name"].startswith("job-")
    assert len(made["name"]) == len("job-") + 5
    assert made["uid"]
    assert made["resourceVersion"].isdigit()
    assert made["creationTimestamp"].endswith("Z")


def test_a_new_pod_is_pending_with_defaults_and_300_seconds_of_patience(
    api: Api, namespace: str
) -> None:
    made = api.create(PODS.format(namespace), pod("p", gpus=1, schedulerName="nobody"))
    assert made["status"] == {"phase": "Pending"}
    assert made["spec"]["terminationGracePeriodSeconds"] == 30
    resources = made["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"nvidia.com/gpu": "1"}
    patience = {each["key"]: each["tolerationSeconds"] for each in made["spec"]["tolerations"]}
    assert patience == {
        "node.kubernetes.io/not-ready": 300,
        "node.kubernetes.io/unreachable": 300,
    }


def test_creating_twice_is_409_already_exists(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "c"}, "data": {"a": "1"}}
    api.create(CONFIGMAPS.format(namespace), body)
    again = api.call("POST", CONFIGMAPS.format(namespace), body)
    assert (again.code, again.body["reason"]) == (409, "AlreadyExists")


def test_creating_in_a_namespace_that_is_not_there_is_404(api: Api) -> None:
    answer = api.call("POST", PODS.format("nowhere"), pod("p"))
    assert (answer.code, answer.body["message"]) == (404, 'namespaces "nowhere" not found')


def test_reading_what_is_not_there_is_a_404_status_that_names_it(api: Api) -> None:
    answer = api.call("GET", f"{NODES}/nobody")
    assert (answer.code, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["details"] == {"name": "nobody", "group": "", "kind": "nodes"}


def test_a_patch_on_an_old_version_is_409_and_changes_nothing(api: Api) -> None:
    old = api.create(NODES, node("versions"))["metadata"]["resourceVersion"]
    assert api.merge(f"{NODES}/versions", {"metadata": {"labels": {"a": "1"}}}).code == 200
    late = api.merge(
        f"{NODES}/versions", {"metadata": {"resourceVersion": old, "labels": {"a": "2"}}}
    )
    assert (late.code, late.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in late.body["message"]
    assert api.get(f"{NODES}/versions")["metadata"]["labels"]["a"] == "1"


def test_replacing_an_old_version_is_409(api: Api) -> None:
    first = api.create(NODES, node("replaced"))
    again = {**first, "spec": {"unschedulable": True}}
    assert api.call("PUT", f"{NODES}/replaced", again).code == 200
    late = api.call("PUT", f"{NODES}/replaced", first)
    assert (late.code, late.body["reason"]) == (409, "Conflict")


def test_a_write_that_changes_nothing_makes_no_new_version(api: Api) -> None:
    made = api.create(NODES, node("still", gpus=3))
    body = {"metadata": {"labels": {"kubernetes.io/hostname": "still"}}}
    same = api.merge(f"{NODES}/still", body).body
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_status_and_spec_are_written_through_their_own_doors_only(api: Api) -> None:
    api.create(NODES, node("doors"))
    both = {"spec": {"unschedulable": True}, "status": {"allocatable": {"nvidia.com/gpu": "9"}}}
    through_main = api.merge(f"{NODES}/doors", both).body
    assert through_main["spec"]["unschedulable"] is True
    assert through_main["status"]["allocatable"]["nvidia.com/gpu"] == "2"
    other = {"spec": {"unschedulable": None}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}
    through_status = api.merge(f"{NODES}/doors/status", other).body
    assert through_status["spec"]["unschedulable"] is True
    assert through_status["status"]["allocatable"]["nvidia.com/gpu"] == "1"


def test_c21_two_taints_with_one_key_and_effect_are_422(api: Api) -> None:
    api.create(NODES, node("taints"))
    gpu = {"key": "gpu", "value": "a", "effect": "NoSchedule"}
    pair = api.merge(f"{NODES}/taints", {"spec": {"taints": [gpu, {**gpu, "value": "b"}]}})
    assert (pair.code, pair.body["reason"]) == (422, "Invalid")
    assert pair.body["details"]["causes"][0]["field"] == "spec.taints[1]"
    other_effect = {**gpu, "effect": "NoExecute"}
    assert api.merge(f"{NODES}/taints", {"spec": {"taints": [gpu, other_effect]}}).code == 200


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("spec.taints[0].effect", {"spec": {"taints": [{"key": "a", "effect": "Never"}]}}),
        ("spec.taints[0].key", {"spec": {"taints": [{"key": "a b", "effect": "NoSchedule"}]}}),
        ("metadata.labels", {"metadata": {"labels": {"a": "1g.10gb+me"}}}),
        ("metadata.labels", {"metadata": {"labels": {"/a": "b"}}}),
        ("metadata.labels", {"metadata": {"labels": {"a": "x" * 64}}}),
    ],
)
def test_values_that_a_real_server_refuses_are_422(api: Api, field: str, body: dict) -> None:  # type: ignore[type-arg]
    if api.call("GET", f"{NODES}/refused").code == 404:
        api.create(NODES, node("refused"))
    answer = api.merge(f"{NODES}/refused", body)
    assert answer.code == 422
    assert answer.body["details"]["causes"][0]["field"] == field


def test_a_pod_without_a_node_is_gone_at_once(api: Api, namespace: str) -> None:
    path = PODS.format(namespace)
    api.create(path, pod("waiting", schedulerName="nobody"))
    assert api.call("DELETE", f"{path}/waiting").code == 200
    assert api.call("GET", f"{path}/waiting").code == 404


def test_a_bound_pod_leaves_when_its_kubelet_says_so(api: Api, namespace: str) -> None:
    path = PODS.format(namespace)
    uid = api.create(path, pod("bound", nodeName="elsewhere"))["metadata"]["uid"]
    marked = api.call("DELETE", f"{path}/bound", {"gracePeriodSeconds": 7}).body["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 7
    assert api.get(f"{path}/bound")["metadata"]["deletionTimestamp"] == marked["deletionTimestamp"]
    wrong = {"gracePeriodSeconds": 0, "preconditions": {"uid": "another"}}
    assert api.call("DELETE", f"{path}/bound", wrong).code == 409
    right = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    assert api.call("DELETE", f"{path}/bound", right).code == 200
    assert api.call("GET", f"{path}/bound").code == 404


def test_a_finalizer_holds_an_object_until_it_is_taken_off(api: Api) -> None:
    held = node("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(NODES, held)
    assert api.call("DELETE", f"{NODES}/held").code == 200
    assert "deletionTimestamp" in api.get(f"{NODES}/held")["metadata"]
    api.merge(f"{NODES}/held", {"metadata": {"finalizers": None}})
    assert api.call("GET", f"{NODES}/held").code == 404


def test_a_running_pods_spec_cannot_be_changed(api: Api, namespace: str) -> None:
    path = PODS.format(namespace)
    api.create(path, pod("fixed", schedulerName="nobody"))
    answer = api.merge(f"{path}/fixed", {"spec": {"nodeName": "elsewhere"}})
    assert (answer.code, answer.body["details"]["causes"][0]["field"]) == (422, "spec")


@pytest.mark.parametrize("body", ["[1]", "{", '"text"'])
def test_a_body_that_is_no_object_is_400(api: Api, namespace: str, body: str) -> None:
    answer = api.call("POST", CONFIGMAPS.format(namespace), body)
    assert answer.code == 400
