"""The records that stages hand on, each with one Arrow schema.

A record is a frozen dataclass where code handles one row at a time; its ``SCHEMA`` is the layout of
the same row in an artifact's Parquet files. The schemas are plain Arrow: no library's private
metadata, so any reader takes them.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Protocol, Self, TypedDict

import pyarrow as pa

Status = Literal["correct", "wrong", "no_answer", "truncated", "error"]
FinishReason = Literal["stop", "length", "error"]


class Message(TypedDict):
    """One turn of a chat. ``role`` is system, user, assistant or tool."""

    role: str
    content: str


class TrainMessage(Message):
    """A turn of an SFT sample; ``train`` says whether its tokens carry loss."""

    train: bool


_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
_TRAIN_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string()), ("train", pa.bool_())])


class Record(Protocol):
    """What the artifact code asks of a record."""

    SCHEMA: ClassVar[pa.Schema]

    def as_row(self) -> dict[str, Any]: ...

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self: ...


class _Row:
    """The two conversions, shared by all records."""

    __slots__ = ()

    def as_row(self) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            row[f.name] = value.as_row() if isinstance(value, _Row) else value
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        return cls(**row)


def to_batch(record: type[Record], rows: Iterable[Record]) -> pa.RecordBatch:
    """Rows to one Arrow batch with the record's schema."""
    return pa.RecordBatch.from_pylist([row.as_row() for row in rows], schema=record.SCHEMA)


def canonical(text: str) -> str:
    """The form of a prompt that its id is made from: NFC, runs of white space as one space.

    It must never change: ids join every table that was ever written.
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def problem_id(task: str, prompt: str) -> str:
    """16 hex digits (64 bits) that name a problem by its task and canonical prompt."""
    key = f"{task}\0{canonical(prompt)}".encode()
    return hashlib.blake2b(key, digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(_Row):
    """A question with a gold answer. ``payload`` is JSON private to the task."""

    SCHEMA: ClassVar[pa.Schema] = pa.schema(
        [
            ("id", pa.string()),
            ("task", pa.string()),
            ("source", pa.string()),
            ("prompt", pa.string()),
            ("answer", pa.string()),
            ("solution", pa.string()),
            ("level", pa.string()),
            ("subject", pa.string()),
            ("difficulty", pa.float64()),
            ("pass_rate", pa.float64()),
            ("payload", pa.string()),
        ]
    )

    id: str
    task: str
    source: str
    prompt: str
    answer: str
    solution: str | None = None
    level: str | None = None
    subject: str | None = None
    difficulty: float | None = None
    pass_rate: float | None = None
    payload: str = "{}"

    @classmethod
    def make(
        cls,
        *,
        task: str,
        source: str,
        prompt: str,
        answer: str,
        payload: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> Problem:
        """A problem with its id worked out and its payload written as JSON."""
        return cls(
            id=problem_id(task, prompt),
            task=task,
            source=source,
            prompt=prompt,
            answer=answer,
            payload=json.dumps(payload or {}, ensure_ascii=False, sort_keys=True),
            **rest,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout(_Row):
    """One sampled answer. ``messages`` is the whole transcript, the answer included.

    With several turns ``seed``, ``completion`` and what follows it describe the last one.
    ``token_ids`` and ``logprobs`` have one entry a sampled token (natural logarithm). ``error``
    says why there is no answer; where ``finish_reason`` is another, why no further one was drawn.
    """

    SCHEMA: ClassVar[pa.Schema] = pa.schema(
        [
            ("problem_id", pa.string()),
            ("sample", pa.int32()),
            ("seed", pa.int64()),
            ("messages", pa.list_(_MESSAGE)),
            ("completion", pa.string()),
            ("finish_reason", pa.string()),
            ("prompt_tokens", pa.int32()),
            ("completion_tokens", pa.int32()),
            ("token_ids", pa.list_(pa.int32())),
            ("logprobs", pa.list_(pa.float32())),
            ("error", pa.string()),
        ]
    )

    problem_id: str
    sample: int
    seed: int
    messages: Sequence[Message]
    completion: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    token_ids: Sequence[int] | None = None
    logprobs: Sequence[float] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(_Row):
    """What a rule says of one response: a status, the answer it read, and why.

    ``optimal`` is set for mazes only: whether a right path is also a shortest one.
    """

    status: Status
    extracted: str | None
    detail: str
    optimal: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewards(_Row):
    """Rewards of one rollout. None is "not computed", which is not 0."""

    outcome: float | None = None
    format: float | None = None
    length: float | None = None
    action: float | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Rewards:
        return cls(**row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(_Row):
    """What the verifier says of one rollout, and the rewards that follow from it."""

    SCHEMA: ClassVar[pa.Schema] = pa.schema(
        [
            ("problem_id", pa.string()),
            ("sample", pa.int32()),
            ("status", pa.string()),
            ("extracted", pa.string()),
            ("detail", pa.string()),
            ("optimal", pa.bool_()),
            (
                "rewards",
                pa.struct([(n, pa.float32()) for n in ("outcome", "format", "length", "action")]),
            ),
            ("advantages", pa.struct([("pass1", pa.float32()), ("passk", pa.float32())])),
        ]
    )

    problem_id: str
    sample: int
    status: Status
    extracted: str | None
    detail: str
    optimal: bool | None = None
    rewards: Rewards = Rewards()
    advantages: Mapping[str, float | None] | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Verdict:
        return cls(**{**row, "rewards": Rewards.from_row(row.get("rewards") or {})})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation(_Row):
    """An SFT sample: turns, each with or without loss.

    ``tools`` is JSON. ``token_ids`` and ``loss_mask`` (one 0 or 1 a token) are set where single
    tokens are masked, and then they decide.
    """

    SCHEMA: ClassVar[pa.Schema] = pa.schema(
        [
            ("id", pa.string()),
            ("problem_id", pa.string()),
            ("source", pa.string()),
            ("messages", pa.list_(_TRAIN_MESSAGE)),
            ("tools", pa.string()),
            ("token_ids", pa.list_(pa.int32())),
            ("loss_mask", pa.list_(pa.int8())),
        ]
    )

    id: str
    problem_id: str | None
    source: str
    messages: Sequence[TrainMessage]
    tools: str | None = None
    token_ids: Sequence[int] | None = None
    loss_mask: Sequence[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(_Row):
    """A preference: ``chosen`` is the better answer to ``prompt``, ``rejected`` the worse.

    Each is a list of messages, the two answers of one. The names are TRL's.
    """

    SCHEMA: ClassVar[pa.Schema] = pa.schema(
        [
            ("id", pa.string()),
            ("problem_id", pa.string()),
            ("source", pa.string()),
            ("prompt", pa.list_(_MESSAGE)),
            ("chosen", pa.list_(_MESSAGE)),
            ("rejected", pa.list_(_MESSAGE)),
        ]
    )

    id: str
    problem_id: str
    source: str
    prompt: Sequence[Message]
    chosen: Sequence[Message]
    rejected: Sequence[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedRow(_Row):
    """A training row of several segments, end to end: conversations, or pieces of long ones.

    ``input_ids``, ``labels`` (-100 where there is no loss) and ``position_ids`` (0 at the start of
    each segment) have one entry a token; ``seq_lengths`` has one a segment and sums to their
    length: the last one of a row takes in its padding. The name is TRL's. ``loss_weights``, where
    there are some, are 0 where there is no loss, and have the mean 1 over all other tokens of the
    set.
    """

    SCHEMA: ClassVar[pa.Schema] = pa.schema(
        [
            ("input_ids", pa.list_(pa.int32())),
            ("labels", pa.list_(pa.int32())),
            ("position_ids", pa.list_(pa.int32())),
            ("seq_lengths", pa.list_(pa.int32())),
            ("loss_weights", pa.list_(pa.float32())),
        ]
    )

    input_ids: Sequence[int]
    labels: Sequence[int]
    position_ids: Sequence[int]
    seq_lengths: Sequence[int]
    loss_weights: Sequence[float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainStep(_Row):
    """An optimizer step of a training, or (step 0) how the model was before the first.

    ``loss`` is the mean over the step's trained tokens, before it; ``eval_loss`` over those held
    out, after it, where they were looked at. ``grad_norm`` is from before clipping. ``tokens`` went
    through the model up to here, padding and what carries no loss among them, in ``seconds``.
    """

    SCHEMA: ClassVar[pa.Schema] = pa.schema(
        [
            ("step", pa.int64()),
            ("epoch", pa.float64()),
            ("loss", pa.float64()),
            ("eval_loss", pa.float64()),
            ("learning_rate", pa.float64()),
            ("grad_norm", pa.float64()),
            ("tokens", pa.int64()),
            ("seconds", pa.float64()),
        ]
    )

    step: int
    epoch: float
    loss: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    tokens: int = 0
    seconds: float = 0.0


class AnswerClass(TypedDict):
    """Equal answers to a problem, by the samples that gave them."""

    answer: str
    correct: bool
    samples: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemScore(_Row):
    """One row a problem of an eval: how many of its ``n`` samples were what.

    ``answers`` are the classes of equal answers that its samples gave, the most frequent first:
    ``answer`` is how the first of them put it, and ``samples`` are their numbers.
    """

    SCHEMA: ClassVar[pa.Schema] = pa.schema(
        [
            ("problem_id", pa.string()),
            ("task", pa.string()),
            ("source", pa.string()),
            ("level", pa.string()),
            ("subject", pa.string()),
            ("n", pa.int32()),
            ("correct", pa.int32()),
            ("wrong", pa.int32()),
            ("no_answer", pa.int32()),
            ("truncated", pa.int32()),
            ("error", pa.int32()),
            (
                "answers",
                pa.list_(
                    pa.struct(
                        [
                            ("answer", pa.string()),
                            ("correct", pa.bool_()),
                            ("samples", pa.list_(pa.int32())),
                        ]
                    )
                ),
            ),
        ]
    )

    problem_id: str
    task: str
    source: str
    level: str | None
    subject: str | None
    n: int
    correct: int
    wrong: int
    no_answer: int
    truncated: int
    error: int
    answers: Sequence[AnswerClass] = ()


RECORDS: Mapping[str, type[Record]] = {
    r.__name__: r
    for r in (
        Problem,
        Rollout,
        Verdict,
        Conversation,
        Pair,
        PackedRow,
        TrainStep,
        ProblemScore,
    )
}


def foreign(schema: pa.Schema) -> type[Record]:
    """The record of rows in another tool's layout, which no stage reads."""
    record: type[Record] = type("Foreign", (_Row,), {"SCHEMA": schema})
    return record
