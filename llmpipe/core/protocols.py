"""What a plugin has to offer: the shapes of an engine, a task and a recipe.

A plugin is one file in its room (``engines/``, ``tasks/``, ``recipes/``) with one constant
(``ENGINE``, ``TASK``, ``RECIPE``); `llmpipe.core.plugins` finds it by the file's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from llmpipe.core.records import FinishReason, Message, Problem, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How answers are drawn. ``max_tokens`` bounds one answer; ``temperature`` 0 is greedy."""

    temperature: float = 1.0
    top_p: float = 0.95
    max_tokens: int = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One answer to draw: sample number ``sample`` of ``problem``, given ``messages``."""

    problem: Problem
    sample: int
    seed: int
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What came of a request. A request that can't be served has ``finish_reason`` error."""

    request: Request
    text: str
    finish_reason: FinishReason
    prompt_tokens: int = 0
    completion_tokens: int = 0
    token_ids: Sequence[int] | None = None
    logprobs: Sequence[float] | None = None
    error: str | None = None


class Engine(Protocol):
    """A generator of answers, loaded and ready.

    ``ENGINE`` in an engine's file is its class; heavy imports happen in ``__init__``, which raises
    `UserError` where the model or the library is missing.
    """

    local_model: ClassVar[bool]
    """Whether ``model`` is a folder on this machine."""
    speed_options: ClassVar[frozenset[str]]
    """Names of options that change how fast answers come, not which: free to change on a resume."""

    def __init__(self, model: str, sampling: Sampling, options: Mapping[str, str]) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        """What a reader of the manifest needs to know: name, versions, settings, caveats."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Generation]:
        """Answers as they are finished, in any order, exactly one a request.

        Requests are drawn from the iterable as the engine has room for them, never all at once.
        """

    def close(self) -> None:
        """Free the model. Called once."""


class Task(Protocol):
    """A domain: how its problems are put to a model and how answers to them are judged.

    ``TASK`` in a task's file is an instance.
    """

    name: str
    instruction: str
    """Said after the problem, on a line of its own: where the answer goes and in what form."""
    one_answer: bool
    """Whether a problem has one right answer, so that two different ones can't both be gold."""
    prose: bool
    """Whether the prompt is all there is to a problem: `llmpipe.algo.normal.normal_form` of it is
    the problem's normal form, and the same problem may be put in other words."""

    def normal_form(self, problem: Problem) -> str:
        """Two problems with the same normal form are the same problem."""

    def malformed(self, problem: Problem) -> str | None:
        """Why this problem can't be used, in one line; None where it can."""

    def judge(
        self,
        answer: str,
        payload: str,
        response: str,
        *,
        finish_reason: FinishReason,
        extract: str,
        rules: str = "strict",
    ) -> Score:
        """Score one response. Runs in a child process: it may be killed, and must not be clever.

        ``rules`` other than "strict" are for tasks that have any; the others take no notice.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A source row that makes no problem, and why (a short snake_case reason, a longer detail)."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What a generator recipe is asked for."""

    limit: int
    seed: int
    args: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one source becomes problems: a data set (``convert``) or a generator (``draw``).

    A data set recipe names its hub ``repo`` (and in ``also`` others of the same layout), the
    ``split`` to train on (None: the only one), the ``test_split`` to be scored on where there is
    one, and the ``columns`` it needs. Its folder is ``datasets/ORG/NAME``, and its rows lie in the
    ``parts`` of that, folders or files, read in the order given. ``convert`` turns one row into a
    problem or says why not. Where rows come again, ``once`` names the columns that tell them apart:
    of rows with the same values there, only the first counts.
    A generator recipe has ``draw``, and ``default_limit`` for when no ``--limit`` is given.
    ``libraries`` are distributions whose versions the manifest records.
    """

    task: str
    source: str
    repo: str | None = None
    also: Sequence[str] = ()
    parts: Sequence[str] = ("",)
    split: str | None = "train"
    test_split: str | None = None
    columns: Sequence[str] = ()
    once: Sequence[str] = ()
    convert: Callable[[Mapping[str, Any]], Problem | Drop] | None = None
    draw: Callable[[Draw], Iterator[Problem | Drop]] | None = None
    default_limit: int = 1000
    libraries: Sequence[str] = ()
