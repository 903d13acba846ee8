"""One row of each record, as a reader wants to see it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from llmpipe.algo import maze_pictures
from llmpipe.algo.mazes import parse
from llmpipe.algo.packed_rows import NO_LOSS
from llmpipe.algo.packed_text import PackedReader, about, stretches
from llmpipe.algo.transcripts import split_system
from llmpipe.core.markup import Html, el, join, text
from llmpipe.core.records import PackedRow
from llmpipe.viewer.marks import answer_span, thinking
from llmpipe.viewer.mathml import with_math

Row = Mapping[str, Any]
Words = Callable[[str], Html]
"""How a text is shown: `text`, or `with_math`."""


def number(value: object) -> str:
    """A value in a table: numbers short, nothing for None."""
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return "" if value is None else str(value)


def facts(entries: Iterable[tuple[str, object]]) -> Html | None:
    """Names and values, those without a value left out."""
    shown = [
        (el("dt", name), el("dd", value if isinstance(value, Html) else number(value)))
        for name, value in entries
        if value is not None and value != ""
    ]
    return el("dl", shown) if shown else None


def status(value: str) -> Html:
    """A status, in its colour."""
    return el("span", value.replace("_", " "), class_=f"status {value}")


def section(title: str, *inner: Html | None) -> Html | None:
    """A part of a page, left out where nothing is in it."""
    return el("section", el("h2", title), inner) if any(inner) else None


def problem(row: Row) -> tuple[Html, Html | None]:
    """A problem, and the facts about it."""
    main = join(
        section("Problem", _prompt(row)),
        section("Maze", maze(row, row["answer"])),
        section("Solution", _words(row.get("solution"), with_math)),
    )
    aside = facts(
        [
            ("gold answer", _gold(row)),
            *((n.replace("_", " "), row.get(n)) for n in _PROBLEM_FACTS),
            *_payload(row).items(),
        ]
    )
    return main, aside


_PROBLEM_FACTS = ("level", "subject", "difficulty", "pass_rate", "task", "source", "id")


def _payload(row: Row) -> dict[str, object]:
    """What the task keeps with a problem, where it is short."""
    try:
        payload = json.loads(row.get("payload") or "{}")
    except ValueError:
        return {}
    plain = payload.items() if isinstance(payload, dict) else ()
    return {k: v for k, v in plain if isinstance(v, str | int | float) and len(str(v)) < 60}


def asked(row: Row) -> Html:
    """A problem beside an answer to it, folded where that shows it anew."""
    parts = join(_prompt(row), section("Solution", _words(row.get("solution"), with_math)))
    return el("details", el("summary", "The problem"), parts, open=row.get("task") != "maze")


def _prompt(row: Row) -> Html:
    kind = "text grid" if row.get("task") == "maze" else "text"
    return el("div", with_math(row["prompt"]), class_=kind)


def _gold(row: Row) -> Html:
    """The gold answer; LaTeX that has no signs of mathematics around it is a formula."""
    answer = row["answer"]
    bare = "\\" in answer and "$" not in answer
    return el("span", with_math(f"${answer}$" if bare else answer), class_="answer")


def _words(value: str | None, words: Words) -> Html | None:
    return el("div", words(value), class_="text") if value else None


def maze(row: Row, path: str | None) -> Html | None:
    """The maze of a problem with a path in it, where it has one: red is where that broke."""
    if row.get("task") != "maze":
        return None
    try:
        found = parse(json.loads(row["payload"])["maze"])
    except (ValueError, KeyError, TypeError):
        return None
    path = path if path and set(path) <= set("UDLR") else ""
    width = min(32 * len(found.rows[0]), 340)
    drawn = maze_pictures.svg(found, path).replace("<svg ", f'<svg width="{width}" ', 1)
    return el("div", Html(drawn), class_="maze")


def verdict(row: Row, problem: Row | None) -> tuple[Html | None, Html | None]:
    """What of a verdict is drawn, and the facts: the status, why, and the rewards."""
    drawn = None
    if problem and (taken := maze(problem, row["extracted"])):
        gold = section("Gold path", maze(problem, problem["answer"]))
        drawn = el("div", section("Path taken", taken), gold, class_="mazes")
    aside = facts(
        [
            ("verdict", status(row["status"])),
            ("why", row["detail"]),
            ("gold answer", _gold(problem) if problem else None),
            ("extracted", _extracted(row)),
            ("shortest path", row.get("optimal")),
            *((f"{n} reward", v) for n, v in (row.get("rewards") or {}).items()),
            *((f"{n} advantage", v) for n, v in (row.get("advantages") or {}).items()),
        ]
    )
    return drawn, aside


def _extracted(row: Row) -> Html | None:
    return el("mark", row["extracted"]) if row["extracted"] is not None else None


def rollout(row: Row, examples: int, extracted: str | None, words: Words) -> tuple[Html, Html]:
    """A transcript, worked examples folded, the answer marked; and the facts of its sampling."""
    system, turns = split_system(row["messages"])
    shots, turns = turns[:examples], turns[examples:]
    folded = el(
        "details",
        el("summary", f"{len(shots)} messages of worked examples"),
        [_turn(m, words) for m in shots],
    )
    said = [_turn(m, words) for m in turns[:-1]]
    if turns and words is text:
        said.append(_turn(turns[-1], lambda response: _response(response, extracted)))
    elif turns:
        said.append(_turn(turns[-1], words))
    lost = ""
    if extracted and turns and answer_span(turns[-1]["content"], extracted) is None:
        lost = "The extracted answer doesn't stand in the response as it is."
    main = section(
        "Transcript",
        *(_turn(m, words) for m in system),
        folded if shots else None,
        *said,
        el("p", lost, class_="note") if lost else None,
    )
    aside = facts(
        [
            ("sample", row["sample"]),
            ("ended by", row["finish_reason"]),
            ("error", row.get("error")),
            ("response tokens", row["completion_tokens"]),
            ("prompt tokens", row["prompt_tokens"]),
            ("seed", row["seed"]),
            ("problem", row["problem_id"]),
        ]
    )
    return main or join(), aside or join()


def _turn(message: Row, words: Words, note: str = "") -> Html:
    role = message["role"]
    known = role if role in ("system", "user", "assistant", "tool") else "other"
    return el(
        "article",
        el("h3", role, el("small", note) if note else None),
        el("div", words(message["content"] or ""), class_="text"),
        class_=f"turn {known}",
    )


def _response(response: str, extracted: str | None) -> Html:
    """A response as it is: its thinking paler, the extracted answer marked."""
    thought = thinking(response)
    span = answer_span(response, extracted)
    if span is None:
        return join(el("span", response[:thought], class_="thinking"), response[thought:])
    start, end = span
    return join(
        el("span", response[:thought], class_="thinking"),
        response[thought:start],
        el("mark", response[start:end], id="answer"),
        response[end:],
    )


def conversation(row: Row) -> tuple[Html, Html | None]:
    """The turns of an SFT sample, those with loss marked."""
    masked = row.get("loss_mask")
    turns = []
    for message in row["messages"]:
        turn = _turn(message, text, "loss" if message["train"] else "")
        turns.append(el("div", turn, class_="trained" if message["train"] else None))
    main = section("Conversation", *turns)
    aside = facts(
        [
            ("source", row["source"]),
            ("turns with loss", sum(bool(m["train"]) for m in row["messages"])),
            ("masked by token", f"{sum(masked)} of {len(masked)} with loss" if masked else None),
            ("tools", row.get("tools")),
            ("problem", row["problem_id"]),
            ("id", row["id"]),
        ]
    )
    return main or join(), aside


def masked(row: Row, reader: PackedReader | None) -> Html | None:
    """The tokens of a sample that is masked by token, those with loss in colour."""
    labels = [0 if on else NO_LOSS for on in row["loss_mask"]]
    words = [
        el("span", _tokens(s.ids, reader), class_="learnt" if s.learnt else None)
        for s in stretches(row["token_ids"], labels)
    ]
    return section("By token", el("div", words, class_="text tokens"))


def pair(row: Row) -> tuple[Html, Html | None]:
    """A prompt with its better and its worse answer, side by side."""
    sides = [
        el("div", el("h2", name), [_turn(m, text) for m in row[name]], class_=f"side {name}")
        for name in ("chosen", "rejected")
    ]
    prompt = section("Prompt", *(_turn(m, text) for m in row["prompt"]))
    main = join(prompt, el("div", sides, class_="sides"))
    return main, facts([(n.replace("_", " "), row[n]) for n in ("source", "problem_id", "id")])


def packed(row: Row, reader: PackedReader | None) -> tuple[Html, Html | None]:
    """The segments of a packed row, a box each, tokens that are learnt in colour.

    Without a ``reader`` the tokens are numbers.
    """
    record = PackedRow.from_row({name: row.get(name) for name in PackedRow.SCHEMA.names})
    boxes, start = [], 0
    for n, length in enumerate(record.seq_lengths, 1):
        part = slice(start, start + length)
        words = [
            el("span", _tokens(s.ids, reader), class_="learnt" if s.learnt else None)
            for s in stretches(record.input_ids[part], record.labels[part])
        ]
        head = el("h3", f"segment {n}", el("small", about(record, part)))
        boxes.append(
            el("article", head, el("div", words, class_="text tokens"), class_="turn segment")
        )
        start += length
    learnt = sum(label != NO_LOSS for label in record.labels)
    legend = el("p", el("span", "learnt", class_="learnt"), " and not learnt", class_="note")
    aside = facts(
        [
            ("tokens", len(record.input_ids)),
            ("learnt", f"{learnt} ({learnt / max(len(record.labels), 1):.0%})"),
            ("segments", len(record.seq_lengths)),
        ]
    )
    return join(section("Packed row", legend, *boxes)), aside


def _tokens(ids: Sequence[int], reader: PackedReader | None) -> Html:
    if reader is None:
        return text(" ".join(map(str, ids)) + " ")
    return join([el("b", w) if special else w for w, special in reader.words(ids)])


def votes(row: Row) -> Html | None:
    """The answers that a problem's samples gave, the most frequent first."""
    lines = [
        el(
            "tr",
            el("td", str(len(each["samples"])), class_="number"),
            el("td", each["answer"], class_="words"),
            el("td", status("correct" if each["correct"] else "wrong")),
        )
        for each in row.get("answers") or ()
    ]
    table = el("table", el("tbody", lines), class_="list") if lines else None
    return section("Answers given", table)


def results(found: Mapping[str, Any]) -> Html | None:
    """The figures of an eval: each metric with its interval, and the rates."""
    rows = []
    for name, metric in (found.get("metrics") or {}).items():
        low, high = metric.get("low"), metric.get("high")
        interval = f"{low:.3f} to {high:.3f}" if low is not None and high is not None else ""
        value = metric.get("value")
        said = "can't be said" if value is None else f"{value:.4f}"
        rows.append(el("tr", el("th", name), el("td", said), el("td", interval)))
    rows += [
        el("tr", el("th", f"{name.replace('_', ' ')} rate"), el("td", f"{value:.4f}"), el("td"))
        for name, value in (found.get("rates") or {}).items()
        if value is not None
    ]
    about_it = f"{found.get('problems')} problems, n = {number(found.get('n'))}"
    table = el("table", el("tbody", rows), class_="figures")
    return section("Scores", el("p", about_it, class_="note"), table) if rows else None
