"""What is handed out in the time that is left, and the alarm at the end of it."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from llmpipe.core.time_limit import TimeIsUp, TimeLimit


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that a test sets by hand."""
    now = [1000.0]
    monkeypatch.setattr("llmpipe.core.time_limit.time.monotonic", lambda: now[0])
    return now


def limit(deadline: float | None) -> TimeLimit[int]:
    return TimeLimit(deadline, key=lambda item: item)


def test_without_a_deadline_all_is_handed_out() -> None:
    unlimited = limit(None)
    assert list(unlimited.hand_out(iter(range(5)))) == list(range(5))
    assert not unlimited.over
    assert not unlimited.passed()
    with unlimited.alarm():
        pass


def test_nothing_is_handed_out_that_nine_of_ten_would_not_finish(clock: list[float]) -> None:
    ten = limit(1100.0)
    items = ten.hand_out(iter(range(100)))
    for seconds in (1, 1, 1, 1, 1, 1, 1, 1, 20, 60):  # one in ten is slow
        item = next(items)
        clock[0] += seconds
        ten.done(item)
    assert clock[0] == 1088.0
    assert next(items, None) is None  # 20 s are needed, 12 are left
    assert ten.over
    assert not ten.passed()  # what is under way may be finished
    clock[0] = 1100.0
    assert ten.passed()


def test_while_no_time_is_known_all_is_handed_out_up_to_the_end(clock: list[float]) -> None:
    blind = limit(1010.0)
    items = blind.hand_out(iter(range(100)))
    assert next(items) == 0
    clock[0] = 1009.0
    assert next(items) == 1
    clock[0] = 1010.0
    assert next(items, None) is None


def test_time_that_ends_after_the_last_item_was_enough(clock: list[float]) -> None:
    enough = limit(1010.0)
    assert list(enough.hand_out(iter([1, 2]))) == [1, 2]
    assert not enough.over


def _wait(given: TimeLimit[int]) -> None:
    with given.alarm():
        signal.raise_signal(signal.SIGALRM)  # somebody else's
        threading.Event().wait(600)


def test_the_alarm_wakes_what_waits_and_leaves_the_signal_as_it_was() -> None:
    rings: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rings.append(number))
    try:
        short = limit(time.monotonic() + 0.3)
        with pytest.raises(TimeIsUp):
            _wait(short)
        assert short.over
        assert rings == [signal.SIGALRM]
        with limit(time.monotonic() + 600).alarm():
            pass
        signal.raise_signal(signal.SIGALRM)
        assert len(rings) == 2
    finally:
        signal.signal(signal.SIGALRM, before)


def test_other_threads_are_not_interrupted() -> None:
    ended: list[bool] = []

    def work() -> None:
        own = limit(time.monotonic() + 0.01)
        with own.alarm():
            time.sleep(0.1)
        ended.append(own.passed())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [True]


def test_centuries_are_a_limit_as_good_as_none(capfd: pytest.CaptureFixture[str]) -> None:
    far = limit(time.monotonic() + 3.6e14)
    with far.alarm():
        assert list(far.hand_out(iter(range(2)))) == [0, 1]
    assert not far.over
    assert capfd.readouterr().err == ""
