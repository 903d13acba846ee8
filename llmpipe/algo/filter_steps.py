"""What the filter does to a problem, one step at a time."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from llmpipe.algo.ranges import parse_range
from llmpipe.algo.rules import RULES, Rule, Statement, without_options
from llmpipe.algo.tally import Tally
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, problem_id

Reason = tuple[str, str]
"""The name of what a problem fails, and a detail."""

Step = Callable[[Problem], Problem | Reason]
"""What is done to a problem: it goes on, as it is or with more filled in, or there is a reason."""

VALUE = "multiple_choice_value"
_LONGEST = 8000  # characters, some 2,000 tokens: what trainers commonly allow a prompt


def text_step(problem: Problem, rules: Mapping[str, Rule]) -> Problem | Reason:
    """The first of the rules that a mathematical problem's text or answer fails."""
    if problem.task != "math":  # whose prompts say nothing, and whose answers are no mathematics
        empty = "answer_empty" in rules and not problem.answer.strip()
        return ("answer_empty", "") if empty else problem
    statement = Statement(problem.prompt, problem.answer)
    for name, rule in rules.items():
        detail = rule(statement)
        if detail is not None:
            return name, detail
    return problem


def cut_options(problem: Problem) -> Problem | Reason:
    """Without its options, where the gold answer is a value; the payload keeps the old id."""
    statement = Statement(problem.prompt, problem.answer)
    if problem.task != "math" or RULES[VALUE](statement) is None:
        return problem
    prompt = without_options(statement)
    if prompt is None:
        return VALUE, "nothing is left without the options"
    payload = json.loads(problem.payload) | {"uncut_id": problem.id}
    return dataclasses.replace(
        problem,
        id=problem_id(problem.task, prompt),
        prompt=prompt,
        payload=json.dumps(payload, ensure_ascii=False, sort_keys=True),
    )


def length_step(problem: Problem) -> Problem | Reason:
    """At most 8,000 characters."""
    length = len(problem.prompt)
    return ("prompt_too_long", f"{length} characters") if length > _LONGEST else problem


def token_step(tokenizer: Any, most: int) -> Step:
    """At most so many tokens."""

    def step(problem: Problem) -> Problem | Reason:
        if len(problem.prompt.encode()) <= most:  # a token is a byte at least
            return problem
        count = len(tokenizer(problem.prompt, add_special_tokens=False)["input_ids"])
        return ("prompt_too_long", f"{count} tokens") if count > most else problem

    return step


def rate_step(tally: Tally, ends: tuple[float, float], least: int) -> Step:
    """A pass rate between the ends, of ``least`` judged samples; fills in it and difficulty."""

    def step(problem: Problem) -> Problem | Reason:
        count = tally.of(problem.id)
        if count is None:
            return "no_verdicts", ""
        if count.judged < least:
            failed = f", {count.errors} with status error" if count.errors else ""
            return "too_few_samples", f"{count.judged} of {least} judged{failed}"
        rate = count.correct / count.judged
        if not ends[0] < rate < ends[1]:
            return "pass_rate", f"{count.correct} of {count.judged} correct"
        difficulty = problem.difficulty
        if difficulty is None:
            difficulty = (count.judged - count.correct) / count.judged  # 1 - 0.9 is no 0.1
        return dataclasses.replace(problem, pass_rate=rate, difficulty=difficulty)

    return step


def rate_ends(wanted: str) -> tuple[float, float]:
    """The ends of ``--pass-rate``.

    Raises:
        UserError: it is no range, or lets nothing pass.
    """
    example = "--pass-rate 0.1:0.9"
    low, high = parse_range(wanted, "--pass-rate", "0.1:0.9")
    if not max(low, 0.0) < min(high, 1.0):
        raise UserError(f"no pass rate is between the ends of --pass-rate {wanted!r}", example)
    if -math.inf < low < 0 or 1 < high < math.inf:
        raise UserError(f"the ends of --pass-rate {wanted!r} must be within 0 and 1", example)
    low, high = max(low, 0.0), min(high, 1.0)
    return low, high


_FIGURE = re.compile(r"\d+(?:\.\d+)?")


def level_number(level: str | None) -> float | None:
    """The number in a level's text ("Level 3", "7x7"); the first one, None where there is none."""
    figure = _FIGURE.search(level or "")
    return float(figure.group()) if figure else None


def level_step(wanted: str) -> Step:
    """A level of the comma list, or with a number within the range.

    Raises:
        UserError: it names no level, or is no range.
    """
    if ":" in wanted:
        low, high = parse_range(wanted, "--level", "2:4")
        values = None
    else:
        values = {v.strip().casefold() for v in wanted.split(",") if v.strip()}
        if not values:
            raise UserError("--level names no level", "--level 1,2 or --level 2:4")

    def step(problem: Problem) -> Problem | Reason:
        text = (problem.level or "").strip()
        figure = _FIGURE.search(text)
        if not text or (values is None and not figure):
            return "no_level", text
        if values is None:
            assert figure is not None
            inside = low <= float(figure.group()) <= high
        else:
            inside = text.casefold() in values or bool(figure and figure.group() in values)
        return problem if inside else ("level", text)

    return step


def difficulty_step(wanted: str) -> Step:
    """A difficulty within the range.

    Raises:
        UserError: it is no range.
    """
    low, high = parse_range(wanted, "--difficulty", "0.2:0.8")

    def step(problem: Problem) -> Problem | Reason:
        if problem.difficulty is None:
            return "no_difficulty", ""
        inside = low <= problem.difficulty <= high
        return problem if inside else ("difficulty", f"{problem.difficulty:g}")

    return step
