"""The journal: nothing written is lost, nothing is there twice, a torn end is repaired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmpipe.core.errors import UserError
from llmpipe.core.journal import Journal, begun_with

HEADER = {"journal": 1, "model": "m", "temperature": 1.0}


def row(problem: str, sample: int, text: str = "x") -> dict[str, Any]:
    return {"problem_id": problem, "sample": sample, "text": text}


def test_rows_come_back_in_any_order_after_reopening(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append(row("a", 0, "first\nline, «quotes» and 中文"))
        journal.append(row("b", 1, "second"))
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append(row("a", 1, "third"))
        assert ("b", 1) in journal
        assert ("b", 0) not in journal
        texts = [r["text"] for r in journal.read(iter([("a", 1), ("b", 1), ("a", 0)]))]
    assert texts == ["third", "second", "first\nline, «quotes» and 中文"]


def test_a_key_is_never_there_twice(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append(row("a", 0))
        with pytest.raises(ValueError, match="in the journal already"):
            journal.append(row("a", 0))


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(min_value=0, max_value=400))
def test_cut_anywhere_it_keeps_every_whole_line(cut: int, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    with Journal(path, HEADER) as journal:
        for i in range(5):
            journal.append(row("p", i, "é" * i))
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    lines = max(0, whole[:cut].count(b"\n") - 1)  # the header is one
    with Journal(path, HEADER) as journal:
        assert len(journal) == lines
        for i in range(lines, 5):
            journal.append(row("p", i, "é" * i))
    assert path.read_bytes() == whole


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append(row("a", 0))
    with pytest.raises(UserError, match=r"temperature was 1\.0, is now 0\.5"):
        Journal(tmp_path / "j", {**HEADER, "temperature": 0.5})


def test_what_never_drew_a_row_binds_nobody(tmp_path: Path) -> None:
    Journal(tmp_path / "j", HEADER).close()
    assert not (tmp_path / "j").exists()
    (tmp_path / "j").write_text(
        '{"journal": 1, "model": "m", "temperature": 1.0}\n{"problem_id": "a", "sam'
    )
    with Journal(tmp_path / "j", {**HEADER, "temperature": 0.5}) as journal:
        journal.append(row("a", 0))
    assert begun_with(tmp_path / "j") == {**HEADER, "temperature": 0.5}
    assert begun_with(tmp_path / "none") == {}


def test_damage_before_the_end_is_said_with_its_line(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append(row("a", 0))
        journal.append(row("a", 1))
    lines = (tmp_path / "j").read_bytes().splitlines(keepends=True)
    (tmp_path / "j").write_bytes(lines[0] + b'{"problem_id": \n' + lines[2])
    with pytest.raises(UserError, match=r"j:2 is damaged"):
        Journal(tmp_path / "j", HEADER)
    (tmp_path / "j").write_bytes(lines[0] + b"5\n" + lines[2])
    with pytest.raises(UserError, match=r"j:2 is damaged"):
        Journal(tmp_path / "j", HEADER)
    (tmp_path / "j").write_bytes(b'{"jour\n' + lines[1])
    with pytest.raises(UserError, match=r"j:1 is damaged") as lost:
        Journal(tmp_path / "j", HEADER)
    assert "--force keeps it aside" in str(lost.value.hint)
