"""Worker processes that compare problems: the parent's side of `llmpipe.tasks._likeness`."""

from __future__ import annotations

import itertools
import pickle
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from llmpipe.algo.gaps import Change, Gram
from llmpipe.algo.held_out import HeldOut
from llmpipe.core.pool import Failure, WorkerPool
from llmpipe.core.row_groups import RowGroup, RowGroups
from llmpipe.tasks import _likeness

_MUCH = 20_000  # rows; for fewer it takes longer to start workers than they save
_PORTION = 2000  # texts to compare that a worker is given at a time
_SAMPLE = 200_000  # rows that are enough to see what alternates
_LONGEST = 8  # tokens of a gram; longer ones hardly come twice


class Hands:
    """What reads and compares rows: a process a core where there are many, this one otherwise.

    ``folder`` is where files are put that the workers need; `close` removes them.
    """

    def __init__(self, rows: RowGroups, folder: Path) -> None:
        self._rows = rows
        self._folder = folder
        self._spilled: list[Path] = []
        many = rows.rows >= _MUCH
        self.uncompared = 0  # pairs that may be alike, and were too many to look at
        self._pool = (
            WorkerPool(f"{_likeness.__name__}:call", cpu_seconds=3600, chunk=1) if many else None
        )

    def fingerprints(
        self, near: bool, held_out: HeldOut | None
    ) -> Iterator[tuple[RowGroup, NDArray[Any], list[str]]]:
        """Each row group with its `llmpipe.tasks._likeness.ROW` a row, and what its sources are."""
        index = self._spill(held_out) if held_out else ""
        tasks = ((str(g.file), g.number, near, index) for g in self._rows.all)
        for group, (raw, names) in zip(
            self._rows.all, self._map("fingerprints", tasks), strict=True
        ):
            yield group, np.frombuffer(raw, _likeness.ROW).copy(), names

    def pairs(
        self,
        blocks: Sequence[Sequence[int]],
        prompts: Callable[[Sequence[int]], Iterator[str]],
        threshold: float,
    ) -> list[tuple[int, int, Sequence[Change]]]:
        """The pairs in each block of rows of which the second says the same as the first."""
        parts = list(_portions(blocks))
        tasks = ((list(_like(part, prompts)), threshold) for part in parts)
        found: list[tuple[int, int, Sequence[Change]]] = []
        for part, results in zip(parts, self._map("find_pairs", tasks), strict=True):
            for block, (pairs, left) in zip(part, results, strict=True):
                self.uncompared += left
                found += ((block[p.first], block[p.second], p.changes) for p in pairs)
        return found

    def counts(self, grams: Iterable[Gram], distinct: NDArray[np.bool_]) -> dict[Gram, float]:
        """In how many ``distinct`` rows each run of tokens occurs; estimated for many rows."""
        counts: Counter[Gram] = Counter()
        by_length: dict[int, set[Gram]] = defaultdict(set)
        for gram in grams:
            if len(gram) <= _LONGEST:
                by_length[len(gram)].add(gram)
        step = max(1, round(self._rows.rows / _SAMPLE))
        if by_length:
            path = self._spill({length: frozenset(some) for length, some in by_length.items()})
            tasks = (
                (str(g.file), g.number, distinct[g.first : g.first + g.rows].tobytes(), path)
                for g in self._rows.all[::step]
            )
            for some in self._map("count_grams", tasks):
                counts.update(some)
        return {gram: count * step for gram, count in counts.items()}

    def _map(self, name: str, tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        if self._pool is None:
            yield from (_likeness.call(name, task) for task in tasks)
            return
        for result in self._pool.map((name, task) for task in tasks):
            if isinstance(result, Failure):
                raise RuntimeError(f"{name}: {result.detail}")
            yield result

    def _spill(self, value: Any) -> str:
        path = self._folder / uuid.uuid4().hex  # workers remember files by their names
        path.write_bytes(pickle.dumps(value))
        self._spilled.append(path)
        return str(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._pool:
            self._pool.close()
        for path in self._spilled:
            path.unlink()


def _like(
    part: Sequence[Sequence[int]], prompts: Callable[[Sequence[int]], Iterator[str]]
) -> Iterator[list[str]]:
    """The prompts of the rows of each block."""
    texts = prompts([row for block in part for row in block])
    for block in part:
        yield list(itertools.islice(texts, len(block)))


def _portions(blocks: Iterable[Sequence[int]]) -> Iterator[list[Sequence[int]]]:
    """The blocks in lists of some rows."""
    part: list[Sequence[int]] = []
    size = 0
    for block in blocks:
        part.append(block)
        size += len(block)
        if size >= _PORTION:
            yield part
            part, size = [], 0
    if part:
        yield part
