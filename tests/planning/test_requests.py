"""What a pod requests and which names are accelerators: C06 and C08 as pure rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuadmin.planning.requests import ContainerRequest, effective_requests
from gpuadmin.planning.resources import recognise

GPU = "nvidia.com/gpu"


def ask(count: int | str, name: str = GPU, *, sidecar: bool = False) -> ContainerRequest:
    return ContainerRequest(requests={name: count}, limits={name: count}, sidecar=sidecar)


LIMITS_ONLY = ContainerRequest(limits={GPU: "1"})


@pytest.mark.parametrize(
    ("init", "containers", "expected"),
    [
        pytest.param([ask(1), ask(1, sidecar=True), ask(2)], [ask(1)], {GPU: 3}, id="p1"),
        pytest.param([ask(4)], [ask(1), ask(1)], {GPU: 4}, id="p2"),
        pytest.param([ask(1, sidecar=True)], [ask(1)], {GPU: 2}, id="p3"),
        pytest.param([], [ask("0"), ask(2), LIMITS_ONLY], {GPU: 3}, id="p4"),
        pytest.param([], [ask("0")], {}, id="p5"),
        pytest.param([ask(1)], [], {GPU: 1}, id="p6"),
        pytest.param(
            [],
            [ask(1), ask(2, "nvidia.com/mig-1g.5gb")],
            {GPU: 1, "nvidia.com/mig-1g.5gb": 2},
            id="p7",
        ),
    ],
)
def test_c06_what_one_pod_requests_is_the_schedulers_figure(
    init: list[ContainerRequest], containers: list[ContainerRequest], expected: dict[str, int]
) -> None:
    assert effective_requests(init, containers) == expected


def test_c06_the_order_of_sidecars_and_init_containers_matters() -> None:
    sidecar, plain = ask(1, sidecar=True), ask(3)
    assert effective_requests([sidecar, plain], [ask(1)]) == {GPU: 4}
    assert effective_requests([plain, sidecar], [ask(1)]) == {GPU: 3}


@given(
    st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=5),
    st.lists(st.integers(0, 8), max_size=5),
)
def test_a_request_is_never_less_than_what_runs_together(
    init: list[tuple[int, bool]], containers: list[int]
) -> None:
    total = effective_requests(
        [ask(count, sidecar=sidecar) for count, sidecar in init], map(ask, containers)
    ).get(GPU, 0)
    sidecars = sum(count for count, sidecar in init if sidecar)
    assert total >= sum(containers) + sidecars
    assert total >= max((count for count, _ in init), default=0)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("nvidia.com/gpu", "card"),
        ("nvidia.com/gpu.shared", "slot"),
        ("nvidia.com/mig-1g.12gb", "slice"),
        ("nvidia.com/mig-3g.47gb", "slice"),
        ("nvidia.com/mig-1g.5gb.me", "slice"),
        ("nvidia.com/mig-1g.24gb-me", "slice"),
        ("nvidia.com/mig-1g.24gb.me.all", "slice"),
        ("nvidia.com/mig-7g.80gb.shared", "slot"),
        ("nvidia.com/mig-9g.9999gb", "slice"),
        ("example.com/gpu-count", "other"),
        ("example.com/gpu-mem", "other"),
        ("amd.com/gpu", "other"),
    ],
)
def test_c08_a_name_is_recognised_by_its_pattern(name: str, unit: str) -> None:
    found = recognise(name)
    assert found is not None
    assert found.unit == unit
    assert found.nvidia == (unit != "other")


@pytest.mark.parametrize("name", ["cpu", "memory", "pods", "hugepages-1Gi", "nvidia.com/", ""])
def test_c08_an_ordinary_resource_is_no_accelerator(name: str) -> None:
    assert recognise(name) is None
