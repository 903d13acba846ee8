"""The rows of several artifacts as one table, which is never all in memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from llmpipe.core.artifact import Artifact


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a Parquet file: its number in it, its first row in the table, its rows."""

    file: Path
    number: int
    first: int
    rows: int


class RowGroups:
    """Rows by their numbers, counted from 0 through all artifacts in their order."""

    def __init__(self, artifacts: Sequence[Artifact]) -> None:
        self.artifacts = artifacts
        self.rows = 0
        self.all: list[RowGroup] = []
        self._starts = list(itertools.accumulate((a.rows for a in artifacts), initial=0))
        for file in (f for artifact in artifacts for f in artifact.data_files()):
            with pq.ParquetFile(file) as parquet:
                for number in range(parquet.num_row_groups):
                    count = parquet.metadata.row_group(number).num_rows
                    self.all.append(RowGroup(file, number, self.rows, count))
                    self.rows += count

    def where(self, row: int) -> str:
        """A row as a user finds it: its number from 1, and its artifact."""
        part = next(i for i in reversed(range(len(self.artifacts))) if self._starts[i] <= row)
        return f"row {row - self._starts[part] + 1} of {self.artifacts[part].path}"

    def take(self, rows: Iterable[int], columns: Sequence[str]) -> Taken:
        """Some columns of some rows; only the row groups that hold them are read."""
        wanted = np.unique(np.fromiter(rows, np.int64))
        parts = []
        for group in self.all:
            low, high = np.searchsorted(wanted, (group.first, group.first + group.rows))
            if low < high:
                with pq.ParquetFile(group.file) as parquet:
                    table = parquet.read_row_group(group.number, columns=list(columns))
                parts.append(table.take(wanted[low:high] - group.first))
        return Taken(wanted, pa.concat_tables(parts).combine_chunks() if parts else pa.table({}))


class Taken:
    """Some rows in memory, by their numbers in the whole table."""

    def __init__(self, rows: NDArray[np.int64], table: pa.Table) -> None:
        self._rows = rows
        self._table = table

    def column(self, name: str, rows: Sequence[int]) -> list[Any]:
        """A column's values of some of the rows."""
        values: list[Any] = self._table[name].take(np.searchsorted(self._rows, rows)).to_pylist()
        return values

    def __getitem__(self, row: int) -> dict[str, Any]:
        place = int(np.searchsorted(self._rows, row))
        values: dict[str, Any] = self._table.slice(place, 1).to_pylist()[0]
        return values
