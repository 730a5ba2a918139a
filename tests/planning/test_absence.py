"""C24: why a node has no agent, one sentence and one line each."""

from __future__ import annotations

import dataclasses

from gpuadmin.kube.structs import Toleration
from gpuadmin.planning.absence import Daemons, why_absent
from gpuadmin.planning.taints import Taint

GPU = Taint("nvidia.com/gpu", "NoSchedule", "present")
OURS = Daemons("gpuadmin", "gpuadmin-agent", {}, (), "gpuadmin-agent", desired=5, current=0)
BASELINE = (
    'Error creating: pods "gpuadmin-agent-" is forbidden: violates PodSecurity "baseline:latest": '
    'hostPath volumes (volumes "pod-resources", "proc"), privileged (container "agent" must not '
    "set securityContext.privileged=true)"
)
OPENSHIFT = (
    "unable to validate against any security context constraint: "
    '[provider "anyuid": Forbidden: not usable by user or serviceaccount, '
    'provider "restricted-v2": .spec.securityContext.hostPID: Invalid value: true]'
)


def refused(text: str) -> Daemons:
    return dataclasses.replace(OURS, refusals=(text,))


def test_c24_pod_security_names_the_level_of_the_namespace_and_the_fields_refused() -> None:
    why = why_absent("n1", {}, [], refused(BASELINE))
    assert why.sentence == (
        "Pod Security of the namespace gpuadmin, at the level baseline:latest, refuses its pod: "
        "hostPath volumes, privileged."
    )
    assert why.original == BASELINE
    assert why.command.startswith("kubectl label namespace gpuadmin pod-security")


def test_c24_openshift_names_the_constraints_and_the_service_account() -> None:
    why = why_absent("n1", {}, [], refused(OPENSHIFT))
    assert "constraint (anyuid, restricted-v2) lets the service account gpuadmin-agent" in (
        why.sentence
    )
    assert why.original == OPENSHIFT


def test_c24_a_taint_that_is_not_tolerated_is_named_though_no_event_is_written() -> None:
    none_wanted = dataclasses.replace(OURS, desired=0)
    why = why_absent("n1", {}, [GPU], none_wanted)
    assert why.sentence.startswith("The taint nvidia.com/gpu=present:NoSchedule keeps it away")
    assert '"path": "/spec/template/spec/tolerations", "value": [{' in why.command
    tolerant = dataclasses.replace(
        none_wanted, tolerations=(Toleration(key="nvidia.com/gpu", operator="Exists"),)
    )
    assert "nothing says why" in why_absent("n1", {}, [GPU], tolerant).sentence
    other = why_absent("n1", {}, [Taint("dedicated", "NoExecute")], tolerant)
    assert "/spec/template/spec/tolerations/-" in other.command


def test_c24_taints_that_the_controller_tolerates_by_itself_are_not_blamed() -> None:
    cordoned = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
    assert "nothing says why" in why_absent("n1", {}, [cordoned], OURS).sentence


def test_c24_a_label_that_the_selector_wants_is_named() -> None:
    picky = dataclasses.replace(OURS, selector={"nvidia.com/gpu.present": "true"})
    why = why_absent("n1", {"nvidia.com/gpu.present": "false"}, [], picky)
    assert "nvidia.com/gpu.present=true" in why.sentence
    assert why.command == "kubectl label node n1 nvidia.com/gpu.present=true --overwrite"


def test_c24_an_old_refusal_is_not_blamed_once_all_pods_are_there() -> None:
    whole = dataclasses.replace(refused(BASELINE), current=5)
    assert "nothing says why" in why_absent("n1", {}, [], whole).sentence
