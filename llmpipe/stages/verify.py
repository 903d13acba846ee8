"""Judge rollouts: verdicts, and the rewards that follow from them."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from llmpipe.algo.extract import after_thinking, find_boxes
from llmpipe.core import plugins
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.pool import Failure
from llmpipe.core.records import Problem, Rewards, Rollout, Score, Status, Verdict
from llmpipe.core.run import Mode, Result, Spec, Writer, execute
from llmpipe.tasks import judges
from llmpipe.verifiers import LIBRARIES

_COLUMNS = ["problem_id", "sample", "completion", "finish_reason", "error"]
_ERROR_SHARE = 0.01  # above it the result wants a look

_OUTCOMES: Mapping[Status, float | None] = {
    "correct": 1.0,
    "wrong": 0.0,
    "no_answer": 0.0,
    "truncated": 0.0,
    "error": None,
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """How the answer is looked for (any way there is, or in boxes only), and mazes are judged."""

    extract: Literal["auto", "boxed"] = "auto"
    maze_rules: Literal["strict", "passk"] = "strict"


def run(
    config: Config, rollouts: Path, out: Path, mode: Mode, problems: Path | None = None
) -> Result:
    """A verdict a rollout, in the rollouts' order.

    The problems are found through the rollouts' lineage, or given. A rollout whose sampling failed,
    and one whose verification fails or is killed, has status error: that is not wrong.
    ``rewards.outcome`` is 1 for correct, none for error, else 0. ``rewards.format`` is 1 if the
    response ended by itself and has exactly one closed box after its thinking, else 0.

    Raises:
        UserError: the problems can't be found, or lack one that was answered.
    """
    if config.extract not in ("auto", "boxed"):
        raise UserError(f"--extract {config.extract} is unknown", "--extract auto, or boxed")
    if config.maze_rules not in ("strict", "passk"):
        raise UserError(
            f"--maze-rules {config.maze_rules} are unknown", "--maze-rules strict, or passk"
        )
    answered = Artifact.open(rollouts, Rollout)
    asked = answered.upstream(Problem, problems)
    golds = _golds(asked)
    tasks = sorted({task for task, _, _ in golds.values()})
    for task in tasks:
        plugins.load("tasks", task)
    spec = Spec(
        stage="verify",
        record=Verdict,
        config=config,
        inputs={"rollouts": answered, "problems": asked},
        out=out,
        # The rules stand in their tasks' and verifiers' files. What these call (algo/) is not
        # hashed: a change there that changes verdicts puts `version` up.
        version=1,
        plugins=[(room, task) for task in tasks for room in ("tasks", "verifiers")],
        pinned=LIBRARIES,
    )

    def build(writer: Writer) -> None:
        _judge(config, answered, golds, tasks, writer)
        writer.figures["problems"] = len(golds)

    return execute(spec, build, mode)


Gold = tuple[str, str, str]  # task, answer, payload


def _golds(asked: Artifact) -> dict[str, Gold]:
    return {
        row["id"]: (row["task"], row["answer"], row["payload"])
        for batch in asked.batches(["id", "task", "answer", "payload"])
        for row in batch.to_pylist()
    }


@dataclass(slots=True)
class _Waiting:
    """A rollout on its way; ``score`` is set where there is nothing to judge."""

    problem_id: str
    sample: int
    format: float | None = None
    score: Score | None = None


def _judge(
    config: Config, answered: Artifact, golds: Mapping[str, Gold], tasks: list[str], writer: Writer
) -> None:
    # In the rollouts' order. Once flushed, its head is the next rollout to be judged.
    waiting: deque[_Waiting] = deque()
    statuses: Counter[str] = Counter()
    began = time.monotonic()

    def calls() -> Iterator[tuple[Any, ...]]:
        for row in _rows(answered):
            gold = golds.get(row["problem_id"])
            if gold is None:
                raise UserError(
                    f"{answered.path} answers problem {row['problem_id']}, which isn't there",
                    f"llmpipe verify {answered.path} --problems DIR names the right problems",
                )
            writer.read += 1
            entry = _Waiting(row["problem_id"], row["sample"])
            waiting.append(entry)
            text, finish = row["completion"], row["finish_reason"]
            if finish == "error":
                detail = f"not sampled: {row['error'] or 'no reason given'}"
                entry.score = Score(status="error", extracted=None, detail=detail)
                flush()
                continue
            entry.format = _format_reward(text, finish)
            yield *gold, text, finish, config.extract, config.maze_rules

    def flush() -> None:
        """Write what is ready at the head of the queue."""
        while waiting and (score := waiting[0].score):
            entry = waiting.popleft()
            statuses[score.status] += 1
            writer.add(_verdict(entry, score))
            done = statuses.total()
            if done % 100 == 0:
                writer.progress(done, answered.rows, correct=statuses["correct"])

    with judges(tasks) as pool:
        for result in pool.map(calls()):
            waiting[0].score = _score(result)
            flush()
    done = max(1, statuses.total())
    writer.figures |= {s: round(statuses[s] / done, 4) for s in _OUTCOMES}
    writer.figures["rollouts_per_second"] = round(done / max(1e-9, time.monotonic() - began), 1)
    if statuses["error"] > _ERROR_SHARE * done:
        writer.attention = (
            f"{statuses['error']} of {done} rollouts could not be judged (status error)"
        )


def _verdict(entry: _Waiting, score: Score) -> Verdict:
    return Verdict(
        problem_id=entry.problem_id,
        sample=entry.sample,
        status=score.status,
        extracted=score.extracted,
        detail=score.detail,
        optimal=score.optimal,
        rewards=Rewards(outcome=_OUTCOMES[score.status], format=entry.format),
    )


def _rows(answered: Artifact) -> Iterator[dict[str, Any]]:
    for batch in answered.batches(_COLUMNS):
        yield from batch.to_pylist()


def _score(result: Score | Failure) -> Score:
    if isinstance(result, Failure):
        detail = f"{result.kind}: {result.detail}"
        return Score(status="error", extracted=None, detail=detail)
    return result


def _format_reward(completion: str, finish_reason: str) -> float:
    boxes = find_boxes(after_thinking(completion))
    good = finish_reason == "stop" and boxes.closed == 1 and not boxes.open
    return 1.0 if good else 0.0
