"""Evictions and disruption budgets on the simulator as on the real control plane."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from simulator import marks
from tests.cluster.objects import PODS, SETTLE_SECONDS, gpu_pod, wait_gone, wait_phase
from tests.controlplane.client import Answer, Client, Document
from tests.controlplane.waiting import until

pytestmark = pytest.mark.both

NODE = "a100-01"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
SERVING = {"app": "serving"}


@contextmanager
def budget(cluster: Client, name: str, **spec: Document | int | str) -> Iterator[str]:
    """A budget over the pods that are SERVING, gone on leaving; yields its path."""
    body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": SERVING}, **spec}}
    cluster.ok("POST", BUDGETS, body)
    try:
        yield f"{BUDGETS}/{name}"
    finally:
        cluster.call("DELETE", f"{BUDGETS}/{name}")


def evict(cluster: Client, pod: str, **options: Document | int) -> Answer:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.rpartition("/")[2], "namespace": "default"},
        "deleteOptions": options,
    }
    return cluster.call("POST", f"{pod}/eviction", body)


def wait_allowed(cluster: Client, path: str, number: int) -> None:
    def reached() -> bool:
        return bool(cluster.get(path).get("status", {}).get("disruptionsAllowed") == number)

    until(reached, SETTLE_SECONDS, f"{path} to allow {number}")


def test_a_budget_that_can_spare_none_refuses_with_its_name_until_another_pod_is_there(
    cluster: Client,
) -> None:
    with (
        budget(cluster, "keep", minAvailable=1) as keep,
        gpu_pod(cluster, "one", gpus=1, node=NODE, labels=SERVING) as one,
    ):
        wait_phase(cluster, one, "Running")
        wait_allowed(cluster, keep, 0)
        refused = evict(cluster, one)
        assert (refused.status, refused.body["reason"]) == (429, "TooManyRequests")
        words = "Cannot evict pod as it would violate the pod's disruption budget."
        assert refused.body["message"] == words
        [cause] = refused.body["details"]["causes"]
        assert cause["reason"] == "DisruptionBudget"
        text = "The disruption budget keep needs 1 healthy pods and has 1 currently"
        assert cause["message"] == text
        with gpu_pod(cluster, "two", gpus=1, node=NODE, labels=SERVING):
            wait_allowed(cluster, keep, 1)
            assert evict(cluster, one).status == 201
            wait_gone(cluster, one)
            wait_allowed(cluster, keep, 0)


def test_two_budgets_over_one_pod_are_an_error(cluster: Client) -> None:
    with (
        budget(cluster, "first", minAvailable=0),
        budget(cluster, "second", minAvailable=0),
        gpu_pod(cluster, "twice", gpus=1, node=NODE, labels=SERVING) as pod,
    ):
        wait_phase(cluster, pod, "Running")
        refused = evict(cluster, pod)
        assert refused.status == 500
        assert "more than one PodDisruptionBudget" in refused.body["message"]


def test_a_pod_that_waits_is_evicted_whatever_its_budget_says(cluster: Client) -> None:
    with (
        budget(cluster, "all", minAvailable="100%"),
        gpu_pod(cluster, "big", gpus=99, node=NODE, labels=SERVING) as pod,
    ):
        assert evict(cluster, pod).status == 201
        wait_gone(cluster, pod)


def test_an_evicted_pod_has_its_grace_to_end_in(cluster: Client) -> None:
    slow = {marks.ENDS_AFTER: "2s"}
    with gpu_pod(cluster, "slow", gpus=1, node=NODE, annotations=slow) as pod:
        wait_phase(cluster, pod, "Running")
        assert evict(cluster, pod, gracePeriodSeconds=2).status == 201
        metadata = cluster.get(pod)["metadata"]
        assert metadata["deletionGracePeriodSeconds"] == 2
        assert metadata["deletionTimestamp"]
        wait_gone(cluster, pod)


def test_an_eviction_for_another_uid_conflicts_and_one_of_nobody_is_not_found(
    cluster: Client,
) -> None:
    with gpu_pod(cluster, "kept", gpus=1, node=NODE) as pod:
        assert evict(cluster, pod, preconditions={"uid": "another"}).status == 409
        assert "deletionTimestamp" not in cluster.get(pod)["metadata"]
    assert evict(cluster, f"{PODS}/nobody").status == 404
