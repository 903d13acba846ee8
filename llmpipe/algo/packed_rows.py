"""Packed rows from a plan and the tokens it is of, in Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from llmpipe.algo.packing import Plan
from llmpipe.core.records import PackedRow
from llmpipe.core.spill import Spill

NO_LOSS = -100
"""The label that trainers leave out of the loss."""

_WEIGHTS = PackedRow.SCHEMA.field("loss_weights").type


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Where the tokens of some rows come from and go to, segment by segment.

    A segment's ``sizes`` tokens begin at ``starts`` in the columns they are taken from. It takes up
    ``spans`` tokens of its row: the last one of a row has the padding, too. Row r has the segments
    ``bounds[r]`` to ``bounds[r + 1]``.
    """

    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    spans: NDArray[np.int64]
    bounds: NDArray[np.int64]

    @property
    def ends(self) -> NDArray[np.int64]:
        """Where each segment ends among the tokens of all these rows."""
        return np.cumsum(self.spans)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each row begins among their tokens, and the last one ends."""
        return np.concatenate([[0], self.ends])[self.bounds]

    def gather(self, spill: Spill, column: str, fill: int) -> NDArray[Any]:
        """The rows' values of a column, end to end, with ``fill`` for padding."""
        ends = self.ends
        values = np.full(ends[-1], fill, spill.columns[column])
        spill.read(column, self.starts, self.sizes, ends - self.spans, values)
        return values

    @property
    def positions(self) -> NDArray[np.int32]:
        """Each token's place in its segment. Padding goes on with the last segment's."""
        ends = self.ends
        begins = (ends - self.spans).astype(np.int32)
        return np.arange(ends[-1], dtype=np.int32) - np.repeat(begins, self.spans)


def groups(
    plan: Plan, lengths: NDArray[np.int64], *, multiple: int, most: int
) -> Iterator[Segments]:
    """The rows of a plan in turn, some ``most`` tokens at a time.

    Rows are padded to a ``multiple`` of tokens. The padding belongs to the last segment of its row
    and its positions go on: trainers begin a segment at each position 0, so padding at position 0,
    as collators put it, is a segment a token; and TRL takes a row's length from the sum of its
    segments' lengths.
    """
    starts = np.cumsum(lengths) - lengths
    sizes = lengths[plan.sequences]
    spans = sizes.copy()
    last = plan.bounds[1:] - 1
    tokens = np.add.reduceat(sizes, plan.bounds[:-1])
    spans[last] += -tokens % multiple
    group = (np.cumsum(tokens) - 1) // most
    cuts = np.flatnonzero(np.diff(group, prepend=-1, append=group[-1] + 1))
    for first, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        bounds = plan.bounds[first : end + 1]
        here = slice(bounds[0], bounds[-1])
        yield Segments(
            starts=starts[plan.sequences[here]],
            sizes=sizes[here],
            spans=spans[here],
            bounds=bounds - bounds[0],
        )


def batches(
    plan: Plan, spill: Spill, *, multiple: int, pad: int, most: int, scale: float = 1.0
) -> Iterator[pa.RecordBatch]:
    """The rows of a plan in Arrow, some ``most`` tokens a batch; see `groups` for the padding.

    Args:
        spill: the sequences, with the column ``tokens`` as `marked` makes it, and ``weights`` of
            the loss, where rows are to have them.
        pad: the token id of padding.
        scale: what the weights are multiplied by.
    """
    for segments in groups(plan, spill.lengths, multiple=multiple, most=most):
        bounds, offsets = segments.bounds, segments.offsets
        ids, labels = ids_and_labels(segments.gather(spill, "tokens", ~pad))
        weights: pa.Array = pa.nulls(len(bounds) - 1, _WEIGHTS)
        if "weights" in spill.columns:
            shares = segments.gather(spill, "weights", 0)
            weights = _lists(shares * np.float32(scale), offsets)
        yield pa.RecordBatch.from_arrays(
            [
                _lists(ids, offsets),
                _lists(labels, offsets),
                _lists(segments.positions, offsets),
                _lists(segments.spans.astype(np.int32), bounds),
                weights,
            ],
            schema=PackedRow.SCHEMA,
        )


def marked(ids: NDArray[np.int32], loss: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Token ids and whether they are learnt as one column: an id that is not is turned to ~id.

    It is read once instead of twice. Both arguments have the shape (tokens,).
    """
    return np.where(loss, ids, ~ids)


def ids_and_labels(tokens: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The inverse of `marked`: ids, and labels with `NO_LOSS` where they are not learnt."""
    return tokens ^ (tokens >> 31), np.where(tokens < 0, np.int32(NO_LOSS), tokens)


def _lists(values: NDArray[Any], offsets: NDArray[np.int64]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))


def pieces(length: int, most: int, overlong: str) -> list[slice]:
    """What is kept of a sequence: all of it, its beginning (truncate), or all its parts (split)."""
    if overlong == "split":
        return [slice(at, min(at + most, length)) for at in range(0, length, most)]
    return [slice(0, min(length, most))]


def segments_of(row: PackedRow, first: int, end: int) -> PackedRow:
    """The part of a row that has the segments ``first`` to ``end``: a packed row, too."""
    bounds = np.cumsum([0, *row.seq_lengths])
    part = slice(int(bounds[first]), int(bounds[end]))
    return PackedRow(
        input_ids=row.input_ids[part],
        labels=row.labels[part],
        position_ids=row.position_ids[part],
        seq_lengths=row.seq_lengths[first:end],
        loss_weights=row.loss_weights[part] if row.loss_weights is not None else None,
    )


def neighbours(row: PackedRow, most: int) -> PackedRow | None:
    """Segments of a row that lie side by side: two at least, and more up to ``most`` tokens.

    The two shortest neighbours are among them. None where the row has but one segment.
    """
    sizes = np.array(row.seq_lengths)
    if len(sizes) < 2:
        return None
    first = int(np.argmin(sizes[:-1] + sizes[1:]))
    end = first + 2
    while end < len(sizes) and sizes[first : end + 1].sum() <= most:
        end += 1
    while first and sizes[first - 1 : end].sum() <= most:
        first -= 1
    return segments_of(row, first, end)


def rank_slices(tokens: int, ranks: int) -> list[slice]:
    """The part of a row that each rank of a sequence-parallel group gets: equal and contiguous.

    As Ulysses trainers cut it (DeepSpeed's data loader, verl): a rest that doesn't divide is lost.
    Labels are to be shifted before the cut, for the last token of a part predicts the first of the
    next.
    """
    part = tokens // ranks
    return [slice(rank * part, (rank + 1) * part) for rank in range(ranks)]
