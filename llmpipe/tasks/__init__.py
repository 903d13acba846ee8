"""Domains, one a file, each with a ``TASK``; and what stages ask of any of them."""

from __future__ import annotations

from collections.abc import Iterable

from llmpipe.core.plugins import load
from llmpipe.core.pool import WorkerPool
from llmpipe.core.records import FinishReason, Score

CPU_SECONDS = 10.0
"""What judging one response may cost; a stage's version goes up with a change of it."""


def ask(task: str, prompt: str) -> str:
    """The user's turn for a problem: its prompt, then the task's instruction."""
    instruction: str = load("tasks", task).instruction
    return f"{prompt}\n\n{instruction}"


def judge(
    task: str, answer: str, payload: str, response: str, finish_reason: FinishReason, extract: str
) -> Score:
    """Score one response by its task's rule; a module-level function, so that workers find it."""
    score: Score = load("tasks", task).judge(
        answer, payload, response, finish_reason=finish_reason, extract=extract
    )
    return score


def judges(tasks: Iterable[str]) -> WorkerPool:
    """Workers that call `judge` for problems of these tasks, `CPU_SECONDS` a call."""
    # The first call of a rule loads its libraries, which is not to be charged to a response.
    warm_up = [(task, "1", "{}", "\\boxed{x}", "stop", "boxed") for task in tasks]
    return WorkerPool("llmpipe.tasks:judge", cpu_seconds=CPU_SECONDS, warm_up=warm_up)
