"""What a build fills: rows, rejects, counts and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from llmpipe.core.artifact import REJECT_SCHEMA, REJECTS
from llmpipe.core.records import Record, to_batch
from llmpipe.core.spec import Progress, Spec
from llmpipe.core.tables import LineWriter, ShardWriter


class Table:
    """A Parquet file that is filled row by row."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = 0
        self._schema = schema
        self._buffer: list[Sequence[Any]] = []
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def add(self, *values: Any) -> None:
        """A row, its values in the order of the columns."""
        self._buffer.append(values)
        self.rows += 1
        if len(self._buffer) >= 10_000:
            self._flush()

    def _flush(self) -> None:
        if self._buffer:
            columns = zip(*self._buffer, strict=True)
            arrays = [pa.array(c, t) for c, t in zip(columns, self._schema.types, strict=True)]
            self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
            self._buffer = []

    def close(self) -> None:
        self._flush()
        self._writer.close()


class Writer:
    """What a build fills: rows, rejects, counts and figures."""

    def __init__(self, spec: Spec, folder: Path, partial: Path, progress: Progress) -> None:
        self.figures: dict[str, Any] = {}
        self.details: dict[str, Any] = {}
        self.read = 0
        self.dropped: Counter[str] = Counter()
        self.attention: str | None = None
        self.progress = progress
        self.partial = partial
        self._record = spec.record
        self._folder = folder
        data = folder / "data"
        self._shards: ShardWriter | LineWriter = (
            LineWriter(data)
            if spec.lines
            else ShardWriter(data, spec.record.SCHEMA, spec.shard_rows)
        )
        self._rows: list[Record] = []
        self._rejects: list[dict[str, str]] = []
        self._attached: list[str] = []
        self._tables: dict[str, Table] = {}
        self._reject_writer: pq.ParquetWriter | None = None
        self.inner: dict[str, Writer] = {}
        self._spec = spec

    @property
    def kept(self) -> int:
        return self._shards.rows + len(self._rows)

    def add(self, row: Record) -> None:
        """Keep a row."""
        self._rows.append(row)
        if len(self._rows) >= 1024:
            self._flush_rows()

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Keep a batch of rows in the record's schema."""
        self._flush_rows()
        self._shards.write(batch)

    def reject(self, row_id: str, reason: str, detail: str = "") -> None:
        """Drop a row, and say why: ``reason`` is counted, ``detail`` is kept with the row's id."""
        self.dropped[reason] += 1
        self._rejects.append({"id": row_id, "reason": reason, "detail": detail})
        if len(self._rejects) >= 10_000:
            self._flush_rejects()

    def attach(self, name: str, text: str) -> None:
        """Put a further file beside the rows; it is listed in the manifest."""
        self.file(name).write_text(text, encoding="utf-8")

    def file(self, name: str) -> Path:
        """Where a further file beside the rows is to be put; it is listed in the manifest."""
        self._attached.append(name)
        return self._folder / name

    def table(self, name: str, schema: pa.Schema) -> Table:
        """A further Parquet file beside the rows, there even without a row of its own."""
        self._tables[name] = Table(self._folder / name, schema)
        return self._tables[name]

    def nested(self, name: str) -> Writer:
        """The writer of a second artifact, ``OUT/name``, of the same make and lineage.

        The two are put in place together, or neither is.
        """
        folder = self._folder / name
        folder.mkdir()
        self.inner[name] = Writer(self._spec, folder, self.partial, self.progress)
        return self.inner[name]

    def _flush_rows(self) -> None:
        if self._rows:
            self._shards.write(to_batch(self._record, self._rows))
            self._rows = []

    def _flush_rejects(self) -> None:
        if self._rejects:
            if self._reject_writer is None:
                self._reject_writer = pq.ParquetWriter(
                    self._folder / REJECTS, REJECT_SCHEMA, compression="zstd"
                )
            self._reject_writer.write_batch(
                pa.RecordBatch.from_pylist(self._rejects, schema=REJECT_SCHEMA)
            )
            self._rejects = []

    def close(self) -> list[Path]:
        self._flush_rows()
        self._flush_rejects()
        files = self._shards.close()
        if self._reject_writer:
            self._reject_writer.close()
            files.append(self._folder / REJECTS)
        for name, table in self._tables.items():
            table.close()
            files.append(self._folder / name)
        return files + [self._folder / name for name in self._attached]

    def abandon(self) -> None:
        for writer in self.inner.values():
            writer.abandon()
        self._shards.abandon()
        for table in self._tables.values():
            table.close()
        if self._reject_writer:
            self._reject_writer.close()
