"""Domains, one a file, each with a ``TASK``; and the function that worker processes call."""

from __future__ import annotations

from llmpipe.core.plugins import load
from llmpipe.core.records import FinishReason, Score


def judge(
    task: str, answer: str, payload: str, response: str, finish_reason: FinishReason, extract: str
) -> Score:
    """Score one response by its task's rule; a module-level function, so that workers find it."""
    score: Score = load("tasks", task).judge(
        answer, payload, response, finish_reason=finish_reason, extract=extract
    )
    return score
