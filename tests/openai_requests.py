"""Requests to put to a server, and how to make some of them fail."""

from __future__ import annotations

from collections.abc import Callable

from api_server import Reply, prompt

from llmpipe.core.protocols import Engine, Request
from llmpipe.core.records import Problem
from llmpipe.core.seeds import sample_seed

KEY = "sk-secret-1234"
Make = Callable[..., Engine]


def ask_for(text: str, sample: int = 0) -> Request:
    problem = Problem.make(task="math", source="test", prompt=text, answer="4")
    return Request(
        problem=problem,
        sample=sample,
        seed=sample_seed(0, problem.id, sample),
        messages=[{"role": "user", "content": text}],
    )


def key_of(request: Request) -> tuple[str, int]:
    return request.problem.id, request.sample


SUMS = [ask_for(f"What is {i} + {i}?", sample) for i in range(4) for sample in range(3)]


def failing(text: str, reply: Reply, times: int = 1000) -> Callable[..., Reply | None]:
    """The first ``times`` tries of the prompt ``text`` go wrong."""
    return lambda body, tries: reply if prompt(body) == text and tries <= times else None
