"""Rollouts as conversations, and what else was answered to their problems put before or beside."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from llmpipe.algo.attempts import Attempt, Attempts
from llmpipe.algo.chains import (
    MEASURES,
    Hardness,
    Link,
    Spool,
    chains,
    hardness,
    joined,
    measures,
)
from llmpipe.algo.conversations import batched, fault, samples, with_loss, with_system
from llmpipe.algo.mastered import Sampled
from llmpipe.algo.transcripts import split_system, without_examples
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Conversation, Message, Problem, Score
from llmpipe.core.row_groups import RowGroups
from llmpipe.core.writer import Writer

log = logging.getLogger(__name__)

_BATCH = 1024  # answers held at a time

Reply = Callable[[Problem, Sequence[Message], Score], str | None]


class Asked(NamedTuple):
    """What is held of a problem; ``row`` finds the rest."""

    row: int
    task: str
    source: str
    hardness: Hardness


class Made(NamedTuple):
    """A conversation on its way: what it is of, which sample, and how that was drawn."""

    conversation: Conversation
    problem: Asked | None = None
    sample: int = 0
    sampled: Sampled | None = None


def read_problems(problems: Artifact) -> dict[str, Asked]:
    """What is to be known of each problem, by its id."""
    columns = ["id", "task", "source", "difficulty", "pass_rate", "level"]
    found: dict[str, Asked] = {}
    for batch in problems.batches(columns):
        for name, task, source, *measured in zip(
            *(c.to_pylist() for c in batch.columns), strict=True
        ):
            found[name] = Asked(len(found), task, source, hardness(*measured))
    return found


def with_pass_rates(problems: Mapping[str, Asked], attempts: Attempts) -> dict[str, Asked]:
    """Problems as hard as they were found to be: the share of their answers that is wrong."""
    return {
        name: asked._replace(hardness=hardness(None, attempts.pass_rate(name), None))
        for name, asked in problems.items()
    }


def sound(conversation: Conversation, writer: Writer, *, examples: int = 0) -> bool:
    """Whether a conversation can be trained on; it is rejected otherwise."""
    drop = fault(conversation.messages, examples=examples)
    if drop:
        writer.reject(conversation.id, drop.reason, drop.detail)
    return drop is None


class SampledChats:
    """Rollouts of problems as conversations.

    They go without the prompt's worked examples, or with them and without loss on them;
    ``logprobs`` says that their tokens are needed, too.
    """

    def __init__(
        self,
        rollouts: Artifact,
        asked: Artifact,
        problems: Mapping[str, Asked],
        writer: Writer,
        *,
        system: str | None = None,
        keep_few_shot: bool = False,
        logprobs: bool = False,
    ) -> None:
        self._rollouts = rollouts
        self._asked = asked
        self._problems = problems
        self._writer = writer
        self._system = system
        self._keep_few_shot = keep_few_shot
        self._logprobs = logprobs
        self._shots: Mapping[str, int] = rollouts.manifest.details.get("few_shot_messages", {})

    def all(self) -> Iterator[Made]:
        """A conversation for each rollout, with loss on all of its answers.

        Raises:
            UserError: a rollout's problem isn't there.
        """
        several = 0
        columns = ["problem_id", "sample", "messages"]
        columns += ["prompt_tokens", "token_ids", "logprobs"] if self._logprobs else []
        for batch in self._rollouts.batches(columns, batch_size=_BATCH):
            for row in batch.to_pylist():
                self._writer.read += 1
                name = row["problem_id"]
                problem = self._problem(name)
                conversation = self._conversation(f"{name}-{row['sample']}", name, row["messages"])
                if conversation is None:
                    continue
                if self._logprobs and not row["logprobs"]:
                    self._writer.reject(conversation.id, "no_logprobs")
                    continue
                several += _answers(conversation) > 1
                yield Made(conversation, problem, row["sample"], self._sampled(row))
            self._writer.progress(self._writer.read, self._rollouts.rows)
        if several:
            self._writer.figures["several_answers"] = several

    def retries(self, attempts: Attempts, reply: Reply) -> Iterator[Made]:
        """Right answers after a wrong one to the same problem and what ``reply`` says to that.

        Those with several answers have their wrong ones already. Loss is on the last turn.
        """
        numbers: Counter[str] = Counter()  # of right answers to a problem so far
        retries = 0
        problems = RowGroups([self._asked])
        for batch in batched(self._right(attempts), _BATCH):
            asked, wanted = [], []
            for made in batch:
                name = made.conversation.problem_id or ""
                asked.append(self._problem(name).row)
                wanted.append((name, numbers[name]))
                numbers[name] += 1
            rows = problems.take(asked, Problem.SCHEMA.names)
            for made, row, attempt in zip(batch, asked, attempts.wrong(wanted), strict=True):
                if _answers(made.conversation) > 1:
                    yield _last(made, made.conversation)
                elif attempt is None:
                    self._writer.reject(made.conversation.id, "no_wrong_answer")
                else:
                    problem = Problem.from_row(rows[row])
                    retry = self._retry(made.conversation, problem, attempt, reply)
                    if retry:
                        retries += 1
                        yield _last(made, retry)
        self._writer.figures["retries"] = retries

    def gold(self, attempts: Attempts) -> Iterator[Made]:
        """The solutions of problems that were answered, never rightly, as answers to the prompt."""
        made = 0
        unsolved = attempts.unsolved
        problems = (p for p in self._asked.iter_rows(Problem) if p.id in unsolved)
        for batch in batched(problems, _BATCH):
            transcripts = attempts.transcripts([unsolved[p.id] for p in batch])
            for problem, transcript in zip(batch, transcripts, strict=True):
                self._writer.read += 1
                name = f"{problem.id}-gold"
                if not (problem.solution or "").strip():
                    self._writer.reject(name, "no_solution")
                    continue
                system, turns = split_system(transcript)
                prompt = turns[: self._shots.get(problem.task, 0) + 1]
                answer: Message = {"role": "assistant", "content": problem.solution or ""}
                conversation = self._conversation(name, problem.id, [*system, *prompt, answer])
                if conversation:
                    made += 1
                    yield Made(conversation, self._problem(problem.id))
        self._writer.figures["gold"] = made

    def _right(self, attempts: Attempts) -> Iterator[Made]:
        for made in self.all():
            if not attempts.knows(made.conversation.problem_id or ""):
                raise UserError(
                    f"the verdicts say nothing of {made.conversation.id} of {self._rollouts.path}",
                    "give those that it was selected by: --verdicts DIR",
                )
            if attempts.is_right(made.conversation.problem_id or "", made.sample):
                yield made
            else:
                self._writer.reject(made.conversation.id, "not_right")

    def _retry(
        self, right: Conversation, problem: Problem, attempt: Attempt, reply: Reply
    ) -> Conversation | None:
        name = f"{right.id}-r{attempt.sample}"
        said = reply(problem, attempt.messages, attempt.score)
        if not said:
            self._writer.reject(name, "no_feedback", attempt.score.detail)
            return None
        feedback: Message = {"role": "user", "content": said}
        return self._conversation(
            name, problem.id, [*attempt.messages, feedback, right.messages[-1]]
        )

    def _problem(self, name: str) -> Asked:
        try:
            return self._problems[name]
        except KeyError:
            raise UserError(
                f"{self._asked.path} has no problem {name} of {self._rollouts.path}",
                "give the problems that were sampled: --problems DIR",
            ) from None

    def _conversation(
        self, name: str, problem: str, messages: Sequence[Message]
    ) -> Conversation | None:
        """A transcript with loss on its answers; None where it is rejected."""
        asked = self._problem(problem)
        examples = self._shots.get(asked.task, 0)
        if not self._keep_few_shot:
            messages, examples = without_examples(messages, examples), 0
        conversation = Conversation(
            id=name,
            problem_id=problem,
            source=asked.source,
            messages=with_system(with_loss(messages, examples=examples), self._system),
        )
        return conversation if sound(conversation, self._writer, examples=examples) else None

    def _sampled(self, row: Mapping[str, Any]) -> Sampled | None:
        if not self._logprobs:
            return None
        return Sampled(**{key: row[key] for key in ("prompt_tokens", "token_ids", "logprobs")})


def chained(made: Iterable[Made], length: int, seed: int, writer: Writer) -> Iterator[Made]:
    """Conversations joined to chains of ``length`` problems, see `llmpipe.algo.chains`.

    Raises:
        UserError: nothing says how hard the problems are.
    """
    with contextlib.closing(Spool(writer.partial)) as spool:
        links = []
        for one in made:
            system, _ = split_system(one.conversation.messages)
            assert one.problem
            links.append(
                Link(
                    spool.add(one.conversation),
                    one.conversation.problem_id or "",
                    one.problem.task,
                    system[0]["content"] if system else "",
                    one.problem.hardness,
                )
            )
        by = measures(links)
        if links and not by:
            raise UserError(
                "no problem says how hard it is, by difficulty, pass rate or a number in its level",
                "llmpipe filter PROBLEMS -o OUT --verdicts DIR measures pass rates",
            )
        single = 0
        for numbers in chains(links, length, seed):
            single += len(numbers) == 1
            yield Made(joined([spool.get(number) for number in numbers]))
        if single == len(links) > 0:
            log.warning(
                "too few conversations share a task and a system message for a chain of %d: all "
                "%d are alone",
                length,
                single,
            )
        writer.figures |= {"single": single, "ordered_by": {t: MEASURES[i] for t, i in by.items()}}


def _answers(conversation: Conversation) -> int:
    return sum(m["train"] for m in conversation.messages)


def _last(made: Made, conversation: Conversation) -> Made:
    return made._replace(conversation=samples(conversation, "last")[0])
