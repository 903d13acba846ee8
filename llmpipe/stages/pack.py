"""Tokenise conversations, mask what is not learnt, and pack them into rows of one length.

Tokens go to a spill file beside the output first: the plan needs only lengths, and rows are then
gathered from the file, so that memory doesn't grow with the tokens.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from llmpipe.algo.chat import Chat, Encoded, encode
from llmpipe.algo.packing import best_fit_decreasing, utilisation
from llmpipe.algo.prompts import load_chat_tokenizer, tokenizer_files
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Conversation, PackedRow
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute

_BATCH = 256  # conversations tokenised at a time
_GATHER = 1 << 22  # tokens written at a time
_NO_LOSS = -100


@dataclass(frozen=True, kw_only=True)
class Config:
    """``max_length`` is the capacity of a row in tokens; ``seed`` shuffles the rows."""

    max_length: int
    seed: int = 0


def run(
    config: Config, conversations: Sequence[Path], tokenizer: Path, out: Path, mode: Mode
) -> Result:
    """Rows for training, each holding whole conversations; see `PackedRow`.

    Labels are -100 outside the assistant's trained spans, and for the first token of every
    conversation, which nothing comes before. A conversation over ``max_length`` is dropped, never
    cut: cut from the end it would lose its answer.

    Raises:
        UserError: no conversations there, or no tokenizer with a chat template.
    """
    if config.max_length < 2:
        raise UserError(f"max-length is {config.max_length}", "--max-length 4096")
    sources = [Artifact.open(path, Conversation) for path in conversations]
    inputs: dict[str, Input] = {f"conversations/{i}": s for i, s in enumerate(sources)}
    inputs |= {f"tokenizer/{file.name}": file for file in tokenizer_files(tokenizer)}
    spec = Spec(
        stage="pack",
        record=PackedRow,
        config=config,
        inputs=inputs,
        out=out,
        libraries=("transformers", "tokenizers", "numpy"),
    )

    def build(writer: Writer) -> None:
        loaded = load_chat_tokenizer(tokenizer)
        with tempfile.TemporaryDirectory(dir=writer.partial, prefix="tokens-") as folder:
            spill = _Spill(Path(folder))
            _tokenise(config, sources, loaded, spill, writer)
            _pack(config, spill, writer)

    return execute(spec, build, mode)


class _Spill:
    """Token ids and loss marks of conversations, end to end on disk; their lengths in memory."""

    def __init__(self, folder: Path) -> None:
        self.lengths: list[int] = []
        self._paths = folder / "ids", folder / "loss"
        self._files: tuple[BinaryIO, ...] = tuple(p.open("wb") for p in self._paths)

    def add(self, encoded: Encoded) -> None:
        self.lengths.append(len(encoded.input_ids))
        encoded.input_ids.tofile(self._files[0])
        encoded.loss.tofile(self._files[1])

    def read(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Both arrays, mapped from disk; there is at least one token."""
        for file in self._files:
            file.close()
        ids, loss = self._paths
        return np.memmap(ids, np.int32, "r"), np.memmap(loss, np.bool_, "r")


def _tokenise(
    config: Config, sources: Sequence[Artifact], tokenizer: Any, spill: _Spill, writer: Writer
) -> None:
    total = sum(s.rows for s in sources)
    columns = ["id", "messages", "tools", "token_ids", "loss_mask"]
    for source in sources:
        for batch in source.batches(columns, batch_size=_BATCH):
            rows = batch.to_pylist()
            for row, encoded in zip(rows, _encode(tokenizer, rows), strict=True):
                writer.read += 1
                fault = encoded if isinstance(encoded, Drop) else _fault(config, encoded)
                if fault:
                    writer.reject(row["id"], fault.reason, fault.detail)
                elif isinstance(encoded, Encoded):
                    spill.add(encoded)
            writer.progress(writer.read, total)


def _encode(tokenizer: Any, rows: Sequence[dict[str, Any]]) -> Iterator[Encoded | Drop]:
    """In the order of ``rows``; where single tokens are masked already, those stand."""
    texts = [r for r in rows if r["token_ids"] is None]
    chats = [
        Chat(messages=r["messages"], tools=json.loads(r["tools"]) if r["tools"] else None)
        for r in texts
    ]
    encoded = iter(encode(tokenizer, chats))
    for row in rows:
        if row["token_ids"] is None:
            yield next(encoded)
        else:
            yield Encoded(
                input_ids=np.array(row["token_ids"], dtype=np.int32),
                loss=np.array(row["loss_mask"], dtype=np.bool_),
            )


def _fault(config: Config, encoded: Encoded) -> Drop | None:
    length = len(encoded.input_ids)
    if length > config.max_length:
        return Drop(reason="too_long", detail=f"{length} tokens")
    if not encoded.loss[1:].any():
        return Drop(reason="nothing_to_learn", detail=f"{length} tokens")
    return None


def _pack(config: Config, spill: _Spill, writer: Writer) -> None:
    lengths = np.array(spill.lengths, dtype=np.int64)
    bins = best_fit_decreasing(lengths, config.max_length)
    order = np.random.default_rng(config.seed % 2**64).permutation(len(bins)).tolist()
    tokens, trained = int(lengths.sum()), 0
    if bins:
        ids, loss = spill.read()
        starts = np.cumsum(lengths) - lengths
        for rows in _groups([bins[i] for i in order], lengths):
            batch, learnt = _rows(rows, ids, loss, starts, lengths)
            writer.add_batch(batch)
            trained += learnt
    writer.figures |= {
        "conversations": len(lengths),
        "tokens": tokens,
        "trained_tokens": trained,
        "max_length": config.max_length,
        "utilisation": round(utilisation(tokens, len(bins), config.max_length), 6),
    }


def _groups(
    bins: Sequence[Sequence[int]], lengths: NDArray[np.int64]
) -> Iterator[Sequence[Sequence[int]]]:
    """Bins in groups of some million tokens."""
    first, tokens = 0, 0
    for i, members in enumerate(bins):
        tokens += int(lengths[members].sum())
        if tokens >= _GATHER:
            yield bins[first : i + 1]
            first, tokens = i + 1, 0
    if first < len(bins):
        yield bins[first:]


def _rows(
    bins: Sequence[Sequence[int]],
    ids: NDArray[np.int32],
    loss: NDArray[np.bool_],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> tuple[pa.RecordBatch, int]:
    """Packed rows as one batch, and how many of their tokens are learnt."""
    members = np.concatenate([np.asarray(b) for b in bins])
    sizes = lengths[members]
    ends = np.cumsum(sizes)
    positions = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
    at = positions + np.repeat(starts[members], sizes)
    values = ids[at]
    labels = np.where(loss[at] & (positions > 0), values, np.int32(_NO_LOSS))
    segments = np.cumsum([0, *map(len, bins)])
    offsets = np.concatenate([[0], ends])[segments]

    def lists(flat: NDArray[Any], bounds: NDArray[np.int64]) -> pa.ListArray:
        return pa.ListArray.from_arrays(
            pa.array(bounds.astype(np.int32)), pa.array(flat.astype(np.int32, copy=False))
        )

    columns = [
        lists(values, offsets),
        lists(labels, offsets),
        lists(positions, offsets),
        lists(sizes, segments),
        pa.nulls(len(bins), PackedRow.SCHEMA.field("loss_weights").type),
    ]
    learnt = int(np.count_nonzero(labels != _NO_LOSS))
    return pa.RecordBatch.from_arrays(columns, schema=PackedRow.SCHEMA), learnt
