"""What only vLLM can do wrong, on the real model: bad requests among good ones, times, an end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import needs_vllm

from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Request, Sampling
from llmpipe.core.records import Problem

pytestmark = [pytest.mark.slow, needs_vllm]

_MAX_TOKENS = 8
_SEATS = 4
# Bare texts: a prompt can be empty, and is refused where it says that it is odd.
_TEMPLATE = (
    "{% for m in messages %}{% if 'odd' in m.content %}{{ raise_exception('odd') }}{% endif %}"
    "{{ m.content }}{% endfor %}"
)


@pytest.fixture(scope="module")
def engine(smol_model: Path) -> Iterator[Any]:
    sampling = Sampling(max_tokens=_MAX_TOKENS, chat_template=_TEMPLATE)
    made = load("engines", "vllm")(str(smol_model), sampling, {"max_num_seqs": str(_SEATS)})
    # A token that the tokenizer has and the model has not, as some published pairs do.
    made._prompts._tokenizer.add_tokens(["<|beyond|>"])
    yield made
    made.close()


def _request(prompt: str, sample: int = 0, seed: int = 1) -> Request:
    name = prompt.encode("ascii", "replace").decode() or "empty"
    problem = Problem.make(task="math", source="test", prompt=name, answer="4")
    messages = [{"role": "user", "content": prompt}]
    return Request(problem=problem, sample=sample, seed=seed, messages=messages)


def _good(count: int) -> list[Request]:
    return [_request(f"{i} + {i} =", sample) for i in range(count) for sample in range(2)]


def test_times_are_vllms_own(engine: Any, capfd: pytest.CaptureFixture[str]) -> None:
    made = list(engine.stream(_good(2 * _SEATS)))

    assert len(made) == 4 * _SEATS
    for g in made:
        assert 0 < g.timing.first_token <= g.timing.total
        if g.completion_tokens > 1:
            assert g.timing.first_token < g.timing.total
    # The first batch waits for nobody, the next one for all answers of the first.
    first = sorted(g.timing.first_token for g in made)
    assert first[-1] > min(g.timing.total for g in made)
    assert capfd.readouterr() == ("", "")


_BAD = {
    "": "cannot be empty",
    "word " * 9000: "leaves no room for an answer in a context of 8192",
    "an odd one": "refuses the conversation: odd",
    "to infinity and <|beyond|>": "none with the id 49152",
    "\ud800 alone": "",  # half a character: the tokenizer's own words
}


def test_bad_requests_among_good_ones_are_one_error_each(engine: Any) -> None:
    good = _good(len(_BAD))
    bad = [_request(prompt) for prompt in _BAD]
    wanted = [r for i, b in enumerate(bad) for r in (good[2 * i], b, good[2 * i + 1])]

    made = list(engine.stream(wanted))

    assert len(made) == len(wanted)
    failed = {g.request.messages[0]["content"]: g for g in made if g.finish_reason == "error"}
    assert set(failed) == set(_BAD)
    for prompt, says in _BAD.items():
        assert failed[prompt].error
        assert says in (failed[prompt].error or "")
    assert {id(g.request) for g in made} == {id(r) for r in wanted}


def test_a_request_that_is_taken_by_half_is_aborted(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = engine._engine.engine_core
    add = core.add_request

    def fail_at_times(request: Any) -> None:
        if request.sampling_params.seed == 13:
            raise RuntimeError("no such thing")
        add(request)

    monkeypatch.setattr(core, "add_request", fail_at_times)
    wanted = [*_good(2), _request("7 + 6 =", seed=13), *_good(2)]

    made = list(engine.stream(wanted))

    assert len(made) == len(wanted)
    [failed] = [g for g in made if g.finish_reason == "error"]
    assert (failed.request.seed, failed.error) == (13, "no such thing")
    assert not engine._engine.has_unfinished_requests()


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"top_k": -7}, "top_k"),  # said before the model is loaded
        ({"logit_bias": {60_000: 1.0}}, "60000"),  # only a loaded model can know
    ],
)
def test_sampling_that_is_refused_ends_the_run_at_once(
    smol_model: Path, extra: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError, match=f"vLLM refuses the sampling.*{says}"):
        load("engines", "vllm")(str(smol_model), Sampling(extra=extra), {"max_num_seqs": "4"})


@pytest.mark.parametrize(
    ("error", "says", "do"),
    [
        (
            RuntimeError("[enforce fail] can't allocate memory: you tried 9 bytes"),
            "out of memory",
            "--engine-arg max_num_seqs=2 --engine-arg kv_cache_memory_bytes=",
        ),
        (RuntimeError("Worker failed with error 'x'"), "died: Worker failed", "goes on"),
    ],
)
def test_an_engine_that_dies_says_what_to_change(
    engine: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    says: str,
    do: str,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    executor = engine._engine.engine_core.engine_core.model_executor
    answers = engine.stream([*_good(1), _request("an odd one"), *_good(3)])
    assert next(answers).error
    monkeypatch.setattr(executor, "execute_model", fail)
    with pytest.raises(UserError, match=says) as caught:
        list(answers)
    assert do in (caught.value.hint or "")
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]
