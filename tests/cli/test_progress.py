"""What is said of progress where there is no terminal, and on one."""

from __future__ import annotations

import sys

import pytest

from llmpipe.cli.output import _Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that a test sets by hand."""
    now = [1000.0]
    monkeypatch.setattr("llmpipe.cli.output.time.monotonic", lambda: now[0])
    return now


def test_a_line_says_how_long_the_rest_takes(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    progress = _Progress()
    with caplog.at_level("INFO", "llmpipe"):
        for seconds, done in ((0, 100), (40, 120), (400, 200), (10_000, 2_000), (40, 1_010)):
            clock[0] += seconds
            progress(done, 10_000, samples_per_second=0.512345, truncated=0.25)
        clock[0] += 40  # a second wave has begun: counted anew
        progress(1_020, 10_000)
    assert caplog.messages == [
        "120 of 10000, 5.5 h left, samples per second 0.512, truncated 0.25",
        "200 of 10000, 12.0 h left, samples per second 0.512, truncated 0.25",
        "2000 of 10000, 12.2 h left, samples per second 0.512, truncated 0.25",
        "1010 of 10000, samples per second 0.512, truncated 0.25",
        "1020 of 10000, 10.0 h left",
    ]


def test_a_bar_that_was_full_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = _Progress()
    progress(4, 4)
    assert progress._bar is not None
    assert progress._bar.tasks[0].finished
    progress(1, 4)
    assert not progress._bar.tasks[0].finished
    progress.stop()
