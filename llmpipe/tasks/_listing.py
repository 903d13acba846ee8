"""Tables that show what was taken for the same, with both texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from llmpipe.algo.gaps import Change
from llmpipe.algo.groups import Ints
from llmpipe.algo.held_out import TIERS
from llmpipe.core.row_groups import RowGroups, Taken
from llmpipe.core.writer import Writer

MERGES, HITS = "merges.parquet", "hits.parquet"


_MERGE = ["tier", "id", "source", "prompt", "kept", "kept_id", "kept_source", "kept_prompt"]
_HIT = ["tier", "id", "source", "prompt", "held_out", "held_out_id", "held_out_prompt"]


def _schema(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])


LISTED = 500_000
"""Rows whose texts are in memory at a time."""
_SHOWN = 10_000  # rows of them that are Python objects


class Texts:
    """Rows in memory by their numbers; -1 and below are held-out problems."""

    def __init__(self, taken: Taken, held: Sequence[Mapping[str, Any]]) -> None:
        self._taken = taken
        self._held = held

    def __getitem__(self, row: int) -> Mapping[str, Any]:
        return self._held[-1 - row] if row < 0 else self._taken[row]

    def prompts(self, rows: Sequence[int]) -> Iterator[str]:
        taken = iter(self._taken.column("prompt", [row for row in rows if row >= 0]))
        return (self._held[-1 - row]["prompt"] if row < 0 else next(taken) for row in rows)


class Listing:
    """The tables of one run: ``merges.parquet``, and ``hits.parquet`` if it is ``against`` any."""

    def __init__(
        self,
        rows: RowGroups,
        held: Sequence[Mapping[str, Any]],
        writer: Writer,
        *,
        against: bool,
    ) -> None:
        self._rows = rows
        self._held = held
        self._merges = writer.table(MERGES, _schema(*_MERGE, "changes"))
        if against:
            self._hits = writer.table(HITS, _schema(*_HIT, "changes"))

    def near(
        self,
        row: int,
        first: int,
        changes: Sequence[Change],
        texts: Texts,
        tier: str = "near",
    ) -> None:
        """Note a near duplicate in the table that it belongs to."""
        one, other = texts[row], texts[first]
        said = "; ".join(map(str, changes))
        entry = (tier, one["id"], one["source"], one["prompt"])
        if first < 0:
            self._hits.add(*entry, other["held_out"], other["id"], other["prompt"], said)
        else:
            place = self._rows.where(first)
            self._merges.add(*entry, place, other["id"], other["source"], other["prompt"], said)

    def copies(self, copies: Ints, of: Ints, hashes: NDArray[np.uint64]) -> None:
        """Note the exact duplicates, with both texts.

        Args:
            copies: their rows.
            of: for each the row that is kept, -1 and below for held-out problems.
            hashes: of all rows' problems; where two differ, a near duplicate came between them.
        """
        columns = ("id", "source", "prompt")
        for start in range(0, len(copies), LISTED // 2):
            some = copies[start : start + LISTED // 2]
            kept = of[start : start + LISTED // 2]
            texts = self._rows.take(np.concatenate([some, kept[kept >= 0]]).tolist(), columns)
            for at in range(0, len(some), _SHOWN):
                rows, firsts = some[at : at + _SHOWN], kept[at : at + _SHOWN]
                ours = zip(*(texts.column(name, rows.tolist()) for name in columns), strict=True)
                stay = firsts[firsts >= 0].tolist()
                theirs = zip(*(texts.column(name, stay) for name in columns), strict=True)
                for row, first, shown in zip(rows.tolist(), firsts.tolist(), ours, strict=True):
                    if first < 0:
                        other = self._held[-1 - first]
                        about = (other["held_out"], other["id"], other["prompt"], "")
                        self._hits.add("near", *shown, *about)
                    else:
                        tier = "exact" if hashes[row] == hashes[first] else "exact, near"
                        self._merges.add(tier, *shown, self._rows.where(first), *next(theirs), None)

    def hits(self, hits: Ints, tiers: NDArray[np.int8], held: NDArray[np.int32]) -> None:
        """Note the rows where a held-out problem was found before texts were compared."""
        for start in range(0, len(hits), LISTED):
            some = hits[start : start + LISTED].tolist()
            texts = self._rows.take(some, ["id", "source", "prompt"])
            columns = (texts.column(name, some) for name in ("id", "source", "prompt"))
            for place, shown in enumerate(zip(*columns, strict=True), start):
                other = self._held[held[place]]
                self._hits.add(
                    *(TIERS[tiers[place] - 1], *shown),
                    *(other["held_out"], other["id"], other["prompt"], ""),
                )
