"""XIDs travel from a ring of the last 256, numbered within one agent instance."""

from __future__ import annotations

from agent.contract.report import Report
from agent.xids import RING_SIZE, XidRing
from simulator.hardware import SimXid
from tests.agent.conftest import OpenDoor
from tests.agent.door import Door, wait_until
from tests.agent.world import card, gpu_uuid, integrated

A0, A1 = gpu_uuid(0xA0), gpu_uuid(0xA1)


def happen(door: Door, *xids: tuple[str, int]) -> None:
    """Add XIDs (card, code) to the node's hardware."""
    known = door.hardware.xids
    new = [
        SimXid(number=len(known) + 1 + index, gpu_uuid=uuid, code=code)
        for index, (uuid, code) in enumerate(xids)
    ]
    door.write(xids=known + new)


def when_seen(door: Door, sequence: int) -> Report:
    """The first report that knows this many XIDs."""
    wait_until(lambda: door.report().xid_sequence >= sequence)
    return door.report()


def test_xids_are_numbered_and_name_their_card(open_door: OpenDoor) -> None:
    door = open_door(card(0), card(1))
    door.report()

    happen(door, (A1, 48), (A0, 31))
    report = when_seen(door, 2)

    assert [(xid.sequence, xid.code, xid.gpu_uuid) for xid in report.xids] == [
        (1, 48, A1),
        (2, 31, A0),
    ]
    assert all(0 <= xid.age_seconds < 5 for xid in report.xids)
    assert report.xids[0].gpu_instance_id is None


def test_an_xid_of_a_card_that_it_takes_off_the_bus_still_names_it(open_door: OpenDoor) -> None:
    door = open_door(card(0), card(1))
    door.report()

    door.hardware.cards[1].lost = True
    happen(door, (A1, 79))
    report = when_seen(door, 1)

    assert (report.xids[0].code, report.xids[0].gpu_uuid) == (79, A1)
    assert report.gpus[1].state == "lost"


def test_a_lost_card_does_not_deafen_us_for_the_others(open_door: OpenDoor) -> None:
    door = open_door(card(0), card(1, lost=True))
    door.report()

    happen(door, (A0, 13))

    assert when_seen(door, 1).xids[0].gpu_uuid == A0


def test_what_happened_before_we_listened_is_not_told_and_since_when_we_do_is(
    open_door: OpenDoor,
) -> None:
    door = open_door(card(0))
    happen(door, (A0, 79))
    first = door.report()

    assert (first.xids, first.xid_sequence) == ((), 0)
    assert first.xids_from is not None
    assert 0 <= first.xids_from < 5


def test_a_release_makes_a_gap_and_keeps_the_ring(open_door: OpenDoor) -> None:
    door = open_door(card(0))
    door.report()
    happen(door, (A0, 13))
    before = when_seen(door, 1)
    door.release(1)
    happen(door, (A0, 14))  # nobody listens
    wait_until(lambda: door.report().state == "ok")
    happen(door, (A0, 15))
    after = when_seen(door, 2)

    assert [xid.code for xid in after.xids] == [13, 15]
    assert before.xids_from is not None
    assert after.xids_from is not None
    assert after.xids_from < after.xids[0].age_seconds  # listening began anew, after the first


def test_a_card_that_tells_no_xids_is_read_all_the_same(open_door: OpenDoor) -> None:
    door = open_door(integrated())

    report = door.report()

    assert (report.state, report.xids_from) == ("ok", None)


def test_an_event_wait_that_fails_spoils_no_report(open_door: OpenDoor) -> None:
    door = open_door(card(0, errors={"nvmlDeviceRegisterEvents": 999}))

    report = door.report()

    assert (report.state, report.gpus[0].state, report.xids_from) == ("ok", "ok", None)


def test_the_ring_keeps_the_newest_256_and_counts_all() -> None:
    now = 100.0
    ring = XidRing(lambda: now)
    for code in range(300):
        ring.add(code, None, 3, 0xFFFFFFFF)
    now = 107.0

    xids, sequence = ring.newest()

    assert (len(xids), sequence) == (RING_SIZE, 300)
    assert (xids[0].sequence, xids[-1].sequence) == (45, 300)
    assert (xids[0].age_seconds, xids[0].gpu_instance_id) == (7.0, 3)
    assert xids[0].compute_instance_id is None
