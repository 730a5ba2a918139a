"""C43: when a worker counts as deaf, and when it is only busy, idle or without a queue."""

from __future__ import annotations

from redis import ConnectionError as QueueAway

from gpuadmin.ears import DEAF_SECONDS, Ears


class Worker:
    """A worker with a clock of its own."""

    def __init__(self) -> None:
        self.now, self.messages, self.full, self.away = 100.0, 0, False, False
        self.ears = Ears(self.waiting, lambda: self.full, lambda: self.now)

    def waiting(self) -> int:
        if self.away:
            raise QueueAway
        return self.messages

    def deaf_after(self, seconds: float) -> bool:
        """Whether it is deaf at the end of some seconds, looked at each second."""
        found = False
        for _ in range(int(seconds)):
            self.now += 1
            found = self.ears.deaf()
        return found


def test_c43_messages_that_wait_while_a_hand_is_free_make_a_worker_deaf() -> None:
    worker = Worker()
    assert not worker.deaf_after(60)
    worker.messages = 1
    assert not worker.deaf_after(DEAF_SECONDS)
    assert worker.deaf_after(1)


def test_c43_a_worker_that_takes_one_message_hears() -> None:
    worker = Worker()
    worker.messages = 40
    for _ in range(10):
        assert not worker.deaf_after(DEAF_SECONDS)
        worker.ears.heard(sender=None)


def test_c43_a_busy_worker_and_an_absent_queue_are_no_deafness() -> None:
    worker = Worker()
    worker.messages, worker.full = 5, True
    assert not worker.deaf_after(600)
    worker.full, worker.away = False, True
    assert not worker.deaf_after(600)
    worker.away = False
    assert not worker.deaf_after(DEAF_SECONDS), "it is given time after the queue is back"
