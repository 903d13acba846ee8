"""Domains, one a file, each with a ``TASK``; and what stages ask of any of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llmpipe.core.plugins import load
from llmpipe.core.pool import Failure, WorkerPool
from llmpipe.core.records import FinishReason, Message, Problem, Score

CPU_SECONDS = 10.0
"""What judging one response may cost; a stage's version goes up with a change of it."""


_PLACE = re.compile(r"\{(prompt|instruction)\}")


def ask(task: str, prompt: str, template: str | None = None) -> str:
    """The user's turn for a problem: its prompt, then the task's instruction.

    Or what the template says, with these two in the place of ``{prompt}`` and ``{instruction}``.
    Other braces stay as they are, those of the prompt too.
    """
    words = {"prompt": prompt, "instruction": load("tasks", task).instruction}
    return _PLACE.sub(lambda place: words[place[1]], template or "{prompt}\n\n{instruction}")


def opening(
    problem: Problem,
    *,
    system: str | None = None,
    few_shot: Sequence[Mapping[str, str]] = (),
    template: str | None = None,
) -> list[Message]:
    """What is said before the first answer: a system message, worked examples, the problem.

    An example that names a task is for problems of that task only. ``template`` is as in `ask`.
    """
    messages: list[Message] = []
    if system:
        messages.append({"role": "system", "content": system})
    for shot in few_shot:
        if shot.get("task", problem.task) == problem.task:
            asked = ask(problem.task, shot["prompt"], template)
            messages.append({"role": "user", "content": asked})
            messages.append({"role": "assistant", "content": shot["response"]})
    messages.append({"role": "user", "content": ask(problem.task, problem.prompt, template)})
    return messages


def judge(
    task: str,
    answer: str,
    payload: str,
    response: str,
    finish_reason: FinishReason,
    extract: str,
    rules: str = "strict",
) -> Score:
    """Score one response by its task's rule; a module-level function, so that workers find it."""
    score: Score = load("tasks", task).judge(
        answer, payload, response, finish_reason=finish_reason, extract=extract, rules=rules
    )
    return score


def judge_gold(task: str, answer: str, payload: str) -> Score:
    """Score a gold answer as a response to its own problem; an error where it can't be read."""
    if why := load("tasks", task).unreadable(answer):
        return Score(status="error", extracted=answer, detail=why)
    return judge(task, answer, payload, f"\\boxed{{{answer}}}", "stop", "boxed")


def gold_judges(tasks: Iterable[str]) -> WorkerPool:
    """Workers that call `judge_gold` for problems of these tasks, `CPU_SECONDS` a call."""
    warm_up = [(task, "x", "{}") for task in tasks]
    return WorkerPool("llmpipe.tasks:judge_gold", cpu_seconds=CPU_SECONDS, warm_up=warm_up)


def judges(
    tasks: Iterable[str], workers: int | None = None, chunk: int | None = None
) -> WorkerPool:
    """Workers that call `judge` for problems of these tasks, `CPU_SECONDS` a call.

    ``chunk`` is how many responses a worker gets at a time, where they don't come in plenty.
    """
    # The first call of a rule loads its libraries, which is not to be charged to a response.
    warm_up = [(task, "1", "{}", "\\boxed{x}", "stop", "boxed") for task in tasks]
    return WorkerPool(
        "llmpipe.tasks:judge",
        workers=workers,
        cpu_seconds=CPU_SECONDS,
        warm_up=warm_up,
        chunk=chunk,
    )


def same_answers(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> list[bool]:
    """Whether the answers of each two problems' rows are equal, by their task's own judge.

    One is put to the judge as a response to the other; where it isn't right, the other way round.
    """
    if not pairs:
        return []
    with judges({row["task"] for pair in pairs for row in pair}) as pool:
        equal = [_right(score) for score in pool.map(_boxed(a, b) for a, b in pairs)]
        unequal = [i for i, right in enumerate(equal) if not right]
        back = pool.map(_boxed(pairs[i][1], pairs[i][0]) for i in unequal)
        for i, score in zip(unequal, back, strict=True):
            equal[i] = _right(score)
    return equal


def _boxed(gold: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[Any, ...]:
    boxed = f"\\boxed{{{other['answer']}}}"
    return gold["task"], gold["answer"], gold["payload"], boxed, "stop", "boxed"


def _right(score: Score | Failure) -> bool:
    return isinstance(score, Score) and score.status == "correct"
