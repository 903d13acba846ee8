"""Conversations of one turn or several: which answers are to be drawn, and what becomes of them.

They go to the engine in waves: wave t has every conversation whose answer number t (from 0) is
missing. An answer is in the journal before anything else is done with it, a conversation that may
go on as an open row; its next prompt follows from that row alone, so a kill costs no turn, and no
conversation is held in memory.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from llmpipe.core.artifact import Artifact
from llmpipe.core.journal import Journal
from llmpipe.core.plugins import load
from llmpipe.core.pool import Failure
from llmpipe.core.protocols import Generation, Request
from llmpipe.core.records import Message, Problem, Rollout, Score
from llmpipe.core.seeds import sample_seed
from llmpipe.tasks import judges

Row = dict[str, Any]


@dataclass(kw_only=True)
class Conversations:
    """The conversations of a run: ``wanted`` says how many of each problem.

    ``opening`` is what is said before the first answer, ``most`` how many answers there may be.
    A conversation goes on after a complete answer to which its task has a reply; ``ended`` counts
    those that ended where their next prompt was to be made.
    """

    problems: Artifact
    wanted: Mapping[str, int]
    journal: Journal
    seed: int
    opening: Callable[[Problem], list[Message]]
    tasks: Iterable[str]
    most: int = 1
    ended: int = field(default=0, init=False)

    def missing(self, turn: int) -> int:
        """How many answers wave ``turn`` may have; some of later waves are among them."""
        if turn:
            return self.under_way()
        return sum(self.wanted.values()) - self.finished() - self.under_way()

    def finished(self) -> int:
        """How many of the wanted conversations have their last answer."""
        return sum(s < n for p, n in self.wanted.items() for s in self.journal.samples(p))

    def under_way(self) -> int:
        """How many of the wanted conversations have an answer, and go on."""
        return sum(s < self.wanted.get(p, 0) for p, s in self.journal.open_keys())

    def requests(self, turn: int) -> Generator[Request]:
        """The answers to draw in wave ``turn``, problem by problem: samples of one prompt follow
        each other, so that the engine's prefix cache serves them."""
        return self._later(turn) if turn else self._first()

    def _first(self) -> Generator[Request]:
        for problem in self.problems.iter_rows(Problem):
            messages = None
            for sample in range(self.wanted.get(problem.id, 0)):
                key = (problem.id, sample)
                if key in self.journal or self.journal.is_open(*key):
                    continue
                messages = messages or self.opening(problem)
                yield self._request(problem, sample, 0, messages)

    def _later(self, turn: int) -> Generator[Request]:
        """Judge the answers of the wave before, and reply to those that are to be tried again.

        The engine waits while a reply is made: a few milliseconds as a rule, and as long as a
        judge may take where an answer is made to keep one busy.
        """
        waiting: deque[tuple[Problem, Row]] = deque()

        def calls() -> Iterator[tuple[Any, ...]]:
            for problem in self.problems.iter_rows(Problem):
                for sample in range(self.wanted.get(problem.id, 0)):
                    row = self._open(problem, sample)
                    if row and row["turn"] == turn - 1:
                        waiting.append((problem, row))
                        yield _call(problem, row)

        with judges(self.tasks) as pool:
            for score in pool.map(calls()):
                problem, row = waiting.popleft()
                reply = None
                if isinstance(score, Score):
                    reply = load("tasks", problem.task).reply(problem, row["messages"], score)
                if reply is None:
                    self.ended += 1
                    self.journal.append({**_closed(row), "error": _unjudged(turn, score)})
                else:
                    said: Message = {"role": "user", "content": reply}
                    yield self._request(problem, row["sample"], turn, [*row["messages"], said])

    def _open(self, problem: Problem, sample: int) -> Row | None:
        return self.journal.open_row(problem.id, sample)

    def _request(
        self, problem: Problem, sample: int, turn: int, messages: list[Message]
    ) -> Request:
        seed = sample_seed(self.seed, problem.id, sample, turn)
        return Request(problem=problem, sample=sample, turn=turn, seed=seed, messages=messages)

    def take(self, made: Generation) -> None:
        """Put an answer into the journal.

        One that can't be drawn (its prompt has outgrown the context, as a rule) ends the
        conversation with the answer before it, as that stands, and ``error`` says why.
        """
        request = made.request
        if request.turn and made.finish_reason == "error":
            row = self._open(request.problem, request.sample)
            assert row is not None  # it was read to make the request
            why = f"answer {request.turn + 1} was not drawn: {made.error or 'no reason given'}"
            self.journal.append({**_closed(row), "error": why})
            return
        row = _row(made).as_row()
        if made.finish_reason == "stop" and request.turn + 1 < self.most:
            row |= {"open": True, "turn": request.turn}
        self.journal.append(row)


def _call(problem: Problem, row: Row) -> tuple[Any, ...]:
    """What a judge is called with."""
    answer = row["completion"], row["finish_reason"]
    return (problem.task, problem.answer, problem.payload, *answer, "auto")


def _unjudged(turn: int, score: Score | Failure) -> str | None:
    """Why there is no reply to answer ``turn`` (from 1), if that is not for what it says.

    Without a score's own detail: that may quote the gold answer.
    """
    if isinstance(score, Failure):
        return f"answer {turn} could not be judged: {score.kind}: {score.detail}"
    return f"answer {turn} could not be judged" if score.status == "error" else None


def _closed(row: Row) -> Row:
    return {k: v for k, v in row.items() if k not in ("open", "turn")}


def _row(made: Generation) -> Rollout:
    request = made.request
    answer: Message = {"role": "assistant", "content": made.text}
    return Rollout(
        problem_id=request.problem.id,
        sample=request.sample,
        seed=request.seed,
        messages=[*request.messages, answer],
        completion=made.text,
        finish_reason=made.finish_reason,
        prompt_tokens=made.prompt_tokens,
        completion_tokens=made.completion_tokens,
        token_ids=made.token_ids,
        logprobs=made.logprobs,
        error=made.error,
    )


class TurnFigures:
    """What turns were good for, of finished conversations in their problems' order."""

    def __init__(self, problems: Artifact, few_shot_messages: Mapping[str, int]) -> None:
        self._problems = problems
        self._shots = few_shot_messages
        self._turns: Counter[int] = Counter()
        self._right: Counter[int] = Counter()
        self._not_drawn = 0

    def along(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, each counted and its last answer judged."""
        waiting: deque[tuple[int, Row]] = deque()

        def calls() -> Iterator[tuple[Any, ...]]:
            problems = self._problems.iter_rows(Problem)
            problem = next(problems)
            for row in rows:
                while problem.id != row["problem_id"]:
                    problem = next(problems)
                said = sum(m["role"] == "assistant" for m in row["messages"])
                waiting.append((said - self._shots.get(problem.task, 0) // 2, row))
                yield _call(problem, row)

        with judges(self._shots) as pool:
            for score in pool.map(calls()):
                turns, row = waiting.popleft()
                if row["finish_reason"] != "error":
                    self._turns[turns] += 1
                    self._right[turns] += _right(score)
                    self._not_drawn += row["error"] is not None
                yield row

    def figures(self) -> dict[str, Any]:
        """``turns`` used, a count each; the share of conversations that were right after their
        first answer, and after their last; ``turns_not_drawn``, those that would have gone on if
        their prompt had fitted and their answer been judged (the column ``error`` says which)."""
        total = max(1, self._turns.total())
        return {
            "turns": {str(turns): count for turns, count in sorted(self._turns.items())},
            "correct_after_first_turn": round(self._right[1] / total, 4),
            "correct_after_last_turn": round(self._right.total() / total, 4),
            "turns_not_drawn": self._not_drawn,
        }


def _right(score: Score | Failure) -> bool:
    return isinstance(score, Score) and score.status == "correct"
