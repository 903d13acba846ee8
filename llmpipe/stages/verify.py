"""Judge rollouts: verdicts, the rewards that follow from them, and advantages in their groups.

Verdicts are put on disk as they come. What a response is worth among the others to its problem is
known once all are judged, so it is filled in as they are copied to their place; until then a few
numbers of each are held.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from llmpipe.algo.actions import action_rates
from llmpipe.algo.rewards import THINK, outcome, well_formed
from llmpipe.algo.samples import Samples
from llmpipe.core import plugins
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.pool import Failure, WorkerPool
from llmpipe.core.records import FinishReason, Problem, Rewards, Rollout, Score, Verdict, to_batch
from llmpipe.core.run import Mode, Result, Spec, Writer, execute
from llmpipe.core.tables import ShardWriter, read_batches
from llmpipe.tasks import judges
from llmpipe.verifiers import LIBRARIES

_COLUMNS = [
    "problem_id",
    "sample",
    "messages",
    "completion",
    "finish_reason",
    "completion_tokens",
    "error",
]
_ERROR_SHARE = 0.01  # above it the result wants a look
_STATUSES = ("correct", "wrong", "no_answer", "truncated", "error")


@dataclass(frozen=True, kw_only=True)
class Config:
    """How the answer is looked for: any way there is, or in boxes only; and how mazes are judged.

    ``adv_k`` is the k of ``advantages.passk``. ``engine`` is where the judges run: on this machine,
    or on all of a Ray cluster.
    """

    extract: Literal["auto", "boxed"] = "auto"
    maze_rules: Literal["strict", "passk"] = "strict"
    adv_k: int = 4
    engine: Literal["local", "ray"] = field(default="local", metadata={"fingerprint": False})


def run(
    config: Config, rollouts: Path, out: Path, mode: Mode, problems: Path | None = None
) -> Result:
    """A verdict a rollout, in the rollouts' order.

    The problems are found through the rollouts' lineage, or given. A rollout whose sampling failed,
    and one whose verification fails or is killed, has status error: that is not wrong.
    `llmpipe.algo.rewards` and `llmpipe.algo.actions` say what the rewards are (none where sampling
    failed; no outcome for an error), `llmpipe.algo.advantages` what the advantages are. Lengths are
    in tokens, or in characters for all of a problem's rollouts where one has no count. Errors are
    left out of their group and have no advantages; ``passk`` is null in groups of fewer than
    ``config.adv_k``: the figure ``under_adv_k`` counts such problems.

    Raises:
        UserError: the problems can't be found, or lack one that was answered; or an option is
            something else.
    """
    if config.extract not in ("auto", "boxed"):
        raise UserError(f"--extract {config.extract} is unknown", "--extract auto, or boxed")
    if config.maze_rules not in ("strict", "passk"):
        raise UserError(
            f"--maze-rules {config.maze_rules} are unknown", "--maze-rules strict, or passk"
        )
    if config.engine not in ("local", "ray"):
        raise UserError(f"--engine {config.engine} judges nothing", "--engine local, or ray")
    if config.adv_k < 1:
        raise UserError(f"--adv-k is {config.adv_k}, but must be at least 1", "--adv-k 4")
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
        version=4,
        plugins=[(room, task) for task in tasks for room in ("tasks", "verifiers")],
        pinned=LIBRARIES,
    )

    def build(writer: Writer) -> None:
        spool = writer.partial / "judged"
        shutil.rmtree(spool, ignore_errors=True)  # of a run that was killed
        try:
            samples, files = _judge(config, answered, golds, tasks, spool, writer)
            _fill_in(samples, files, config.adv_k, writer)
        finally:
            shutil.rmtree(spool, ignore_errors=True)
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
    finish: FinishReason
    tokens: int
    characters: int
    format: float | None = None
    action: float | None = None
    score: Score | None = None


def _judge(
    config: Config,
    answered: Artifact,
    golds: Mapping[str, Gold],
    tasks: list[str],
    spool: Path,
    writer: Writer,
) -> tuple[Samples, list[Path]]:
    """Judge all rollouts: the verdicts, without what depends on their groups, go to files."""
    # In the rollouts' order. Once flushed, its head is the next rollout to be judged.
    waiting: deque[_Waiting] = deque()
    samples = Samples()
    statuses: Counter[str] = Counter()
    began = time.monotonic()
    judged = ShardWriter(spool, Verdict.SCHEMA)
    verdicts: list[Verdict] = []

    def calls() -> Iterator[tuple[Any, ...]]:
        for row, asks_thinking in _rows(answered):
            gold = golds.get(row["problem_id"])
            if gold is None:
                raise UserError(
                    f"{answered.path} answers problem {row['problem_id']}, which isn't there",
                    f"llmpipe verify {answered.path} --problems DIR names the right problems",
                )
            writer.read += 1
            text, finish = row["completion"], row["finish_reason"]
            entry = _Waiting(
                problem_id=row["problem_id"],
                sample=row["sample"],
                finish=finish,
                tokens=row["completion_tokens"],
                characters=len(text),
            )
            waiting.append(entry)
            if finish == "error":
                detail = f"not sampled: {row['error'] or 'no reason given'}"
                entry.score = Score(status="error", extracted=None, detail=detail)
                flush()
                continue
            entry.format = well_formed(text, finish_reason=finish, asks_thinking=asks_thinking)
            entry.action = action_rates(text).any
            yield *gold, text, finish, config.extract, config.maze_rules

    def flush() -> None:
        """Write what is ready at the head of the queue."""
        while waiting and (score := waiting[0].score):
            entry = waiting.popleft()
            samples.add(
                entry.problem_id,
                score.status,
                entry.finish,
                tokens=entry.tokens,
                characters=entry.characters,
            )
            statuses[score.status] += 1
            verdicts.append(_verdict(entry, score))
            if len(verdicts) >= 1024:
                write()
            done = statuses.total()
            if done % 100 == 0:
                writer.progress(done, answered.rows, correct=statuses["correct"])

    def write() -> None:
        judged.write(to_batch(Verdict, verdicts))
        verdicts.clear()

    try:
        with _judges(config, tasks) as pool:
            for result in pool.map(calls()):
                waiting[0].score = _score(result)
                flush()
        write()
        files = judged.close()
    except BaseException:
        judged.abandon()
        raise
    done = max(1, statuses.total())
    writer.figures |= {s: round(statuses[s] / done, 4) for s in _STATUSES}
    writer.figures["rollouts_per_second"] = round(done / max(1e-9, time.monotonic() - began), 1)
    if statuses["error"] > _ERROR_SHARE * done:
        writer.attention = (
            f"{statuses['error']} of {done} rollouts could not be judged (status error)"
        )
    return samples, files


def _judges(config: Config, tasks: list[str]) -> WorkerPool:
    if config.engine == "local":
        return judges(tasks)
    pool: WorkerPool = plugins.load("engines", config.engine).pool("llmpipe.tasks:judges", (tasks,))
    return pool


def _verdict(entry: _Waiting, score: Score) -> Verdict:
    return Verdict(
        problem_id=entry.problem_id,
        sample=entry.sample,
        status=score.status,
        extracted=score.extracted,
        detail=score.detail,
        optimal=score.optimal,
        rewards=Rewards(outcome=outcome(score.status), format=entry.format, action=entry.action),
    )


def _rows(answered: Artifact) -> Iterator[tuple[dict[str, Any], bool]]:
    """Each rollout, and whether its prompt asks for tagged thinking."""
    for batch in answered.batches(_COLUMNS, batch_size=256):
        asking = _asking(batch.column("messages"))
        yield from zip(batch.drop_columns(["messages"]).to_pylist(), asking, strict=True)


def _asking(chats: pa.ListArray) -> list[bool]:
    """Whether a message in each chat, other than the model's own, names the tag."""
    said = chats.flatten()
    names_it = pc.and_(
        pc.not_equal(said.field("role"), "assistant"),
        pc.match_substring(said.field("content"), THINK),
    )
    asking = [False] * len(chats)
    for number in pc.list_parent_indices(chats).filter(names_it).to_pylist():
        asking[number] = True
    return asking


def _score(result: Score | Failure) -> Score:
    if isinstance(result, Failure):
        detail = f"{result.kind}: {result.detail}"
        return Score(status="error", extracted=None, detail=detail)
    return result


def _fill_in(samples: Samples, files: list[Path], k: int, writer: Writer) -> None:
    """Copy the verdicts to their place, with what they are worth in their groups."""
    length = samples.length_rewards()
    pass1, passk = samples.advantages(1), samples.advantages(k)
    writer.figures["under_adv_k"] = samples.problems(~np.isnan(pass1) & np.isnan(passk))
    start = 0
    for batch in read_batches(files):
        here = slice(start, start + batch.num_rows)
        start += batch.num_rows
        rewards = batch.column("rewards").flatten()
        rewards[2] = _floats(length[here])
        advantages = pa.StructArray.from_arrays(
            [_floats(pass1[here]), _floats(passk[here])],
            names=["pass1", "passk"],
            mask=pa.array(np.isnan(pass1[here])),
        )
        columns = batch.to_struct_array().flatten()
        names = Verdict.SCHEMA.names
        columns[names.index("rewards")] = pa.StructArray.from_arrays(
            rewards, names=["outcome", "format", "length", "action"]
        )
        columns[names.index("advantages")] = advantages
        writer.add_batch(pa.RecordBatch.from_arrays(columns, schema=Verdict.SCHEMA))


def _floats(values: NDArray[np.float64]) -> pa.Array:
    """As a column, NaN as null."""
    return pa.array(values.astype(np.float32), from_pandas=True)
