from __future__ import annotations

from typing import Any

import pytest

from llmpipe.algo.generations import Sample, Taken, take
from llmpipe.algo.layouts import Keys, find_keys, look_up
from llmpipe.core.protocols import Drop


@pytest.mark.parametrize(
    ("columns", "name", "answer", "response"),
    [
        (
            ["data_source", "prompt", "reward_model", "extra_info", "responses"],
            *["verl", "reward_model.ground_truth", "responses"],
        ),
        (
            ["problem", "expected_answer", "generation", "num_generated_tokens"],
            *["NeMo-Skills", "expected_answer", "generation"],
        ),
        (
            ["doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"],
            *["lm-evaluation-harness", "target", "resps"],
        ),
        (
            ["index", "input", "target", "sample_score"],
            *["evalscope", "target", "sample_score.score.prediction"],
        ),
        (
            ["input", "output", "gts", "score", "step", "acc", "request_id"],
            *["verl's rollout dump", "gts", "output"],
        ),
        (["question", "gt", "output"], "rows", "gt", "output"),
    ],
)
def test_layouts_are_known_by_their_columns(
    columns: list[str], name: str, answer: str, response: str
) -> None:
    keys = find_keys(columns)
    assert (keys.name, keys.answer, keys.response) == (name, answer, response)


def test_given_keys_win() -> None:
    keys = find_keys(["a", "b", "c", "answer"], answer="a", response="b.text", prompt="c")
    assert keys == Keys(name="rows", answer="a", response="b.text", prompts=("c",))


@pytest.mark.parametrize(
    ("columns", "given", "missing"),
    [
        (["x", "response"], {}, "answer"),
        (["answer", "x"], {}, "response"),
        (["answer", "response"], {"answer": "gold.text"}, "answer"),
        (["answer", "response"], {"response": "out"}, "response"),
    ],
)
def test_keys_that_are_not_there(columns: list[str], given: dict[str, str], missing: str) -> None:
    with pytest.raises(KeyError, match=missing):
        find_keys(columns, **given)


def test_keys_lead_into_rows() -> None:
    row = {"a": {"b": [{"c": 1}]}, "a.b": "own column"}
    assert look_up(row, "a.b") == "own column"
    assert look_up({"a": {"b": [{"c": 1}]}}, "a.b.0.c") == 1
    assert look_up({"a": {"b": [{"c": 1}]}}, "a.b.1.c") is None
    assert look_up({"a": None}, "a.b") is None


KEYS = Keys(name="rows", answer="gold", response="out", prompts=("prompt",))


def row(**changes: Any) -> dict[str, Any]:
    return {"gold": "2", "out": "it is 2", "prompt": "1+1?", **changes}


def test_a_row_is_taken() -> None:
    assert take(row(), KEYS) == Taken(
        messages=[{"role": "user", "content": "1+1?"}],
        answer="2",
        samples=[Sample(text="it is 2", finish_reason="stop", tokens=0)],
        filter=None,
    )


def test_what_came_after_the_prompt_is_no_part_of_it() -> None:
    talk = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "it is 2"},
    ]
    taken = take(row(prompt=talk), KEYS)
    assert isinstance(taken, Taken)
    assert (taken.messages, taken.prompt) == (talk[:4], "1+1?")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gold": None}, "no_answer"),
        ({"gold": ["1", "2"]}, "no_answer"),
        ({"out": None}, "no_response"),
        ({"out": []}, "no_response"),
        ({"out": {"role": "assistant", "content": None}}, "no_response"),
        ({"out": [["-3.0", False]]}, "no_response"),
        ({"out": [{"type": "text", "text": "2"}, {"type": "image_url"}]}, "not_text"),
        ({"out": ["2", {"content": [{"type": "image", "image": "..."}]}]}, "not_text"),
        ({"prompt": [{"role": "user", "content": [{"type": "image_url"}]}]}, "not_text"),
        ({"prompt": '[{"role": "user", "content": [{"type": "input_audio"}]}]'}, "not_text"),
        ({"prompt": ""}, "no_prompt"),
        ({"prompt": [{"role": "system", "content": "s"}]}, "no_prompt"),
        ({"out": "bad \ud800"}, "not_unicode"),
    ],
)
def test_rows_that_cannot_be_judged_say_why(changes: dict[str, Any], reason: str) -> None:
    taken = take(row(**changes), KEYS)
    assert isinstance(taken, Drop)
    assert taken.reason == reason


@pytest.mark.parametrize(
    ("side", "expected"),
    [
        ({"finish_reason": "stop"}, [("stop", 0), ("stop", 0)]),  # one word for two responses
        ({"finish_reasons": ["length", None]}, [("length", 0), ("stop", 0)]),
        ({"stop_reason": ["max_tokens", "eos"]}, [("length", 0), ("stop", 0)]),
        ({"finish_reason": ["abort", "stop"]}, [("error", 0), ("stop", 0)]),
        ({"completion_tokens": ["7", 9]}, [("stop", 7), ("stop", 9)]),
        ({"completion_tokens": [7]}, [("stop", 0), ("stop", 0)]),
    ],
)
def test_how_a_response_ended_is_taken_from_the_row(
    side: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    taken = take(row(out=["a", "b"], **side), KEYS)
    assert isinstance(taken, Taken)
    assert [(s.finish_reason, s.tokens) for s in taken.samples] == expected


def test_a_single_response_has_single_values() -> None:
    taken = take(row(finish_reason="length", num_generated_tokens="12"), KEYS)
    assert isinstance(taken, Taken)
    assert taken.samples == [Sample(text="it is 2", finish_reason="length", tokens=12)]


def test_a_null_among_responses_is_a_sample_that_failed() -> None:
    taken = take(row(out=["it is 2", None, "3"], finish_reason=["stop", "length", "length"]), KEYS)
    assert isinstance(taken, Taken)
    assert taken.samples == [
        Sample(text="it is 2", finish_reason="stop", tokens=0),
        Sample(text="", finish_reason="error", tokens=0, error="no text"),
        Sample(text="3", finish_reason="length", tokens=0),
    ]
    failed = take(row(out=["2"], finish_reason="abort"), KEYS)
    assert isinstance(failed, Taken)
    assert failed.samples[0].error == "the file says abort"
    nothing = take(row(out=[None, None]), KEYS)
    assert isinstance(nothing, Taken)
    assert [s.error for s in nothing.samples] == ["no text"] * 2


def test_messages_of_the_model_alone_are_samples_with_their_own_ends() -> None:
    said = [{"role": "assistant", "content": text} for text in ("it is 2", "it is")]
    taken = take(row(out=said, finish_reasons=["stop", "length"]), KEYS)
    assert isinstance(taken, Taken)
    assert [(s.text, s.finish_reason) for s in taken.samples] == [
        *[("it is 2", "stop"), ("it is", "length")]
    ]
    choices = [{"index": i, "message": m, "finish_reason": "length"} for i, m in enumerate(said)]
    taken = take(row(out=choices), KEYS)
    assert isinstance(taken, Taken)
    assert [(s.text, s.finish_reason) for s in taken.samples] == [
        *[("it is 2", "length"), ("it is", "length")]
    ]


def test_a_prompt_in_parts_is_read() -> None:
    parts = [{"type": "text", "text": "1+1"}, {"type": "text", "text": "?"}]
    for prompt in (parts, [{"role": "user", "content": parts}]):
        taken = take(row(prompt=prompt), KEYS)
        assert isinstance(taken, Taken)
        assert taken.messages == [{"role": "user", "content": "1+1?"}]
