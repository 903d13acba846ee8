from __future__ import annotations

from typing import Any

import pytest

from llmpipe.algo.generations import (
    Sample,
    Taken,
    chat,
    gold_text,
    is_grid,
    response_texts,
    take,
)
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


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("  1/2 ", "  1/2 "),
        (18, "18"),
        (2.5, "2.5"),
        (["x+1"], "x+1"),
        ('["\\\\frac{1}{2}"]', "\\frac{1}{2}"),
        ('["a", not JSON', '["a", not JSON'),
        ("6 * 3 = <<6*3=18>>18\n#### 18", " 18"),
        ("S.E\n...\n", "S.E\n..."),
        (None, None),
        ("", None),
        (" \n", None),
        (True, None),
        (["1", "2"], None),
        ({"a": 1}, None),
    ],
)
def test_gold_answers(cell: Any, text: str | None) -> None:
    assert gold_text(cell)[0] == text


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("so 2", ["so 2"]),
        ("", [""]),
        (2, ["2"]),
        (["a", "b"], ["a", "b"]),
        ([["a", "b"]], ["a", "b"]),
        ({"role": "assistant", "content": "a"}, ["a"]),
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], ["a"]),
        (
            [{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"text": "b"}]}],
            ["ab"],
        ),
        ([{"text": "a"}, {"text": "b"}], ["a", "b"]),
        ([], []),
        (None, None),
        ([["-3.0", False]], None),  # log-likelihoods
    ],
)
def test_responses(cell: Any, texts: list[str] | None) -> None:
    assert response_texts(cell) == texts


USER = [{"role": "user", "content": "1+1?"}]


@pytest.mark.parametrize(
    ("cell", "messages"),
    [
        ("1+1?", USER),
        (USER, USER),
        (['[{"role": "user", "content": "1+1?"}]'], USER),
        ('[{"role": "user", "content": "1+1?"}]', USER),
        ("[{x}]", [{"role": "user", "content": "[{x}]"}]),
        (" ", []),
        (None, []),
        ([{"role": "user", "content": None}], []),
        (["a", "b"], []),
    ],
)
def test_prompts(cell: Any, messages: list[dict[str, str]]) -> None:
    assert chat(cell) == messages


def test_grids_are_told_from_answers() -> None:
    assert is_grid("S.\n*E")
    assert not is_grid("S.E")
    assert not is_grid("1\n2")


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
