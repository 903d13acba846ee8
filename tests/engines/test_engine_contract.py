"""What every engine promises, asked of all three; the real model for the two real ones."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import itertools
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Engine, Request, Sampling
from llmpipe.core.records import Problem
from llmpipe.core.seeds import sample_seed
from llmpipe.core.time_limit import TimeIsUp, TimeLimit

_MAX_TOKENS = 16
_OPTIONS = {
    # Small batches, so that the requests of a test are more than the engine takes at once.
    "scripted": {"window": "4"},
    "transformers": {"batch_size": "4"},
    "vllm": {"max_num_seqs": "4"},
}


@pytest.fixture(
    scope="module",
    params=["scripted", "transformers", pytest.param("vllm", marks=pytest.mark.slow)],
)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine, loaded once, with greedy sampling."""
    name = request.param
    model = "any" if name == "scripted" else str(request.getfixturevalue("smol_model"))
    if name == "vllm":
        pytest.importorskip("vllm", reason="vLLM is not installed here")
        if importlib.util.find_spec("numba"):
            importlib.import_module("numba")  # as a process has that drew mazes before
    made = load("engines", name)(
        model, Sampling(temperature=0, max_tokens=_MAX_TOKENS), _OPTIONS[name]
    )
    yield made
    made.close()


def _problem(prompt: str) -> Problem:
    return Problem.make(task="math", source="test", prompt=prompt, answer="4")


def _request(prompt: str, sample: int = 0) -> Request:
    problem = _problem(prompt)
    return Request(
        problem=problem,
        sample=sample,
        seed=sample_seed(0, problem.id, sample),
        messages=[{"role": "user", "content": prompt}],
    )


_SUMS = [_request(f"What is {i} + {i}?", sample) for i in range(4) for sample in range(3)]
_LONG = _request("word " * 40_000)


def test_one_answer_a_request_and_a_bad_one_stops_nobody(engine: Engine) -> None:
    wanted = [*_SUMS[:5], _LONG, *_SUMS[5:]]

    made = list(engine.stream(wanted))

    keys = Counter((g.request.problem.id, g.request.sample) for g in made)
    assert keys == Counter((r.problem.id, r.sample) for r in wanted)
    [failed] = [g for g in made if g.finish_reason == "error"]
    assert failed.request is _LONG
    assert failed.error
    assert "8192" in failed.error
    assert failed.text == ""
    for g in made:
        if g is not failed:
            assert g.error is None
            assert g.prompt_tokens > 0
            assert 0 < g.completion_tokens <= _MAX_TOKENS
            assert g.text
            assert g.finish_reason == "stop" or g.completion_tokens == _MAX_TOKENS
    assert {g.finish_reason for g in made} >= {"stop", "length"}


def test_requests_are_drawn_as_there_is_room(engine: Engine) -> None:
    drawn: list[Request] = []

    def requests() -> Iterator[Request]:
        for request in [_request(f"Say {i}.") for i in range(32)]:
            drawn.append(request)
            yield request

    answers = engine.stream(requests())
    next(answers)

    assert len(drawn) <= 12
    assert len(list(answers)) == 31


def test_same_request_same_answer(engine: Engine) -> None:
    first, second = ({_key(g.request): g.text for g in engine.stream(_SUMS)} for _ in range(2))

    assert first == second


def test_a_stream_that_is_given_up_leaves_the_engine_usable(engine: Engine) -> None:
    answers = engine.stream(_SUMS)
    next(answers)
    answers.close()  # type: ignore[attr-defined]

    assert {_key(g.request) for g in engine.stream(_SUMS[:2])} == {_key(r) for r in _SUMS[:2]}


def test_the_end_of_the_time_comes_through_and_leaves_the_engine_usable(engine: Engine) -> None:
    limit = TimeLimit[Request](time.monotonic() + 1, key=_key)
    endless = (_request(f"Say {i}.") for i in itertools.count())
    with contextlib.suppress(TimeIsUp), limit.alarm():
        for made in engine.stream(limit.hand_out(endless)):
            limit.done(made.request)
    assert limit.over

    assert {_key(g.request) for g in engine.stream(_SUMS[:2])} == {_key(r) for r in _SUMS[:2]}


def test_the_turns_before_are_part_of_the_prompt(engine: Engine) -> None:
    asked = _request("What is 2 + 2?")
    replied = [
        {"role": "assistant", "content": "It is 5."},
        {"role": "user", "content": "That is wrong. Try again."},
    ]
    again = dataclasses.replace(asked, messages=[*asked.messages, *replied])
    first, second = (next(iter(engine.stream([each]))) for each in (asked, again))
    assert second.prompt_tokens > first.prompt_tokens + 8
    assert second.error is None


def test_description_is_json_and_says_what_seeds_mean(engine: Engine) -> None:
    described = json.loads(json.dumps(engine.describe()))

    assert described["seeds"].startswith(("per sample", "per batch"))
    assert described.get("for_tests_only", False) is (described["engine"] == "scripted")
    if described["engine"] != "scripted":
        assert len(described["chat_template_sha256"]) == 64
        assert described["versions"]["transformers"]
        assert described["max_model_len"] == 8192


def _key(request: Request) -> tuple[str, int]:
    return request.problem.id, request.sample


@pytest.mark.parametrize("name", ["transformers", "vllm"])
def test_a_missing_model_is_said_before_anything_is_loaded(name: str) -> None:
    with pytest.raises(UserError, match="no model at org/absent") as caught:
        load("engines", name)("org/absent", Sampling(), {})
    assert caught.value.hint == "llmpipe download org/absent"


@pytest.mark.parametrize(
    ("name", "option", "near"),
    [
        ("scripted", "p_corect", "p_correct"),
        ("transformers", "batchsize", "batch_size"),
        pytest.param("vllm", "max_num_seq", "max_num_seqs", marks=pytest.mark.slow),
    ],
)
def test_an_unknown_option_names_near_ones(
    name: str, option: str, near: str, request: pytest.FixtureRequest
) -> None:
    if name == "vllm":
        pytest.importorskip("vllm", reason="vLLM is not installed here")
    model = "any" if name == "scripted" else str(request.getfixturevalue("smol_model"))
    with pytest.raises(UserError, match=option) as caught:
        load("engines", name)(model, Sampling(), {option: "1"})
    assert near in (caught.value.hint or "")


@pytest.mark.slow
def test_vllm_says_nothing_on_stdout_and_takes_seeds_of_63_bits(
    smol_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vllm", reason="vLLM is not installed here")
    engine = load("engines", "vllm")(
        str(smol_model), Sampling(temperature=1.0, max_tokens=24), {"max_num_seqs": "8"}
    )
    problem = _problem("Tell me a story.")
    requests = [
        Request(
            problem=problem,
            sample=i,
            seed=seed,
            messages=[{"role": "user", "content": problem.prompt}],
        )
        for i, seed in enumerate([2**63 - 1, 0, 2**63 - 1])
    ]
    texts = {g.request.sample: g.text for g in engine.stream(requests)}
    engine.close()

    assert capfd.readouterr().out == ""
    assert texts[0] == texts[2]
    assert texts[0] != texts[1]


def test_llvmlite_can_be_looked_at_and_still_works() -> None:
    numba = pytest.importorskip("numba", reason="Numba is not installed here")
    from llvmlite.binding import ffi

    from llmpipe.engines.vllm import _let_llvmlite_be_looked_at

    _let_llvmlite_be_looked_at()
    _let_llvmlite_be_looked_at()
    assert not hasattr(ffi.lib, "__dict__")
    assert numba.njit(lambda x: x + 1)(1) == 2


@pytest.mark.slow
def test_vllm_samples_as_it_is_told(smol_model: Path) -> None:
    pytest.importorskip("vllm", reason="vLLM is not installed here")
    sampling = Sampling(
        temperature=1.0,
        max_tokens=8,
        logprobs=True,
        seeds=False,
        extra={"top_k": 1},  # so greedy, and no seed is needed to repeat it
        chat_template="{{ messages[-1].content }}{{ end }}",
        chat_template_kwargs={"end": " ="},
    )
    with pytest.raises(UserError, match="vLLM's sampling has no option 'topk'"):
        load("engines", "vllm")(str(smol_model), Sampling(extra={"topk": 1}), {})
    engine = load("engines", "vllm")(str(smol_model), sampling, {"max_num_seqs": "4"})

    answers = list(engine.stream([_request("1 + 1", sample) for sample in range(3)]))
    described = engine.describe()
    engine.close()

    assert len({g.text for g in answers}) == 1
    for g in answers:
        assert g.token_ids is not None
        assert g.logprobs is not None
        assert len(g.token_ids) == len(g.logprobs) == g.completion_tokens
        assert all(p <= 0 for p in g.logprobs)
        assert g.prompt_tokens < 8  # no turn's marks
    assert described["seeds"] == "none"
    assert described["chat_template_kwargs"] == {"end": " ="}


def test_transformers_samples_as_it_is_told(smol_model: Path) -> None:
    sampling = Sampling(temperature=1.0, max_tokens=4, seeds=False, extra={"top_k": 1})
    engine = load("engines", "transformers")(str(smol_model), sampling, {})

    answers = list(engine.stream([_request("1 + 1", sample) for sample in range(2)]))
    described = engine.describe()
    engine.close()

    assert len({g.text for g in answers}) == 1
    assert described["seeds"] == "none"
    with pytest.raises(UserError, match="keeps no logprobs"):
        load("engines", "transformers").check(str(smol_model), Sampling(logprobs=True), {})
    with pytest.raises(UserError, match="no option 'topk'"):
        load("engines", "transformers")(str(smol_model), Sampling(extra={"topk": 1}), {})
