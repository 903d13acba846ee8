"""Take in answers that another tool sampled: problems and rollouts, as if sampled here.

The file is read twice, row by row, so that no text is held: for problems, then for rollouts.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from llmpipe.algo.cells import is_grid
from llmpipe.algo.generations import SIDE_COLUMNS, Taken, take
from llmpipe.algo.layouts import Keys, find_keys
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Message, Problem, Rollout, problem_id
from llmpipe.core.run import Mode, Result, Spec, Writer, check_out, execute
from llmpipe.core.sources import Source, open_source

log = logging.getLogger(__name__)

_MOST_REJECTS = 0.01  # share of rows, above which the result wants a look
_REPEATED = "other_filter"  # responses that come again by the layout: nothing is lost
_CHECK_EVERY = 1000  # rows between two words on progress


@dataclass(frozen=True, kw_only=True)
class Config:
    """Keys as in `llmpipe.algo.generations`; those that are None go by the file's layout."""

    answer_key: str | None = None
    response_key: str | None = None
    prompt_key: str | None = None


def run(
    config: Config, source: Path, out: Path, mode: Mode, *, stage: str = "verify"
) -> list[Result]:
    """Problems at ``out/problems`` and their rollouts at ``out/rollouts``.

    ``out`` itself is left to ``stage``, and must be a folder that it can make.

    Rows with the same prompt are samples of one problem, in their order. Where the file has no
    prompts, each row is a problem of its own, with an empty one. A gold answer that is a maze's
    grid makes a maze problem, any other a math problem. A row's finish reason is taken where it has
    one, and is "stop" otherwise; a null in a list of responses is a sample with finish reason
    "error". Rows that can't be judged are rejected by the rollouts.

    Returns:
        One result for each artifact; a dry run stops at the first that is to be made.

    Raises:
        UserError: the file can't be read, has no rows, or lacks a column, or ``out`` is another's.
    """
    check_out(out, stage, force=mode.force)
    file = open_source(source)
    keys = _keys(config, file)
    if keys.name != "rows":
        log.info("%s has the layout of %s", source, keys.name)
    asked = out / "problems"
    made = execute(
        Spec(
            stage="verify",
            record=Problem,
            config=config,
            inputs={"generations": source},
            out=asked,
            version=2,
        ),
        lambda writer: _write_problems(file, keys, writer),
        mode,
    )
    if made.plan:
        return [made]
    problems = Artifact.open(asked, Problem)
    sampled = execute(
        Spec(
            stage="verify",
            record=Rollout,
            config=config,
            inputs={"generations": source, "problems": problems},
            out=out / "rollouts",
        ),
        lambda writer: _write_rollouts(file, keys, problems, writer),
        mode,
    )
    return [made, sampled]


def _keys(config: Config, file: Source) -> Keys:
    if not file.columns:
        raise UserError(f"{file.path} has no rows", "check the file")
    try:
        return find_keys(
            file.columns,
            answer=config.answer_key,
            response=config.response_key,
            prompt=config.prompt_key,
        )
    except KeyError as e:
        what = e.args[0]
        given = config.answer_key if what == "answer" else config.response_key
        wanted = f"no column {given!r}" if given else f"no column with a usual {what} name"
        raise UserError(
            f"{file.path} has {wanted}",
            f"say which it is: --{what}-key {'|'.join(file.columns)}",
        ) from None


Answered = tuple[Problem, Taken]


def _write_problems(file: Source, keys: Keys, writer: Writer) -> None:
    seen: set[str] = set()
    for _, made in _rows(file, keys, writer):
        if isinstance(made, Drop) or made[0].id in seen:
            continue
        seen.add(made[0].id)
        writer.read += 1
        writer.add(made[0])
    writer.details["layout"] = keys.name


def _write_rollouts(file: Source, keys: Keys, problems: Artifact, writer: Writer) -> None:
    golds = {
        row["id"]: _digest(row["answer"], row["payload"])
        for batch in problems.batches(["id", "answer", "payload"])
        for row in batch.to_pylist()
    }
    samples = dict.fromkeys(golds, 0)
    filters: dict[str, str] = {}
    for number, made in _rows(file, keys, writer):
        writer.read += 1
        drop = made if isinstance(made, Drop) else _misfit(*made, golds, filters)
        if drop:
            writer.reject(f"row {number}", drop.reason, drop.detail)
        elif not isinstance(made, Drop):
            problem, row = made
            for rollout in _rollouts(problem.id, row, samples[problem.id]):
                writer.add(rollout)
            samples[problem.id] += len(row.samples)
    writer.figures["problems"] = len(golds)
    writer.details["layout"] = keys.name
    unusable = writer.dropped.total() - writer.dropped[_REPEATED]
    if writer.kept and unusable > _MOST_REJECTS * writer.read:
        writer.attention = (
            f"{unusable} of {writer.read} rows can't be judged (rejects.parquet says why)"
        )


def _misfit(
    problem: Problem, row: Taken, golds: Mapping[str, bytes], filters: dict[str, str]
) -> Drop | None:
    """Why a row can't be judged beside the rows before it."""
    if _digest(problem.answer, problem.payload) != golds[problem.id]:
        return Drop(
            reason="other_answer", detail=f"{problem.answer:.100}: problem {problem.id} has another"
        )
    if row.filter and (first := filters.setdefault(problem.id, row.filter)) != row.filter:
        return Drop(reason=_REPEATED, detail=f"{row.filter}: taken from {first}")
    return None


def _rollouts(problem: str, row: Taken, first: int) -> Iterator[Rollout]:
    for number, sample in enumerate(row.samples, first):
        answer: Message = {"role": "assistant", "content": sample.text}
        yield Rollout(
            problem_id=problem,
            sample=number,
            seed=0,
            messages=[*row.messages, answer],
            completion=sample.text,
            finish_reason=sample.finish_reason,
            prompt_tokens=0,
            completion_tokens=sample.tokens,
            error=sample.error,
        )


def _rows(file: Source, keys: Keys, writer: Writer) -> Iterator[tuple[int, Answered | Drop]]:
    """Each row's number, from 1, and what it makes or why it makes nothing."""
    have = set(file.columns)
    wanted = [k if k in have else k.partition(".")[0] for k in keys.columns]
    columns = list(dict.fromkeys(c for c in [*wanted, *SIDE_COLUMNS] if c in have))
    name = file.path.name.partition(".")[0]
    number = 0
    for number, row in enumerate(file.read(columns), 1):
        if number % _CHECK_EVERY == 0:
            writer.progress(number, None)
        taken = take(row, keys)
        if isinstance(taken, Drop):
            yield number, taken
            continue
        problem = _problem(taken, name, number)
        yield number, problem if isinstance(problem, Drop) else (problem, taken)
    if not number:
        raise UserError(f"{file.path} has no rows", "check the file")


def _problem(row: Taken, source: str, number: int) -> Problem | Drop:
    task, answer, payload, level = "math", row.answer.strip(), "{}", row.level
    if is_grid(row.answer):
        from llmpipe.algo.mazes import solve

        task, payload = "maze", json.dumps({"maze": row.answer}, sort_keys=True)
        try:
            solved = solve(row.answer)
        except ValueError as e:
            return Drop(reason="malformed", detail=str(e))
        answer = solved.path
        level = f"{len(solved.maze.rows)}x{len(solved.maze.rows[0])}"  # as all mazes have it
    return Problem(
        id=problem_id(task, row.prompt if row.messages else f"{source} row {number}"),
        task=task,
        source=source,
        prompt=row.prompt,
        answer=answer,
        level=level,
        subject=row.subject,
        payload=payload,
    )


def _digest(answer: str, payload: str) -> bytes:
    return hashlib.blake2b(f"{answer}\0{payload}".encode(), digest_size=8).digest()
