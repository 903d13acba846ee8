from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmpipe.algo.packed_rows import (
    NO_LOSS,
    batches,
    ids_and_labels,
    marked,
    neighbours,
    pieces,
    rank_slices,
    segments_of,
)
from llmpipe.algo.packing import plan
from llmpipe.core.records import PackedRow
from llmpipe.core.spill import Spill

PAD = 7


def packed(
    lengths: list[int], capacity: int, *, multiple: int = 1, most: int = 1000, weights: bool = False
) -> list[PackedRow]:
    """Rows of sequences 100, 101, ...; 200, 201, ...: the second half of each is learnt."""
    columns: dict[str, type[np.generic]] = {"tokens": np.int32}
    if weights:
        columns["weights"] = np.float32
    with tempfile.TemporaryDirectory() as folder, Spill(Path(folder), columns) as spill:
        for i, length in enumerate(lengths):
            ids = 100 * (i + 1) + np.arange(length, dtype=np.int32)
            loss = 2 * np.arange(length) >= max(length, 2)
            arrays: dict[str, Any] = {"tokens": marked(ids, loss)}
            if weights:
                arrays["weights"] = np.full(length, i + 1) * loss
            spill.add(**arrays)
        made = plan(np.array(lengths), capacity, seed=0)
        found = list(batches(made, spill, multiple=multiple, pad=PAD, most=most, scale=0.5))
    table = pa.Table.from_batches(found, schema=PackedRow.SCHEMA)
    return [PackedRow.from_row(row) for row in table.to_pylist()]


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 24), min_size=1, max_size=40),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([1, 50, 1000]),
)
def test_rows_hold_every_sequence_once_with_labels_and_positions(
    lengths: list[int], multiple: int, most: int
) -> None:
    seen = []
    for row in packed(lengths, 24, multiple=multiple, most=most):
        size = len(row.input_ids)
        assert size == len(row.labels) == len(row.position_ids) == sum(row.seq_lengths)
        assert size % multiple == 0
        assert 0 < size <= 24
        end = 0
        for k, span in enumerate(row.seq_lengths):
            begin, end = end, end + span
            ids = list(row.input_ids[begin:end])
            number = ids[0] // 100 - 1
            length = lengths[number]
            padding = span - length
            assert 0 <= padding < multiple
            assert padding == 0 or k == len(row.seq_lengths) - 1
            assert ids == [ids[0] + i for i in range(length)] + [PAD] * padding
            assert list(row.position_ids[begin:end]) == list(range(span))
            half = -(-max(length, 2) // 2)
            assert list(row.labels[begin:end]) == (
                [NO_LOSS] * min(half, length) + ids[half:length] + [NO_LOSS] * padding
            )
            seen.append(number)
    assert sorted(seen) == list(range(len(lengths)))


def test_weights_are_moved_along_and_scaled() -> None:
    (row,) = packed([4, 2], 16, multiple=8, weights=True)
    assert row.loss_weights == [0, 0, 0.5, 0.5, 0, 1.0, 0, 0]
    assert packed([4, 2], 16)[0].loss_weights is None


def test_ids_and_what_is_learnt_come_back_from_one_column() -> None:
    ids = np.array([0, 5, 2**31 - 1, 0, 9], np.int32)
    loss = np.array([True, False, True, False, True])
    tokens = marked(ids, loss)
    assert tokens.dtype == np.int32
    back, labels = ids_and_labels(tokens)
    assert back.tolist() == ids.tolist()
    assert labels.tolist() == [0, -100, 2**31 - 1, -100, 9]
    assert back.dtype == labels.dtype == np.int32


def test_pieces_are_the_whole_its_beginning_or_its_parts() -> None:
    def cut(length: int, overlong: str) -> list[tuple[int, int]]:
        return [(p.start, p.stop) for p in pieces(length, 10, overlong)]

    assert cut(10, "drop") == cut(10, "truncate") == cut(10, "split") == [(0, 10)]
    assert cut(25, "truncate") == [(0, 10)]
    assert cut(25, "split") == [(0, 10), (10, 20), (20, 25)]


def test_neighbours_are_the_shortest_two_and_what_fits_beside_them() -> None:
    sizes = [5, 4, 2, 3, 6, 1]
    tokens = list(range(sum(sizes)))
    row = PackedRow(
        input_ids=tokens,
        labels=[-100, *tokens[1:]],
        position_ids=[i for size in sizes for i in range(size)],
        seq_lengths=sizes,
        loss_weights=[float(i) for i in tokens],
    )
    two = neighbours(row, 0)
    assert two is not None
    assert two.seq_lengths == [2, 3]
    assert two.input_ids == two.labels == [9, 10, 11, 12, 13]
    assert two.position_ids == [0, 1, 0, 1, 2]
    assert two.loss_weights == [9, 10, 11, 12, 13]
    # First to the right, then to the left.
    for most, kept in ((11, [2, 3, 6]), (16, [4, 2, 3, 6, 1]), (21, sizes)):
        part = neighbours(row, most)
        assert part is not None
        assert part.seq_lengths == kept
    assert neighbours(segments_of(row, 0, 1), 100) is None


def test_ranks_get_all_of_a_row_that_is_padded_for_them_and_not_of_another() -> None:
    row = np.arange(24)
    parts = [row[part] for part in rank_slices(len(row), 4)]
    assert {len(part) for part in parts} == {6}
    assert np.concatenate(parts).tolist() == row.tolist()
    assert sum(len(row[:23][part]) for part in rank_slices(23, 4)) == 20


@pytest.mark.parametrize("multiple", [1, 8])
def test_trl_gives_a_model_the_segments_that_were_packed(multiple: int) -> None:
    """TRL's own collator, flattening two rows: each pad token would be a segment at position 0."""
    sft = pytest.importorskip("trl.trainer.sft_trainer", reason="TRL is not installed")
    rows = packed([13, 5, 9, 3, 21], 32, multiple=multiple)
    collate = sft.DataCollatorForLanguageModeling(pad_token_id=PAD, padding_free=True)
    batch = collate([row.as_row() for row in rows])
    flat = {
        name: [value for row in rows for value in getattr(row, name)]
        for name in ("input_ids", "labels", "position_ids", "seq_lengths")
    }
    for name in ("input_ids", "labels", "position_ids"):
        assert batch[name].tolist() == [flat[name]]
    assert batch["cu_seq_lens_q"].tolist() == np.cumsum([0, *flat["seq_lengths"]]).tolist()
    assert batch["cu_seq_lens_k"].tolist() == batch["cu_seq_lens_q"].tolist()
    assert batch["max_length_q"] == max(flat["seq_lengths"])
    assert len(flat["seq_lengths"]) == 5
    assert "attention_mask" not in batch
