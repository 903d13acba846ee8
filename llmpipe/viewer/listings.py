"""What is shown of each record in a list, and what its filters are over: fixed pieces of SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

_EXCERPT = 240  # characters of a text in a list


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a reader asks for; None is anything. ``rate`` and ``length`` are inclusive bounds."""

    text: str | None = None
    status: str | None = None
    level: str | None = None
    rate_from: float | None = None
    rate_to: float | None = None
    length_from: float | None = None
    length_to: float | None = None
    problem: str | None = None

    @property
    def any(self) -> bool:
        return any(getattr(self, f.name) is not None for f in fields(self))


@dataclass(frozen=True, kw_only=True)
class Listing:
    """How rows of a record are listed: SQL of the columns, and what each filter is over.

    Tables are ``t``, the rows; ``p``, their problems; ``r``, their rollouts; ``s``, the share of
    right answers to each problem, by the verdicts.
    """

    columns: Mapping[str, str]
    text: str | None = None
    status: str | None = None
    level: str | None = None
    rate: str | None = None
    length: str | None = None
    problem: str | None = None
    unit: str = "characters"


def _start(column: str) -> str:
    return f"left({column}, {_EXCERPT})"


_CHAT = "list_sum(list_transform(t.{0}, lambda m: length(m.content)))"
_LAST = "t.{0}[-1].content"
_SAID = "list_aggregate(list_transform(t.{0}, lambda m: m.content), 'string_agg', ' ')"
_KNOWN_RATE = "coalesce(t.pass_rate, s.rate)"
_RATE = "t.correct / nullif(t.n - t.error, 0)"
LISTINGS: Mapping[str, Listing] = {
    "Problem": Listing(
        columns={
            "problem": _start("t.prompt"),
            "answer": _start("t.answer"),
            "level": "t.level",
            "difficulty": "t.difficulty",
            "pass rate": _KNOWN_RATE,
            "source": "t.source",
        },
        text="concat_ws(' ', t.id, t.prompt, t.answer)",
        level="t.level",
        rate=_KNOWN_RATE,
        length="length(t.prompt)",
        problem="t.id",
    ),
    "Rollout": Listing(
        columns={
            "problem": _start("p.prompt"),
            "sample": "t.sample",
            "ended": "t.finish_reason",
            "response": _start("t.completion"),
            "tokens": "t.completion_tokens",
            "level": "p.level",
        },
        text="concat_ws(' ', t.problem_id, t.completion)",
        status="t.finish_reason",
        level="p.level",
        length="t.completion_tokens",
        problem="t.problem_id",
        unit="tokens",
    ),
    "Verdict": Listing(
        columns={
            "status": "t.status",
            "problem": _start("p.prompt"),
            "sample": "t.sample",
            "gold": _start("p.answer"),
            "answer": _start("t.extracted"),
            "why": _start("t.detail"),
            "tokens": "r.completion_tokens",
            "level": "p.level",
            "pass rate": "s.rate",
        },
        text="concat_ws(' ', t.problem_id, t.extracted, t.detail, p.prompt, r.completion)",
        status="t.status",
        level="p.level",
        rate="s.rate",
        length="r.completion_tokens",
        problem="t.problem_id",
        unit="tokens",
    ),
    "Conversation": Listing(
        columns={
            "first turn": _start("t.messages[1].content"),
            "last turn": _start(_LAST.format("messages")),
            "turns": "len(t.messages)",
            "characters": _CHAT.format("messages"),
            "source": "t.source",
        },
        text=f"concat_ws(' ', t.id, {_SAID.format('messages')})",
        level="t.source",
        length=_CHAT.format("messages"),
        problem="t.problem_id",
    ),
    "Pair": Listing(
        columns={
            "prompt": _start(_LAST.format("prompt")),
            "chosen": _start(_LAST.format("chosen")),
            "rejected": _start(_LAST.format("rejected")),
            "source": "t.source",
        },
        text="concat_ws(' ', t.id, "
        + ", ".join(_SAID.format(part) for part in ("prompt", "chosen", "rejected"))
        + ")",
        level="t.source",
        length=_CHAT.format("chosen"),
        problem="t.problem_id",
    ),
    "PackedRow": Listing(
        columns={
            "tokens": "len(t.input_ids)",
            "learnt": "len(list_filter(t.labels, lambda x: x <> -100))",
            "segments": "len(t.seq_lengths)",
            "segment lengths": _start("array_to_string(t.seq_lengths, ', ')"),
        },
        length="len(t.input_ids)",
        unit="tokens",
    ),
    "TrainStep": Listing(
        columns={
            "step": "t.step",
            "loss": "t.loss",
            "held-out loss": "t.eval_loss",
            "learning rate": "t.learning_rate",
            "gradient norm": "t.grad_norm",
            "tokens": "t.tokens",
        },
    ),
    "ProblemScore": Listing(
        columns={
            "problem": _start("p.prompt"),
            "pass rate": _RATE,
            **{
                name: f"t.{name}"
                for name in ("correct", "wrong", "no_answer", "truncated", "error")
            },
            "samples": "t.n",
            "level": "t.level",
        },
        text="concat_ws(' ', t.problem_id, p.prompt)",
        level="t.level",
        rate=_RATE,
        length="length(p.prompt)",
        problem="t.problem_id",
    ),
}
