from __future__ import annotations

import pytest

from llmpipe.algo import latency
from llmpipe.algo.latency import Latency


def test_percentiles_of_a_few_are_exact() -> None:
    times = Latency()
    assert times.percentiles() == {}
    for i in range(101):
        times.add(100.0 - i)
    assert times.percentiles() == {"p50": 50.0, "p90": 90.0, "p99": 99.0}


def test_of_many_an_even_sample_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "_KEPT", 2000)
    times = Latency()
    for i in range(50_000):
        times.add(i / 50_000)  # rising: the first ones alone would say 0.02
    assert len(times._times) == 2000
    assert times.percentiles()["p50"] == pytest.approx(0.5, abs=0.05)
    assert times.percentiles()["p90"] == pytest.approx(0.9, abs=0.05)
