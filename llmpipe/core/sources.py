"""Rows of files that llmpipe did not write: Parquet, Arrow, JSON, JSON Lines, CSV, and folders.

A folder may be laid out as on the hub (`datasets` says which files make a split) or written by
``Dataset.save_to_disk``. Text files are read here rather than by `datasets`, as an answer must stay
as it was written: there "3" becomes "3.0" beside "4.50", "007" becomes "7", and an error in a file
doesn't name its line. Nothing is read from the network, and one batch of rows is held at a time
(a JSON file that is one big list is held whole).
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from llmpipe.core.artifact import MANIFEST
from llmpipe.core.errors import UserError

Row = dict[str, Any]

_BATCH = 1024
_LOOKED_AT = 100  # rows of a text file, to see which columns there are
_CSV_CELL = 1 << 30  # bytes; csv's own limit of 128 KiB is less than a long solution
_AGAIN = "the file may be cut short: copy or download it again"


class JsonNumber(str):
    """A number in JSON, as the text it was written as; what is no text in the end can tell."""

    __slots__ = ()


@dataclass(frozen=True)
class Source:
    """Rows in order: ``columns`` are their names, ``read`` yields rows of the given columns."""

    path: Path
    columns: Sequence[str]
    read: Callable[[Sequence[str]], Iterator[Row]]


def is_foreign(path: Path) -> bool:
    """Whether a path is a file or folder that no stage made."""
    return path.is_file() or (path.is_dir() and not (path / MANIFEST).is_file())


def refuse_root(path: Path) -> None:
    """Refuse ``/``, as what is under it would be read for hours before it is no data set.

    Raises:
        UserError: that is what the path is.
    """
    if os.path.realpath(path) == os.sep:
        raise UserError(f"{path} is the whole disk, no data set", f"ls {os.sep}")


def open_source(path: Path, *, split: str | None = None, folder: str = "") -> Source:
    """The rows of a file, or of one split of a data set's folder (of ``folder`` inside it).

    Without ``split`` a folder's only split is taken, or the one called train. JSON numbers come as
    the text they were written as (`JsonNumber`); a column that a row lacks is None.

    Raises:
        UserError: nothing is there, it can't be read, it is of another type, or there is no such
            split. Some errors show only while rows are read.
    """
    if path.is_file():
        if split:
            raise UserError(f"{path} is a file: it has no split {split!r}", "leave --split out")
        return _of_files(path, [path])
    if not path.is_dir():
        raise UserError(f"{path} does not exist", "check the path")
    refuse_root(path)
    inside = path / folder
    if (inside / "dataset_dict.json").is_file() or (inside / "state.json").is_file():
        return _saved(inside, split)
    return _of_files(path, _layout(path, folder, split))


def open_parts(path: Path, parts: Sequence[str], *, split: str | None = None) -> Source:
    """The rows of several folders or files inside ``path``, part by part; "" is ``path`` itself.

    The columns are those that every part has.

    Raises:
        UserError: a part isn't there; otherwise as `open_source`.
    """
    opened = []
    for part in parts:
        if part and not (path / part).exists():
            raise UserError(
                f"{path / part} does not exist", "download the data set again, the whole of it"
            )
        if (path / part).is_file():
            opened.append(open_source(path / part, split=split))
        else:
            opened.append(open_source(path, split=split, folder=part))
    if len(opened) == 1:
        return opened[0]

    def read(columns: Sequence[str]) -> Iterator[Row]:
        for source in opened:
            yield from source.read(columns)

    shared = [c for c in opened[0].columns if all(c in source.columns for source in opened)]
    return Source(path, shared, read)


def _of_files(path: Path, files: Sequence[Path]) -> Source:
    readers = [(file, _reader(file)) for file in files]
    for file, _ in readers:
        if file.stat().st_size == 0:
            raise UserError(f"{file} is empty", _AGAIN)
    file, reader = readers[0]

    def read(columns: Sequence[str]) -> Iterator[Row]:
        for file, reader in readers:
            with _named_errors(file):
                yield from reader.rows(file, columns)

    with _named_errors(file):
        return Source(path, reader.columns(file), read)


@contextlib.contextmanager
def _named_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as e:
        raise UserError(f"{file} is not UTF-8 text: {e.reason} at byte {e.start}", _AGAIN) from None
    except (pa.ArrowException, OSError) as e:
        raise UserError(f"{file} can't be read: {str(e).splitlines()[0]}", _AGAIN) from None
    except csv.Error as e:
        raise UserError(f"{file} can't be read as CSV: {e}", "check its quotes") from None


@dataclass(frozen=True)
class _Reader:
    columns: Callable[[Path], Sequence[str]]
    rows: Callable[[Path, Sequence[str]], Iterator[Row]]


def _parquet_columns(file: Path) -> Sequence[str]:
    names: list[str] = pq.read_schema(file).names
    return names


def _parquet_rows(file: Path, columns: Sequence[str]) -> Iterator[Row]:
    with pq.ParquetFile(file) as parquet:
        present = [c for c in columns if c in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(_BATCH, columns=present):
            yield from _filled(batch, columns)


def _arrow_columns(file: Path) -> Sequence[str]:
    with pa.memory_map(str(file)) as mapped:
        names: list[str] = _arrow_batches(mapped)[0].names
    return names


def _arrow_rows(file: Path, columns: Sequence[str]) -> Iterator[Row]:
    with pa.memory_map(str(file)) as mapped:
        schema, batches = _arrow_batches(mapped)
        for batch in batches:
            yield from _filled(batch.select([c for c in columns if c in schema.names]), columns)


def _arrow_batches(mapped: pa.MemoryMappedFile) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """An Arrow file is in one of two formats, which have the same extension."""
    try:
        stream = pa.ipc.open_stream(mapped)
        return stream.schema, iter(stream)
    except pa.ArrowInvalid:
        file = pa.ipc.open_file(mapped)
        return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))


def _filled(batch: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> Iterator[Row]:
    for row in batch.to_pylist():
        yield {c: row.get(c) for c in columns}


def _text(file: Path) -> io.TextIOWrapper:
    """A text file, decompressed if its name says so."""
    return io.TextIOWrapper(
        pa.input_stream(str(file), compression="detect"), encoding="utf-8-sig", newline=""
    )


def _parse(text: str) -> Any:
    """JSON with numbers left as text, and None for NaN."""
    return json.loads(
        text, parse_int=JsonNumber, parse_float=JsonNumber, parse_constant=lambda _: None
    )


def _lines(file: Path) -> Iterator[Mapping[str, Any]]:
    with _text(file) as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                row = _parse(line)
            except ValueError as e:
                raise UserError(
                    f"{file}:{number} is not JSON: {e}", f"mend or delete line {number}"
                ) from None
            if not isinstance(row, dict):
                raise UserError(
                    f"{file}:{number} is not an object with named fields",
                    f"mend or delete line {number}",
                )
            yield row


def _json(file: Path) -> Iterator[Mapping[str, Any]]:
    """A list of objects, alone or as the only list in an object; or JSON Lines after all.

    Rows that are lists have fields called 0, 1, ..., as `datasets` calls them.
    """
    with _text(file) as f:
        text = f.read()
    try:
        value = _parse(text)
    except json.JSONDecodeError as e:
        if e.msg == "Extra data":
            yield from _lines(file)
            return
        raise UserError(f"{file}:{e.lineno} is not JSON: {e.msg}", _AGAIN) from None
    if isinstance(value, dict):
        lists = [v for v in value.values() if isinstance(v, list)]
        value = lists[0] if len(lists) == 1 else [value]
    if isinstance(value, list) and all(isinstance(row, list) for row in value):
        value = [{str(i): field for i, field in enumerate(row)} for row in value]
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise UserError(f"{file} holds no list of objects", "a JSON file of rows is [{...}, {...}]")
    yield from value


def _csv(file: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(_CSV_CELL)
    delimiter = "\t" if ".tsv" in file.suffixes else ","
    with _text(file) as f:
        reader = csv.DictReader(f, delimiter=delimiter, strict=True)
        for row in reader:
            if None in row:
                raise csv.Error(f"line {reader.line_num} has more fields than the first")
            yield row


def _of_text(rows: Callable[[Path], Iterator[Mapping[str, Any]]]) -> _Reader:
    """A reader of rows that name their own fields; the first ones say what there is."""

    def columns(file: Path) -> Sequence[str]:
        first = itertools.islice(rows(file), _LOOKED_AT)
        return list(dict.fromkeys(key for row in first for key in row))

    def chosen(file: Path, columns: Sequence[str]) -> Iterator[Row]:
        for row in rows(file):
            yield {c: row.get(c) for c in columns}

    return _Reader(columns, chosen)


_READERS = {
    ".parquet": _Reader(_parquet_columns, _parquet_rows),
    ".arrow": _Reader(_arrow_columns, _arrow_rows),
    ".jsonl": _of_text(_lines),
    ".ndjson": _of_text(_lines),
    ".json": _of_text(_json),
    ".csv": _of_text(_csv),
    ".tsv": _of_text(_csv),
}
_COMPRESSED = {".gz", ".bz2", ".zst"}


def _reader(file: Path) -> _Reader:
    kinds = [s for s in file.suffixes if s not in _COMPRESSED]
    kind = kinds[-1].lower() if kinds else ""
    if kind not in _READERS:
        raise UserError(
            f"{file} is of a type that can't be read",
            f"the types are {', '.join(_READERS)}",
        )
    return _READERS[kind]


def _layout(path: Path, folder: str, split: str | None) -> list[Path]:
    """The files of a split, found as `datasets` finds them."""
    import datasets
    from datasets.exceptions import DatasetNotFoundError

    with tempfile.TemporaryDirectory() as cache:
        try:
            builder = datasets.load_dataset_builder(
                str(path), data_dir=folder or None, cache_dir=cache
            )
        except (DatasetNotFoundError, FileNotFoundError):
            raise UserError(
                f"{path / folder} holds no data files",
                f"the types are {', '.join(_READERS)}",
            ) from None
        except ValueError as e:
            raise UserError(
                f"{path} can't be read as one data set: {str(e).splitlines()[0]}",
                "give the folder or file of the part you want",
            ) from None
        files = builder.config.data_files or {}
    return [Path(f) for f in files[_one_split(path, list(files), split)]]


def _saved(path: Path, split: str | None) -> Source:
    """What ``save_to_disk`` wrote; `datasets` maps it into memory."""
    import datasets

    saved = datasets.load_from_disk(str(path))
    if isinstance(saved, dict):
        saved = saved[_one_split(path, list(saved), split)]

    def read(columns: Sequence[str]) -> Iterator[Row]:
        present = [c for c in columns if c in saved.column_names]
        for table in saved.select_columns(present).with_format("arrow").iter(_BATCH):
            yield from _filled(table, columns)

    return Source(path, saved.column_names, read)


def _one_split(path: Path, names: Sequence[str], wanted: str | None) -> str:
    if wanted is None:
        wanted = names[0] if len(names) == 1 else "train"
    if wanted not in names:
        raise UserError(
            f"{path} has no split {wanted!r}", f"--split {' or '.join(map(str, names))}"
        )
    return wanted
