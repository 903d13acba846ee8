"""What a plugin has to offer: the shapes of an engine, a task, a recipe, a tracker, an exporter.

A plugin is one file in its room (``engines/``, ``tasks/``, ``recipes/``, ``trackers/``,
``exporters/``) with one constant (``ENGINE``, ``TASK``, ``RECIPE``, ``TRACKER``, ``EXPORTER``);
`llmpipe.core.plugins` finds it by the file's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import pyarrow as pa

from llmpipe.core.records import FinishReason, Message, Problem, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How conversations are put to the model and answers drawn.

    ``max_tokens`` bounds one answer; ``temperature`` 0 is greedy. ``logprobs`` keeps the ids and
    log-probabilities of the sampled tokens. Without ``seeds`` the engine draws as it likes: faster,
    and not repeatable. ``extra`` are sampling parameters under the engine's own names (``top_k``,
    ``min_p``, ``stop``). ``chat_template`` (Jinja) takes the place of the model's own, an empty one
    puts the bare text; ``chat_template_kwargs`` are handed to it.
    """

    temperature: float = 1.0
    top_p: float = 0.95
    max_tokens: int = 2048
    logprobs: bool = False
    seeds: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str | None = None
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One answer to draw: sample number ``sample`` of ``problem``, given ``messages``.

    ``turn`` answers of the same conversation are among these, beside any worked examples.
    """

    problem: Problem
    sample: int
    seed: int
    messages: Sequence[Message]
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds from the moment the engine took a request: to the first token, and in all.

    Waiting for a seat in the batch counts. An engine that does not stream has no first token to
    time; where there is one, ``total`` ends with the last token.
    """

    first_token: float | None
    total: float


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
    timing: Timing | None = None


class LoadedEngine(Protocol):
    """A generator of answers, loaded and ready."""

    def describe(self) -> Mapping[str, Any]:
        """What a reader of the manifest needs to know: name, versions, settings, caveats."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Generation]:
        """Answers as they are finished, in any order, exactly one a request.

        Requests are drawn from the iterable as the engine has room for them, never all at once. A
        stream that is closed gives up what is under way. When one has ended, the next may begin.
        """

    def close(self) -> None:
        """Free the model. Called once."""


class Engine(LoadedEngine, Protocol):
    """What an engine's file has as ``ENGINE``: a class, whose instance is the engine loaded.

    Heavy imports happen in ``__init__``, which raises `UserError` where the model or the library is
    missing. An instance may count its ``steps``, in an attribute of that name: in a process of its
    own it is started again where it has requests and the count stands still for too long.
    """

    local_model: ClassVar[bool]
    """Whether ``model`` is a folder on this machine."""
    speed_options: ClassVar[frozenset[str]]
    """Names of options that change how fast answers come, not which: free to change on a resume."""
    wraps: ClassVar[bool]
    """Whether it runs another engine elsewhere, named by its option ``engine``: whose options,
    model and answers are then those of the other."""

    @classmethod
    def check(cls, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        """Raise `UserError` for what can be known to be wrong before minutes of loading."""

    @classmethod
    def gpus_each(cls, options: Mapping[str, str]) -> int:
        """How many of this machine's GPUs a copy of the model spans; 0 for a model elsewhere."""

    def __init__(self, model: str, sampling: Sampling, options: Mapping[str, str]) -> None: ...

    @property
    def seats(self) -> int:
        """How many answers are drawn side by side; further requests that it takes wait in it."""


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

    def unreadable(self, answer: str) -> str | None:
        """Why no response can be compared with this gold answer; None where one can."""

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

    def reply(self, problem: Problem, messages: Sequence[Message], score: Score) -> str | None:
        """What the user says to the answer that ends ``messages`` and has this score.

        None ends the conversation: after a right answer, a truncated one, and an error. The gold
        answer must not be in it, and ``score.detail`` may quote that.
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


class Tracker(Protocol):
    """An experiment tracker's view of one run: its settings once, its figures as they come.

    ``TRACKER`` in a tracker's file is its class; ``library`` is the module that it needs, imported
    in ``__init__``, and ``install`` what pip calls it. ``job`` is the command ("rollout"), ``name``
    the run's.
    """

    library: ClassVar[str]
    install: ClassVar[str]

    def __init__(self, *, project: str, name: str, job: str, config: Mapping[str, Any]) -> None: ...

    def log(self, figures: Mapping[str, float], step: int) -> None:
        """Add figures at ``step``, which grows from call to call."""

    def close(self) -> None:
        """Have all figures written or sent. Called once."""


Loss = Literal["all", "last", "each"]
"""Which of the assistant's turns are trained: all of them, the last, or each as it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What an exporter's guide is told of the folder that it stands in.

    ``name`` is the folder's, ``folder`` the same quoted for a shell, ``data`` the pattern of its
    data files there, and ``columns`` what they hold. ``longest`` is the most tokens of a row, where
    they were counted.
    """

    name: str
    folder: str
    data: str
    columns: Sequence[str]
    longest: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the rows of one ``record`` look to a trainer.

    ``row`` makes a row of ``schema``; without it the columns are taken as they are. A problem's
    row has its messages under ``messages``. ``loss`` says which turns of a conversation the trainer
    learns from such rows, and ``tools`` that they may have a column of that name, with JSON.
    ``guide`` is the text of the folder's README, ``files`` are others beside it, by name.
    """

    record: str
    schema: pa.Schema
    guide: Callable[[Export], str]
    row: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    loss: Loss | None = None
    tools: bool = False
    files: Callable[[Export], Mapping[str, str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """The forms that one trainer reads; of several for a record, the first that fits is taken.

    ``lines`` writes JSON Lines in the place of Parquet.
    """

    trainer: str
    shapes: Sequence[Shape]
    lines: bool = False
