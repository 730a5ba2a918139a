"""What we may do and who we are: questions, the line that grants, and how often it is asked."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from dev.processes import wait_until
from gpuadmin.kube.access import Need, Remembered, grant_command, review
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.connection import Connection


def test_the_line_that_grants_names_the_account_as_kubectl_wants_it() -> None:
    need = Need("list", "daemonsets", "", "apps", "gpuadmin")
    account = "system:serviceaccount:gpuadmin:web"
    assert grant_command(["get", "list"], need, account) == (
        "kubectl create role gpuadmin-daemonsets-read -n gpuadmin --verb=get,list"
        " --resource=daemonsets.apps && kubectl create rolebinding gpuadmin-daemonsets-read"
        " -n gpuadmin --role=gpuadmin-daemonsets-read --serviceaccount=gpuadmin:web"
    )
    whole = grant_command(["patch"], Need("patch", "nodes", ""), "anna")
    assert whole.endswith("--clusterrole=gpuadmin-nodes-patch --user=anna")


@pytest.mark.parametrize(
    "account",
    [
        "oidc:o'hara; rm -rf $HOME",
        "$(reboot)`reboot`",
        "system:serviceaccount:team:x && reboot",
        "two words",
    ],
)
def test_a_hostile_account_stays_one_word_of_the_line_that_is_pasted(account: str) -> None:
    line = grant_command(["get"], Need("get", "nodes", ""), account)
    shell = f'kubectl() {{ printf "%s\\n" "$@"; }}; {line}'
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True)
    words = done.stdout.splitlines()
    assert words[-2] == "--clusterrole=gpuadmin-nodes-get"
    assert words[-1] in (f"--user={account}", f"--serviceaccount={account[22:]}")
    assert words.count("create") == 2


def test_no_answer_is_none_never_false() -> None:
    client = KubeClient(Connection("http://127.0.0.1:9", lambda: None), timeout_seconds=1)
    [answer] = review(client, [Need("get", "nodes", "")])
    assert answer.allowed is None
    assert "can't be reached" in answer.reason


def test_what_is_remembered_is_asked_again_only_after_its_time() -> None:
    clock, answers = [0.0], iter([1, 2, 3])
    remembered = Remembered(lambda: next(answers), 10, clock=lambda: clock[0])
    assert (remembered(), remembered()) == (1, 1)
    clock[0] = 10.1
    assert remembered() == 2


def test_while_one_asks_the_others_get_the_old_value_at_once() -> None:
    clock, asked, answer = [0.0], Event(), Event()
    values = iter(["old", "new"])

    def ask() -> str:
        value = next(values)
        if value == "new":
            asked.set()
            answer.wait(10)
        return value

    remembered = Remembered(ask, 10, patience_seconds=10, clock=lambda: clock[0])
    assert remembered() == "old"
    clock[0] = 11.0
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(remembered)
        assert asked.wait(10)
        began = time.monotonic()
        assert [remembered() for _ in range(4)] == ["old"] * 4
        assert time.monotonic() - began < 1
        answer.set()
        assert first.result(10) == "new"
    assert remembered() == "new"


def test_the_first_answer_is_waited_for_only_so_long_and_comes_later() -> None:
    answer = Event()
    remembered = Remembered(lambda: answer.wait(10), 10, patience_seconds=0.05)
    assert remembered() is None
    assert remembered() is None
    answer.set()
    assert wait_until(lambda: remembered() is True, 5)
