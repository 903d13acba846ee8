from __future__ import annotations

from typing import Any

import pytest

from llmpipe.algo.cells import Response, chat, gold_text, is_grid, other_part, responses


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
        (float("nan"), None),
        (["1", "2"], None),
        ({"a": 1}, None),
    ],
)
def test_gold_answers(cell: Any, text: str | None) -> None:
    assert gold_text(cell)[0] == text


def says(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


ASKED = {"role": "user", "content": "q"}
PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("so 2", ["so 2"]),
        ("", [""]),
        (2, ["2"]),
        (["a", "b"], ["a", "b"]),
        ([["a", "b"]], ["a", "b"]),
        (says("a"), ["a"]),
        ([ASKED, says("a")], ["a"]),
        ([ASKED, says("a"), {"role": "tool", "content": "t"}, says("b")], ["b"]),
        ([[ASKED, says("a")], [ASKED, says("b")]], ["a", "b"]),
        ([[says("a")], [says("b")]], ["a", "b"]),
        ([says("a"), says("b")], ["a", "b"]),
        ([says([{"type": "text", "text": "a"}, {"text": "b"}])], ["ab"]),
        (PARTS, ["ab"]),
        ([PARTS, PARTS], ["ab", "ab"]),
        ([{"text": "a"}, {"text": "b"}], ["a", "b"]),
        ([{"message": says("a")}, {"message": says("b")}], ["a", "b"]),
        (["a", None], ["a", None]),
        ([None, "a", ""], [None, "a", ""]),
        ([says("a"), says(None)], ["a", None]),
        ([[ASKED, says("a")], [ASKED, says(None)]], ["a", None]),
        ([{"text": None}, {"text": "b"}], [None, "b"]),
        ([], []),
        (None, None),
        (says(None), None),
        ([["-3.0", False]], None),  # log-likelihoods
        (["a", {"score": 1}], None),
    ],
)
def test_responses(cell: Any, texts: list[str | None] | None) -> None:
    found = responses(cell)
    assert (found if found is None else [r.text for r in found]) == texts


def test_a_response_may_say_how_it_ended() -> None:
    cell = [{"text": "a", "finish_reason": "length"}, {**says("b"), "finish_reason": "stop"}, "c"]
    assert responses(cell) == [Response("a", "length"), Response("b", "stop"), Response("c", None)]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("a", None),
        (None, None),
        (PARTS, None),
        ([says(PARTS), says("b")], None),
        ([{"type": "human", "content": "a"}], None),  # a message of LangChain's
        ([*PARTS, {"type": "image_url", "image_url": {"url": "x"}}], "image_url"),
        ([ASKED, says([{"type": "tool_use", "name": "f"}])], "tool_use"),
        ({"message": says([{"type": "refusal", "refusal": "no"}])}, "refusal"),
    ],
)
def test_parts_that_are_no_text_are_named(cell: Any, kind: str | None) -> None:
    assert other_part(cell) == kind


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
        ([{"type": "text", "text": "1+1?"}], USER),
        ([{"role": "user", "content": [{"type": "image"}, {"text": "1+1?"}]}], USER),
    ],
)
def test_prompts(cell: Any, messages: list[dict[str, str]]) -> None:
    assert chat(cell) == messages


def test_grids_are_told_from_answers() -> None:
    assert is_grid("S.\n*E")
    assert not is_grid("S.E")
    assert not is_grid("1\n2")
