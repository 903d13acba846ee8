"""Parquet in and out, by row groups, so that memory does not grow with the data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from llmpipe.core.errors import UserError

_ROW_GROUP = 10_000  # rows, or fewer where they are long: packed rows have 100 kB each
_ROW_GROUP_BYTES = 12 << 20  # of Arrow data, a million packed tokens: these stay in the cache
_SHARD = 512 << 20  # bytes of Arrow data before a new file is begun


class ShardWriter:
    """Write ``data/train-00000-of-0000N.parquet``, the hub's own layout.

    N is known at the end, so files carry a temporary name until `close`. A file gets
    ``shard_rows`` rows, the last one what is left; or without that number, half a gigabyte.
    """

    def __init__(self, folder: Path, schema: pa.Schema, shard_rows: int | None = None) -> None:
        self.rows = 0
        self._shard_rows = shard_rows
        self._layout = _layout(schema)
        self._folder = folder
        self._schema = schema
        self._buffer: list[pa.RecordBatch] = []
        self._buffered = 0
        self._buffered_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._shard_bytes = 0
        self._shards: list[Path] = []
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; their schema must be the writer's."""
        if self._shard_rows is None:
            self._add(batch)
            return
        while batch.num_rows:
            part = batch.slice(0, self._shard_rows - self.rows % self._shard_rows)
            self._add(part)
            if self.rows % self._shard_rows == 0:
                self._flush()
                self._end_shard()
            batch = batch.slice(part.num_rows)

    def _add(self, batch: pa.RecordBatch) -> None:
        self._buffer.append(batch)
        self._buffered += batch.num_rows
        self._buffered_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._buffered >= _ROW_GROUP or self._buffered_bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> list[Path]:
        """Finish the files and return them, in order. There is at least one."""
        if not self._shards:
            self._begin_shard()
        self._flush()
        self._end_shard()
        named = []
        for i, path in enumerate(self._shards):
            final = self._folder / f"train-{i:05d}-of-{len(self._shards):05d}.parquet"
            named.append(path.rename(final))
        return named

    def abandon(self) -> None:
        """Let go of the open file; what was written is not wanted."""
        self._end_shard()

    def _flush(self) -> None:
        if not self._buffered:
            return
        table = pa.Table.from_batches(self._buffer, schema=self._schema)
        self._buffer, self._buffered, self._buffered_bytes = [], 0, 0
        if self._shard_bytes >= _SHARD and not self._shard_rows:
            self._end_shard()
        writer = self._writer or self._begin_shard()
        writer.write_table(table, row_group_size=_ROW_GROUP)
        self._shard_bytes += table.nbytes

    def _begin_shard(self) -> pq.ParquetWriter:
        path = self._folder / f"shard-{len(self._shards):05d}.tmp"
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd", **self._layout)
        self._shards.append(path)
        self._shard_bytes = 0
        return self._writer

    def _end_shard(self) -> None:
        if self._writer:
            self._writer.close()
        self._writer = None


def _layout(schema: pa.Schema) -> dict[str, bool]:
    """How a schema's columns are laid out in Parquet, where that is not by dictionary.

    Lists of numbers alone, as packed rows are, take half the time and a fifth less space when their
    bytes are put apart: first bytes, second bytes and so on. The least and the greatest token of a
    row group are of use to nobody.
    """
    numbers = all(
        pa.types.is_list(f.type) and f.type.value_type in (pa.int32(), pa.float32()) for f in schema
    )
    return {
        "use_dictionary": not numbers,
        "use_byte_stream_split": numbers,
        "write_statistics": not numbers,
    }


class LineWriter:
    """Write ``data/train.jsonl``, a JSON object a row: what `ShardWriter` is for Parquet."""

    def __init__(self, folder: Path) -> None:
        self.rows = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "train.jsonl"
        self._file = self._path.open("w", encoding="utf-8")

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        for row in batch.to_pylist():
            self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.rows += batch.num_rows

    def close(self) -> list[Path]:
        """Finish the file and return it."""
        self._file.close()
        return [self._path]

    def abandon(self) -> None:
        """Let go of the open file; what was written is not wanted."""
        self._file.close()


def read_batches(
    files: Sequence[Path], columns: Sequence[str] | None = None, batch_size: int = 1024
) -> Iterator[pa.RecordBatch]:
    """Batches of the given columns (all by default) of Parquet files, in order.

    Raises:
        UserError: a file is missing, is no Parquet, or lacks a column.
    """
    for file in files:
        try:
            with pq.ParquetFile(file) as parquet:
                missing = set(columns or ()) - set(parquet.schema_arrow.names)
                if missing:
                    raise UserError(
                        f"{file} has no column {', '.join(sorted(missing))}",
                        f"its columns are: {', '.join(parquet.schema_arrow.names)}",
                    )
                yield from parquet.iter_batches(batch_size, columns=columns)
        except FileNotFoundError:
            raise UserError(f"{file} is missing", "make the artifact again with --force") from None
        except (pa.ArrowInvalid, OSError) as e:
            raise UserError(
                f"{file} can't be read as Parquet: {str(e).splitlines()[0]}",
                "make the artifact again with --force",
            ) from None
