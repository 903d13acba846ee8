from __future__ import annotations

import pytest

from llmpipe.algo import latency
from llmpipe.algo.latency import Latency, Times
from llmpipe.core.protocols import Timing


def test_percentiles_of_a_few_are_exact() -> None:
    times = Times()
    assert times.percentiles() == {}
    for i in range(101):
        times.add(100.0 - i)
    assert times.percentiles() == {"p50": 50.0, "p90": 90.0, "p99": 99.0}


def test_of_many_an_even_sample_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "_KEPT", 2000)
    times = Times()
    for i in range(50_000):
        times.add(i / 50_000)  # rising: the first ones alone would say 0.02
    assert len(times._times) == 2000
    assert times.percentiles()["p50"] == pytest.approx(0.5, abs=0.05)
    assert times.percentiles()["p90"] == pytest.approx(0.9, abs=0.05)


def test_time_per_token_is_what_follows_the_first() -> None:
    times = Latency()
    for _ in range(3):
        times.add(Timing(first_token=0.5, total=0.512), tokens=4)
    figures = times.figures()
    assert figures["latency_seconds"]["p50"] == 0.512
    assert figures["ttft_seconds"]["p99"] == 0.5
    assert figures["tpot_seconds"] == {"p50": 0.004, "p90": 0.004, "p99": 0.004}


def test_what_no_answer_had_is_left_out() -> None:
    times = Latency()
    assert times.figures() == {}
    times.add(Timing(first_token=None, total=2.0), tokens=9)
    assert set(times.figures()) == {"latency_seconds"}
    times.add(Timing(first_token=1.0, total=1.0), tokens=1)
    assert set(times.figures()) == {"latency_seconds", "ttft_seconds"}
