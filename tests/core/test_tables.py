from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from llmpipe.core.tables import ShardWriter, read_batches

NUMBERS = pa.schema([("n", pa.int64())])
LISTS = pa.schema([("ids", pa.list_(pa.int32())), ("weights", pa.list_(pa.float32()))])


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"n": n} for n in numbers], schema=NUMBERS)


def written(folder: Path, rows: int | None, *batches: pa.RecordBatch) -> dict[str, list[Any]]:
    writer = ShardWriter(folder, NUMBERS, rows)
    for some in batches:
        writer.write(some)
    files = writer.close()
    assert writer.rows == sum(some.num_rows for some in batches)
    assert sorted(folder.iterdir()) == files
    return {file.name: pq.read_table(file)["n"].to_pylist() for file in files}


def test_files_get_as_many_rows_as_asked_for_whatever_the_batches(tmp_path: Path) -> None:
    wanted = {
        "train-00000-of-00003.parquet": [0, 1, 2, 3],
        "train-00001-of-00003.parquet": [4, 5, 6, 7],
        "train-00002-of-00003.parquet": [8, 9],
    }
    assert written(tmp_path / "one", 4, batch(*range(10))) == wanted
    assert written(tmp_path / "many", 4, *(batch(n) for n in range(10))) == wanted
    assert written(tmp_path / "some", 4, batch(0, 1, 2), batch(), batch(*range(3, 10))) == wanted


@pytest.mark.parametrize("rows", [None, 4])
def test_there_is_one_file_at_least_and_no_empty_one_after_the_last(
    tmp_path: Path, rows: int | None
) -> None:
    assert written(tmp_path / "none", rows) == {"train-00000-of-00001.parquet": []}
    assert written(tmp_path / "full", rows, batch(1, 2, 3, 4)) == {
        "train-00000-of-00001.parquet": [1, 2, 3, 4]
    }


def test_lists_of_numbers_are_split_by_bytes_and_read_back_as_they_were(tmp_path: Path) -> None:
    rows = [{"ids": [1, 70000, -100], "weights": None}, {"ids": [], "weights": [0.5, 0.25]}]
    writer = ShardWriter(tmp_path, LISTS)
    writer.write(pa.RecordBatch.from_pylist(rows, schema=LISTS))
    (file,) = writer.close()
    assert [row for some in read_batches([file]) for row in some.to_pylist()] == rows
    metadata = pq.ParquetFile(file).metadata.row_group(0)
    for i in range(2):
        assert "BYTE_STREAM_SPLIT" in metadata.column(i).encodings
        assert metadata.column(i).compression == "ZSTD"
    plain = ShardWriter(tmp_path / "plain", NUMBERS)
    plain.write(batch(1, 1))
    (file,) = plain.close()
    assert "RLE_DICTIONARY" in pq.ParquetFile(file).metadata.row_group(0).column(0).encodings
