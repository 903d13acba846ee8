"""What can't be synced is said."""

from __future__ import annotations

import os
import time

import pytest

from llmpipe.core.syncer import Syncer


def test_an_error_reaches_the_writer_and_whoever_stops_it() -> None:
    end, begin = os.pipe()  # which can't be synced
    syncer = Syncer(begin)
    with pytest.raises(OSError, match="Invalid argument"):
        _write_for(60, syncer)
    with pytest.raises(OSError, match="Invalid argument"):
        syncer.stop()
    os.close(begin)
    os.close(end)


def _write_for(seconds: float, syncer: Syncer) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        syncer.written()
        time.sleep(0.01)
