"""Domains, one a file, each with a ``TASK``; and what stages ask of any of them."""

from __future__ import annotations

from llmpipe.core.plugins import load
from llmpipe.core.records import FinishReason, Score


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
