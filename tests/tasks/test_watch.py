"""What a run says of itself while it goes on: counts, rates, and the pass rate so far."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from llmpipe.core.protocols import Generation, Request, Timing
from llmpipe.core.records import FinishReason, Problem
from llmpipe.core.run import Mode
from llmpipe.tasks import _watch
from llmpipe.tasks._watch import PassRate, Watch

PROBLEM = Problem.make(task="math", source="t", prompt="1 + 1?", answer="2")


def answer(text: str, finish: FinishReason = "stop", turn: int = 0) -> Generation:
    return Generation(
        request=Request(problem=PROBLEM, sample=0, seed=0, messages=[], turn=turn),
        text=text,
        finish_reason=finish,
        completion_tokens=10,
        timing=Timing(first_token=None, total=2.0),
    )


class Told:
    """A `Progress` that keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int | None, dict[str, Any]]] = []

    def __call__(
        self,
        done: int,
        total: int | None,
        *,
        unit: str = "",
        parts: Mapping[str, tuple[int, int]] | None = None,
        **figures: Any,
    ) -> None:
        self.calls.append((done, total, figures))


def test_the_bar_is_full_at_the_end_of_each_wave() -> None:
    told = Told()
    with Watch(Mode(progress=told), ["math"], total=6, turns=2) as watch:
        watch.begin(0, missing=4)  # two are there
        for finish in ("stop", "stop", "stop", "length"):
            watch.see(answer("", finish), ended=0)
        watch.begin(1, missing=3)
        watch.see(answer("", turn=1), ended=1)  # another needed no second answer
        watch.see(answer("", turn=1), ended=1)
    assert [(done, total) for done, total, _ in told.calls] == [
        (3, 6),
        (4, 6),
        (5, 6),
        (6, 6),
        (5, 6),
        (6, 6),
    ]
    last = told.calls[-1][2]
    assert last["turn"] == 2
    assert last["truncated"] == pytest.approx(1 / 6)
    assert last["tokens_per_second"] == pytest.approx(10 * last["samples_per_second"], rel=0.01)
    assert watch.figures()["latency_seconds"]["p50"] == 2.0


def test_nobody_is_told_so_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_watch, "judges", pytest.fail)
    monkeypatch.setattr(_watch, "_SOON", 0.0)
    with Watch(Mode(), ["math"], total=2, turns=1) as watch:
        watch.begin(0, missing=2)
        watch.see(answer("\\boxed{2}"), ended=0)
        watch.see(answer("\\boxed{2}"), ended=0)


def _wait_for(rate: PassRate, value: float) -> None:
    deadline = time.monotonic() + 60
    while rate.figures().get("pass_rate") != value:
        assert time.monotonic() < deadline, rate.figures()
        time.sleep(0.01)


def test_the_pass_rate_is_that_of_what_a_worker_has_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_watch, "_SOON", 0.0)
    rate = PassRate(["math"])
    try:
        assert rate.figures() == {}
        for text in ("\\boxed{2}", "\\boxed{4/2}") * 4:
            rate.add(answer(text))
            rate.add(answer("", "error"))  # says nothing of the model
        _wait_for(rate, 1.0)
        rate.begin(1)
        assert rate.figures() == {}
        for text in ("\\boxed{3}", "I can't tell.") * 4:
            rate.add(answer(text, turn=1))
        _wait_for(rate, 0.0)
    finally:
        rate.close()


def test_what_comes_too_fast_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    rate = PassRate(["math"])
    for _ in range(10 * _watch._WAITING):
        rate.add(answer("2" * 1000))  # before the worker is worth its start: none takes them
    assert rate.figures() == {}
    monkeypatch.setattr(_watch, "_SOON", 0.0)
    rate.add(answer("\\boxed{2}"))
    rate.close()


def test_a_worker_that_does_not_start_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(_watch, "judges", broken)
    monkeypatch.setattr(_watch, "_SOON", 0.0)
    rate = PassRate(["math"])
    for _ in range(2 * _watch._WAITING):
        rate.add(answer("\\boxed{2}"))
    rate.close()
    assert rate.figures() == {}
