"""Each problem once, none of them held out.

Two problems are the same where their task's normal form is. The first pass over the rows sorts them
into groups by a hash of it, the second writes one of each; what is held of a row in between is
its group's number, and of a group some hashes.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from llmpipe.algo.normal import normal_form
from llmpipe.core import plugins
from llmpipe.core.artifact import Artifact
from llmpipe.core.protocols import Task
from llmpipe.core.records import Problem
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute

_COLUMNS = ["id", "task", "source", "prompt", "answer", "solution", "payload"]


@dataclass(frozen=True, kw_only=True)
class Config:
    """Nothing to set: exact duplicates after normalising."""


def run(
    config: Config,
    problems: Sequence[Path],
    out: Path,
    mode: Mode,
    against: Sequence[Path] = (),
) -> Result:
    """The rows of all of ``problems``, in order, without repeats and what is in ``against``.

    Of several rows with one problem the first with a solution is kept, else the first. Where their
    answers differ (as text, normalised like a problem) none is, unless the task's problems have
    many right ones. Hashes have 128 bits, answers' 64.

    Raises:
        UserError: a path is no artifact of problems, or a row's task isn't known.
    """
    sources = [Artifact.open(path, Problem) for path in problems]
    held_out = [Artifact.open(path, Problem) for path in against]
    inputs: dict[str, Input] = {}
    for role, artifacts in (("problems", sources), ("against", held_out)):
        for i, artifact in enumerate(artifacts, 1):
            inputs[role if len(artifacts) == 1 else f"{role} {i}"] = artifact
    spec = Spec(
        stage="dedupe",
        record=Problem,
        config=config,
        inputs=inputs,
        out=out,
        plugins=[("tasks", name) for name in plugins.names("tasks")],
    )

    def build(writer: Writer) -> None:
        groups = _Groups()
        for number, artifact in enumerate(held_out):
            for problem in _problems(artifact):
                groups.held_out.setdefault(_key(problem), number)
        total = 2 * sum(artifact.rows for artifact in sources)
        for problem in itertools.chain.from_iterable(map(_problems, sources)):
            groups.add(problem)
            if len(groups.of_row) % 1000 == 0:
                writer.progress(len(groups.of_row), total)
        _write(groups, sources, held_out, writer)
        writer.figures |= _figures(writer)

    return execute(spec, build, mode)


def _problems(artifact: Artifact) -> Iterator[Problem]:
    for batch in artifact.batches(_COLUMNS):
        for row in batch.to_pylist():
            yield Problem.from_row(row)


@functools.cache
def _task(name: str) -> Task:
    task: Task = plugins.load("tasks", name)
    return task


def _key(problem: Problem) -> bytes:
    form = _task(problem.task).normal_form(problem)
    return hashlib.blake2b(f"{problem.task}\0{form}".encode(), digest_size=16).digest()


def _answer_key(answer: str) -> int:
    digest = hashlib.blake2b(normal_form(answer).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


@dataclass(slots=True)
class _Groups:
    """Rows with the same problem. ``of_row`` has a group's number for each row, or -1 - the number
    of the held-out set that has it; the other arrays have an entry a group."""

    held_out: dict[bytes, int] = field(default_factory=dict)
    number: dict[bytes, int] = field(default_factory=dict)
    of_row: array[int] = field(default_factory=lambda: array("q"))
    kept: array[int] = field(default_factory=lambda: array("q"))  # the row that stands for it
    solved: bytearray = field(default_factory=bytearray)  # whether that row has a solution
    answer: array[int] = field(default_factory=lambda: array("Q"))
    other: dict[int, str] = field(default_factory=dict)  # a second answer, where there is one

    def add(self, problem: Problem) -> None:
        row, key = len(self.of_row), _key(problem)
        if key in self.held_out:
            self.of_row.append(-1 - self.held_out[key])
            return
        group = self.number.setdefault(key, len(self.number))
        self.of_row.append(group)
        solved, answer = bool(problem.solution), _answer_key(problem.answer)
        if group == len(self.kept):
            self.kept.append(row)
            self.solved.append(solved)
            self.answer.append(answer)
            return
        if answer != self.answer[group] and _task(problem.task).one_answer:
            self.other.setdefault(group, problem.answer)
        if solved and not self.solved[group]:
            self.kept[group], self.solved[group] = row, True


def _write(
    groups: _Groups, sources: Sequence[Artifact], held_out: Sequence[Artifact], writer: Writer
) -> None:
    starts = list(itertools.accumulate((a.rows for a in sources), initial=0))
    first_answer: dict[int, str] = {}

    def where(row: int) -> str:
        part = next(i for i in reversed(range(len(sources))) if starts[i] <= row)
        return f"row {row - starts[part] + 1} of {sources[part].path}"

    def keeps(row: int, values: Mapping[str, Any]) -> bool:
        """Whether a row stays; if not, it is rejected here."""
        group = groups.of_row[row]
        if group < 0:
            writer.reject(values["id"], "in_held_out", str(held_out[-1 - group].path))
        elif group in groups.other:
            first = first_answer.setdefault(group, values["answer"])
            against = groups.other[group] if first == values["answer"] else first
            detail = f"{values['answer']!r} here, {against!r} elsewhere"
            writer.reject(values["id"], "conflicting_answers", detail)
        elif groups.kept[group] != row:
            writer.reject(values["id"], "duplicate", f"of {where(groups.kept[group])}")
        else:
            return True
        return False

    row = 0
    for source in sources:
        for batch in source.batches(Problem.SCHEMA.names):
            shown = batch.select(["id", "answer"]).to_pylist()
            mask = [keeps(row + i, values) for i, values in enumerate(shown)]
            row += batch.num_rows
            writer.read += batch.num_rows
            writer.progress(len(groups.of_row) + row, 2 * len(groups.of_row))
            writer.add_batch(batch.filter(pa.array(mask, pa.bool_())))


def _figures(writer: Writer) -> dict[str, int | float]:
    duplicates = writer.dropped["duplicate"]
    return {
        "duplicates": duplicates,
        "duplicate_share": round(duplicates / writer.read, 4) if writer.read else 0.0,
        "conflicts": writer.dropped["conflicting_answers"],
        "contaminated": writer.dropped["in_held_out"],
    }
