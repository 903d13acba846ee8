"""Each problem once, none of them held out.

Two problems are the same where their task's normal form is (the exact tier) or, of tasks in prose,
where they have the same numbers and signs and say the same in other words (the near tier, see
`llmpipe.algo.near`). The rows are read several times: worker processes make some hashes of each,
equal ones are found in numpy, the texts of rows that may be alike are compared, and what is left is
written. What is held of a row in between is 50 bytes.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from llmpipe.algo.gaps import Change, Gaps
from llmpipe.algo.groups import Ints, best_rows, number_groups, runs
from llmpipe.algo.held_out import TIERS, HeldOut
from llmpipe.algo.near import THRESHOLD
from llmpipe.algo.view import view
from llmpipe.core import plugins
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem
from llmpipe.core.row_groups import RowGroups
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute
from llmpipe.tasks import _likeness as likeness
from llmpipe.tasks import same_answers
from llmpipe.tasks._hands import Hands
from llmpipe.tasks._listing import HITS, LISTED, MERGES, Listing, Texts
from llmpipe.verifiers import LIBRARIES

__all__ = ["HITS", "MERGES", "Config", "run"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Config:
    """What counts as the same.

    ``threshold`` is the share of words, stop words aside, that two wordings must have in common.
    ``keep_conflicts`` keeps one row of a problem with several answers, ``drop_templates`` drops
    what differs from a held-out problem in its numbers only.
    """

    near: bool = True
    threshold: float = THRESHOLD
    keep_conflicts: bool = False
    drop_templates: bool = False


def run(
    config: Config,
    problems: Sequence[Path],
    out: Path,
    mode: Mode,
    against: Sequence[Path] = (),
) -> Result:
    """The rows of all of ``problems``, in order, without repeats and what is in ``against``.

    Of several rows with one problem that with an answer and a solution is kept, else with an
    answer, and of those the first. Where their answers differ (by the task's own judgement) none
    is, unless the task's problems have many right ones. ``merges.parquet`` lists the
    duplicates with both texts, and pairs that would be near ones but for their answers;
    ``hits.parquet`` what was found of ``against``. Hashes have 128 bits, answers' 64.

    Raises:
        UserError: a path is no artifact of problems, a row's task isn't known, or the threshold is
            no share.
    """
    if not 0 < config.threshold <= 1:
        raise UserError(f"--threshold {config.threshold:g} is no share", "--threshold 0.6")
    sources = [Artifact.open(path, Problem) for path in problems]
    held_out = [Artifact.open(path, Problem) for path in against]
    inputs: dict[str, Input] = {}
    for role, artifacts in (("problems", sources), ("against", held_out)):
        for i, artifact in enumerate(artifacts, 1):
            inputs[role if len(artifacts) == 1 else f"{role} {i}"] = artifact
    spec = Spec(
        stage="dedupe",
        version=3,
        record=Problem,
        config=config,
        inputs=inputs,
        out=out,
        plugins=[("tasks", name) for name in plugins.names("tasks")],
        pinned=LIBRARIES,
    )

    def build(writer: Writer) -> None:
        _Dedupe(config, RowGroups(sources), held_out, writer).run()

    return execute(spec, build, mode)


EXACT, CONFLICT, NEAR, HELD, NEAR_HELD, TEMPLATE, COPY_HELD = range(1, 8)
_REASONS = {
    EXACT: "duplicate",
    CONFLICT: "conflicting_answers",
    NEAR: "near_duplicate",
    HELD: "in_held_out",
    NEAR_HELD: "near_held_out",
    TEMPLATE: "held_out_template",
    COPY_HELD: "near_held_out",  # a copy of what is NEAR_HELD
}


class _Dedupe:
    """One run. ``fate`` has a row's reason to go (0: it stays), ``of`` the row or the held-out
    problem on whose account."""

    def __init__(
        self, config: Config, rows: RowGroups, held_out: Sequence[Artifact], writer: Writer
    ) -> None:
        self.config = config
        self.rows = rows
        self.writer = writer
        self.held = [
            {**row, "held_out": str(artifact.path)}
            for artifact in held_out
            for batch in artifact.batches(["id", "task", "prompt", "answer", "payload"])
            for row in batch.to_pylist()
        ]
        self.sources: dict[str, int] = {}  # their numbers in ``prints``
        self.prints: NDArray[Any] = np.empty(rows.rows, likeness.ROW)
        self.fate = np.zeros(rows.rows, np.int8)
        self.of: Ints = np.arange(rows.rows)
        self.answers: dict[int, tuple[str, str]] = {}  # of groups in conflict: two of them
        self.conflicts = self.near_conflicts = self.near_skipped = self.near_uncompared = 0
        self.listing = Listing(rows, self.held, writer, against=bool(held_out))

    def run(self) -> None:
        with Hands(self.rows, self.writer.partial) as hands:
            self._read(hands)
            self._group()
            if self.config.near:
                self._near(hands)
        self._follow()
        hits = np.flatnonzero(self.prints["tier"])
        self.listing.hits(hits, self.prints["tier"][hits], self.prints["held"][hits])
        copies = np.flatnonzero(np.isin(self.fate, (EXACT, COPY_HELD)))
        self.listing.copies(copies, self.of[copies], self.prints["low"])
        self._write()

    def _read(self, hands: Hands) -> None:
        """Fill ``prints``."""
        index = None
        if self.held:
            asked = ("task", "prompt", "answer", "payload")
            forms = [likeness.form_of(*(row[name] for name in asked)) for row in self.held]
            prose = [likeness.task_of(row["task"]).prose for row in self.held]
            index = HeldOut(forms, prose)
            keys = [
                likeness.near_key(row["task"], view(form)) if said else 0
                for row, form, said in zip(self.held, forms, prose, strict=True)
            ]
            self.held_keys = np.array(keys, np.uint64)
        for group, part, names in hands.fingerprints(self.config.near, index):
            numbers = [self.sources.setdefault(name, len(self.sources)) for name in names]
            part["source"] = np.array(numbers, np.int32)[part["source"]]
            self.prints[group.first : group.first + group.rows] = part
            self._progress(0, group.first + group.rows)

    def _progress(self, passes: int, done: float) -> None:
        """Say how many rows are done, after so many passes over all of them."""
        rows = self.rows.rows
        self.writer.progress(passes * rows + int(done), (3 if self.config.near else 2) * rows)

    def _group(self) -> None:
        """Settle what is held out, what is an exact duplicate, and what is in conflict."""
        tiers = self.prints["tier"]
        for tier, fate in (("same", HELD), ("embedded", HELD), ("template", TEMPLATE)):
            if tier != "template" or self.config.drop_templates:
                self.fate[tiers == TIERS.index(tier) + 1] = fate
        free = np.flatnonzero(self.fate == 0)
        prints = {name: self.prints[name][free] for name in ("low", "high", "answer", "rank")}
        groups = number_groups(prints["low"], prints["high"])
        del prints["low"], prints["high"]
        best = free[best_rows(groups, prints["rank"])]
        self.of[free] = best
        self.fate[free[best != free]] = EXACT
        said = number_groups(groups.astype(np.uint64), prints["answer"])
        answers = np.flatnonzero(said == np.arange(len(said)))  # the first row with each answer
        several = np.flatnonzero(np.bincount(groups[answers], minlength=1) > 1)
        if len(several):
            self._conflicts(free, groups, answers[np.isin(groups[answers], several)])

    def _conflicts(self, free: Ints, groups: Ints, asked: Ints) -> None:
        """Compare the answers of groups that have several, and drop those that contradict."""
        texts = self.rows.take(free[asked], ["task", "answer", "payload"])
        by_group: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for place in asked:
            text = texts[int(free[place])]
            if text["answer"].strip() and likeness.task_of(text["task"]).one_answer:
                by_group[int(groups[place])].append(text)
        calls = [(group, t[0], other) for group, t in by_group.items() for other in t[1:]]
        same = same_answers([(first, other) for _, first, other in calls])
        for (group, first, other), equal in zip(calls, same, strict=True):
            if not equal:
                self.answers.setdefault(group, (first["answer"], other["answer"]))
        bad = np.isin(groups, np.fromiter(self.answers, np.int64, len(self.answers)))
        self.conflicts = int(bad.sum())
        if not self.config.keep_conflicts:
            self.fate[free[bad]] = CONFLICT
            self.of[free[bad]] = groups[bad]

    def _near(self, hands: Hands) -> None:
        """Settle what says the same in other words, some blocks of candidates at a time."""
        free = self.fate == 0
        self.near_skipped = int((free & (self.prints["near"] == likeness.SKIPPED)).sum())
        if self.near_skipped:
            log.warning(
                "%d prompts are too long or repeat too much for near duplicates: "
                "only exact ones of them were looked for",
                self.near_skipped,
            )
        rows = np.flatnonzero(free & (self.prints["near"] > likeness.SKIPPED))
        rows = rows[np.argsort(self.prints["rank"][rows], kind="stable")]
        keys = self.prints["near"][rows]
        numbers = rows
        if self.held:  # they have negative numbers, and go first
            some = np.flatnonzero(self.held_keys > likeness.SKIPPED)
            numbers = np.concatenate([-1 - some, rows])
            keys = np.concatenate([self.held_keys[some], keys])
        order, starts, stops = runs(keys)
        ours = numbers[order[stops - 1]] >= 0  # held-out problems alone are nothing to compare
        starts, stops, order = starts[ours], stops[ours], numbers[order]
        ends = np.cumsum(stops - starts)
        for first in range(0, int(ends[-1]) if len(ends) else 0, LISTED):
            low, high = np.searchsorted(ends, (first, first + LISTED), "right")
            blocks = [
                order[a:b].tolist() for a, b in zip(starts[low:high], stops[low:high], strict=True)
            ]
            self._merge(blocks, hands, sum(map(len, blocks)) / int(ends[-1]))
            self._progress(1, self.rows.rows * min(1, (first + LISTED) / int(ends[-1])))
        self.near_uncompared = hands.uncompared
        if self.near_uncompared:
            log.warning(
                "%d pairs of prompts that may be near duplicates were not compared: "
                "their rows have many others that are nearer",
                self.near_uncompared,
            )

    def _merge(self, blocks: Sequence[Sequence[int]], hands: Hands, share: float) -> None:
        """Settle some blocks, which hold ``share`` of all rows that are in one."""
        columns = ["id", "task", "source", "prompt", "answer", "payload"]
        rows = (row for block in blocks for row in block if row >= 0)
        texts = Texts(self.rows.take(rows, columns), self.held)
        found = [
            (first, second, changes)
            for first, second, changes in hands.pairs(blocks, texts.prompts, self.config.threshold)
            if second >= 0
        ]
        every = [change for _, _, changes in found for change in changes]
        counts = hands.counts({g for c in every for g in c.grams}, self.fate != EXACT)
        gaps = Gaps(every, counts, share)
        found = [pair for pair in found if not any(map(gaps.filled, pair[2]))]
        unlike = self._unlike(found, texts)
        merged: set[int] = set()
        conflicts: dict[int, tuple[int, Sequence[Change]]] = {}
        for first, second, changes in found:
            if first in merged or second in merged:
                continue
            if (first, second) in unlike:
                conflicts.setdefault(second, (first, changes))
                continue
            merged.add(second)
            self.fate[second] = NEAR if first >= 0 else NEAR_HELD
            self.of[second] = first
            self.listing.near(second, first, changes, texts)
        for second, (first, changes) in conflicts.items():
            if second not in merged and first not in merged:
                self.near_conflicts += 1
                self.listing.near(second, first, changes, texts, "near, other answer")

    def _unlike(
        self,
        found: Sequence[tuple[int, int, Sequence[Change]]],
        texts: Texts,
    ) -> set[tuple[int, int]]:
        """The pairs whose answers differ, held-out problems aside."""
        keys = self.prints["answer"]
        asked = {
            (first, second): (texts[first], texts[second])
            for first, second, _ in found
            if first >= 0 and keys[first] != keys[second]
        }
        asked = {
            pair: (one, other)
            for pair, (one, other) in asked.items()
            if likeness.task_of(one["task"]).one_answer and one["answer"] and other["answer"]
        }
        same = same_answers(list(asked.values()))
        return {pair for pair, equal in zip(asked, same, strict=True) if not equal}

    def _follow(self) -> None:
        """Let copies of a near duplicate go with what stays of it."""
        copies = np.flatnonzero(self.fate == EXACT)
        via = self.of[copies]
        gone = np.isin(self.fate[via], (NEAR, NEAR_HELD))
        copies, via = copies[gone], via[gone]
        self.fate[copies[self.fate[via] == NEAR_HELD]] = COPY_HELD
        self.of[copies] = self.of[via]

    def _write(self) -> None:
        self.source_names = list(self.sources)
        first = 0
        for artifact in self.rows.artifacts:
            for batch in artifact.batches(Problem.SCHEMA.names, batch_size=10_000):
                fate = self.fate[first : first + batch.num_rows]
                lost = np.flatnonzero(fate)
                shown = batch.select(["id", "answer"]).take(pa.array(lost)).to_pylist()
                for row, values in zip((first + lost).tolist(), shown, strict=True):
                    self._reject(row, values)
                self.writer.add_batch(batch.filter(pa.array(fate == 0)))
                first += batch.num_rows
                self.writer.read += batch.num_rows
                self._progress(2 if self.config.near else 1, first)
        self.writer.figures |= self._figures()
        self.writer.details["sources"] = self._sources()

    def _reject(self, row: int, values: Mapping[str, str]) -> None:
        fate, of = int(self.fate[row]), int(self.of[row])
        if fate == CONFLICT:
            first, other = self.answers[of]
            against = other if first == values["answer"] else first
            detail = f"{values['answer']!r} here, {against!r} elsewhere"
        elif fate in (EXACT, NEAR):
            detail = f"of {self.rows.where(of)}"
        else:
            number = -1 - of if fate in (NEAR_HELD, COPY_HELD) else self.prints["held"][row]
            detail = self.held[number]["held_out"]
        self.writer.reject(values["id"], _REASONS[fate], detail)

    def _figures(self) -> dict[str, int | float]:
        dropped, read = self.writer.dropped, self.writer.read
        copies = dropped["duplicate"] + dropped["near_duplicate"]
        figures = {
            "duplicates": dropped["duplicate"],
            "near_duplicates": dropped["near_duplicate"],
            "duplicate_share": round(copies / read, 4) if read else 0.0,
            "conflicts": self.conflicts,
            "near_conflicts": self.near_conflicts,
            "near_skipped": self.near_skipped,
            "near_uncompared": self.near_uncompared,
            "contaminated": dropped["in_held_out"] + dropped["near_held_out"],
        }
        if self.held:
            tiers = self.prints["tier"]
            figures |= {f"held_out_{t}": int((tiers == i).sum()) for i, t in enumerate(TIERS, 1)}
            figures["held_out_near"] = dropped["near_held_out"]
        return figures

    def _sources(self) -> list[dict[str, str | int]]:
        """How many rows of which source were dropped for one of which."""
        copies = np.flatnonzero((self.fate == EXACT) | ((self.fate == NEAR) & (self.of >= 0)))
        names = self.source_names
        source = self.prints["source"]
        pairs, counts = np.unique(
            np.stack([source[self.of[copies]], source[copies]]), axis=1, return_counts=True
        )
        return [
            {"kept": names[kept], "dropped": names[dropped], "rows": int(count)}
            for (kept, dropped), count in zip(pairs.T.tolist(), counts, strict=True)
        ]
