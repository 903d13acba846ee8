"""Rows of files that llmpipe did not write."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from llmpipe.core.errors import UserError
from llmpipe.core.sources import open_parts, open_source

ROWS = [{"problem": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(5)]
COLUMNS = ["problem", "answer"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading must not even try to look a name up or connect."""

    def refuse(*_: object) -> None:
        raise AssertionError("tried to use the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def rows(path: Path, columns: list[str] | None = None, **settings: Any) -> list[dict[str, Any]]:
    return list(open_source(path, **settings).read(columns or COLUMNS))


def refused(path: Path, **settings: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        rows(path, **settings)
    assert "\n" not in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


def write_parquet(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), path)


def write_arrow_file(path: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_arrow_stream(path: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def write_jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def write_csv(path: Path) -> None:
    path.write_text("problem,answer\n" + "".join(f"{r['problem']},{r['answer']}\n" for r in ROWS))


def write_gzip(path: Path) -> None:
    with gzip.open(path, "wt") as f:
        f.write("".join(json.dumps(row) + "\n" for row in ROWS))


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.parquet": write_parquet,
    "file.arrow": write_arrow_file,
    "stream.arrow": write_arrow_stream,
    "a.jsonl": write_jsonl,
    "lines.json": write_jsonl,
    "a.jsonl.gz": write_gzip,
    "list.json": lambda path: path.write_text(json.dumps(ROWS)) and None,
    "inside.json": lambda path: path.write_text(json.dumps({"n": 5, "data": ROWS})) and None,
    "a.csv": write_csv,
    "a.tsv": lambda path: (
        path.write_text(
            "problem\tanswer\n" + "".join(f"{r['problem']}\t{r['answer']}\n" for r in ROWS)
        )
        and None
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_any_type_gives_its_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    assert list(open_source(path).columns) == COLUMNS
    assert rows(path) == ROWS
    assert rows(path, ["answer", "level"])[0] == {"answer": "1", "level": None}


def test_text_stays_as_it_was_written(tmp_path: Path) -> None:
    answers = ["3", "3.0", "4.50", "1e3", "123456789012345678901", '"007"', '"x"', "null", "NaN"]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"answer": {a}}}\n' for a in answers))
    found = [row["answer"] for row in rows(path, ["answer"])]
    assert found == [*answers[:5], "007", "x", None, None]
    path = tmp_path / "a.csv"
    path.write_text('answer,more\n007,a\n3.0,b\nNA,"c, ""d"""\n,e\n')
    assert [r["answer"] for r in rows(path, ["answer"])] == ["007", "3.0", "NA", ""]
    assert rows(path, ["more"])[2] == {"more": 'c, "d"'}


def test_long_cells_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"problem,answer\n{'long ' * 100_000},1\n", encoding="utf-8-sig")
    assert len(rows(path)[0]["problem"]) == 500_000


def test_a_hub_folder_has_splits(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write_parquet(tmp_path / "data" / "train-00000-of-00002.parquet")
    write_parquet(tmp_path / "data" / "train-00001-of-00002.parquet")
    write_parquet(tmp_path / "data" / "test-00000-of-00001.parquet")
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n# Rows\n")
    assert rows(tmp_path) == ROWS + ROWS
    assert rows(tmp_path, split="test") == ROWS
    assert "train or test" in (refused(tmp_path, split="validation").hint or "")


def test_a_folder_of_text_files_keeps_text(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("problem,answer\nq,007\n")
    assert rows(tmp_path) == [{"problem": "q", "answer": "007"}]


def test_a_folder_inside_is_read_though_the_card_has_several_configs(tmp_path: Path) -> None:
    for config in ("main", "socratic"):
        (tmp_path / config).mkdir()
        write_jsonl(tmp_path / config / "train.jsonl")
    card = "".join(
        f"- config_name: {c}\n  data_files:\n  - split: train\n    path: {c}/train*\n"
        for c in ("main", "socratic")
    )
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{card}---\n")
    assert rows(tmp_path, folder="main") == ROWS
    assert rows(tmp_path / "main") == ROWS
    assert "one data set" in refused(tmp_path).message


def test_what_save_to_disk_wrote_is_read_in_its_order(tmp_path: Path) -> None:
    whole = datasets.Dataset.from_list(ROWS)
    whole.select([3, 1]).save_to_disk(str(tmp_path / "one"))
    assert rows(tmp_path / "one") == [ROWS[3], ROWS[1]]
    datasets.DatasetDict({"train": whole, "test": whole.select([0])}).save_to_disk(
        str(tmp_path / "two")
    )
    assert rows(tmp_path / "two") == ROWS
    assert rows(tmp_path / "two", ["answer", "level"], split="test") == [
        {"answer": "1", "level": None}
    ]
    assert "test" in (refused(tmp_path / "two", split="dev").hint or "")


def test_missing_and_empty_things_are_named(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "nothing.jsonl").message
    (tmp_path / "empty").mkdir()
    assert "no data files" in refused(tmp_path / "empty").message
    (tmp_path / "empty.jsonl").touch()
    assert "is empty" in refused(tmp_path / "empty.jsonl").message
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    assert ".parquet" in (refused(tmp_path / "a.xlsx").hint or "")
    (tmp_path / "noext").write_bytes(b"x")
    assert "type" in refused(tmp_path / "noext").message
    write_jsonl(tmp_path / "a.jsonl")
    assert "split" in refused(tmp_path / "a.jsonl", split="train").message


BROKEN = {
    "line.jsonl": (b'{"problem": "a"}\n\n{"problem": "b"\n', "line.jsonl:3"),
    "scalar.jsonl": (b'{"problem": "a"}\n5\n', "scalar.jsonl:2"),
    "cut.json": (b'[{"problem": "a"},\n{"problem": ', "cut.json:2"),
    "number.json": (b"[1, 2]", "no list of objects"),
    "latin.csv": (b"problem,answer\nca\xf1on,1\n", "not UTF-8"),
    "wide.csv": (b"problem,answer\na,1,2\n", "line 2"),
    "quote.csv": (b'problem,answer\n"a,1\n', "CSV"),
    "cut.parquet": (b"PAR1" + bytes(40), "can't be read"),
    "text.arrow": (b"not arrow at all", "can't be read"),
    "torn.jsonl.gz": (gzip.compress(b'{"problem": "a"}\n' * 50)[:30], "can't be read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_with_its_line_where_it_has_lines(tmp_path: Path, name: str) -> None:
    content, said = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    assert said in refused(tmp_path / name).message


def test_a_parquet_file_cut_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes(len(whole) - 400) + whole[-360:])
    assert "can't be read" in refused(path).message


def test_rows_that_are_lists_have_numbered_fields(tmp_path: Path) -> None:
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps([[{"value": "1+1?"}, {"truth": "2"}], [{"value": "alone"}]]))
    assert list(open_source(path).columns) == ["0", "1"]
    assert rows(path, ["0", "1"]) == [
        {"0": {"value": "1+1?"}, "1": {"truth": "2"}},
        {"0": {"value": "alone"}, "1": None},
    ]
    path.write_text('[[1, 2], {"problem": "a"}]')
    assert "no list of objects" in refused(path).message


def test_parts_are_read_in_the_order_given(tmp_path: Path) -> None:
    for part in ("algebra", "geometry"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "train.jsonl").write_text(f'{{"problem": "{part}", "answer": "1"}}\n')
        (tmp_path / part / "test.jsonl").write_text('{"problem": "t", "answer": "2"}\n')
    (tmp_path / "more.jsonl").write_text('{"problem": "more", "level": 3}\n')
    source = open_parts(tmp_path, ["geometry", "algebra"], split="train")
    assert [r["problem"] for r in source.read(COLUMNS)] == ["geometry", "algebra"]
    mixed = open_parts(tmp_path, ["more.jsonl", "algebra/test.jsonl"])
    assert list(mixed.columns) == ["problem"]  # what every part has
    assert list(mixed.read(["problem"])) == [{"problem": "more"}, {"problem": "t"}]
    with pytest.raises(UserError, match=r"calculus does not exist"):
        open_parts(tmp_path, ["algebra", "calculus"], split="train")
    with pytest.raises(UserError, match=r"more\.jsonl is a file: it has no split 'train'"):
        open_parts(tmp_path, ["more.jsonl"], split="train")
