"""The journal: nothing written is lost, nothing is there twice, a torn end is repaired."""

from __future__ import annotations

import os
import threading
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


def turn(problem: str, sample: int, number: int) -> dict[str, Any]:
    return {**row(problem, sample), "open": True, "turn": number}


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


def test_samples_are_found_in_order_however_they_came(tmp_path: Path) -> None:
    keys = [("b", 3), ("a", 40), ("b", 0), ("c", 2), ("a", 1), ("b", 1)]
    with Journal(tmp_path / "j", HEADER) as journal:
        for key in keys:
            journal.append(row(*key, text=f"{key}"))
    with Journal(tmp_path / "j", HEADER) as journal:
        assert list(journal.problems()) == ["b", "a", "c"]
        found = [(p, s) for p in "abcd" for s in journal.samples(p)]
        assert found == sorted(keys)
        assert [r["text"] for r in journal.read(found)] == [f"{key}" for key in sorted(keys)]
        assert all(key in journal for key in keys)
        assert not any(key in journal for key in [("b", 2), ("b", 4), ("b", -1), ("d", 0)])
        with pytest.raises(KeyError):
            list(journal.read([("b", 2)]))


def test_a_conversation_is_open_until_a_row_ends_it(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append(turn("a", 0, 1))
        journal.append(turn("b", 2, 1))
        journal.append(turn("a", 0, 2))
        journal.append(row("a", 1))
    for _ in range(2):  # as it was opened, and again
        with Journal(tmp_path / "j", HEADER) as journal:
            assert len(journal) == 1
            assert ("a", 0) not in journal
            assert list(journal.samples("a")) == [1]
            assert list(journal.open_keys()) == [("a", 0), ("b", 2)]
            assert journal.open_row("a", 0) == turn("a", 0, 2)
            assert journal.open_row("a", 1) is None
            assert journal.is_open("a", 0)
            assert not journal.is_open("a", 1)
            assert journal.open_row("c", 0) is None
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append(row("a", 0, "the end"))
        assert journal.open_row("a", 0) is None
        assert list(journal.open_keys()) == [("b", 2)]
        for late in (row("a", 0), turn("a", 0, 3)):
            with pytest.raises(ValueError, match="in the journal already"):
                journal.append(late)
        assert [r["text"] for r in journal.read([("a", 0), ("a", 1)])] == ["the end", "x"]
    with Journal(tmp_path / "j", HEADER) as journal:
        assert list(journal.open_keys()) == [("b", 2)]
        assert len(journal) == 2


def test_open_conversations_bind_to_their_settings(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append(turn("a", 0, 1))
    with pytest.raises(UserError, match=r"temperature was 1\.0, is now 0\.5"):
        Journal(tmp_path / "j", {**HEADER, "temperature": 0.5})


def test_of_a_sample_that_two_runs_wrote_the_first_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append(row("a", 0, "first"))
    with (tmp_path / "j").open("ab") as f:  # where the file system has no locks
        f.write(b'{"problem_id": "a", "sample": 0, "text": "second"}\n')
    with Journal(tmp_path / "j", HEADER) as journal:
        assert "1 samples twice" in caplog.text
        assert [r["text"] for r in journal.read([("a", 0)])] == ["first"]


def test_the_last_row_reaches_the_disk_though_none_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    synced = threading.Event()
    folders: set[str] = set()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        name = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if Path(name) == path:
            sizes.append(os.fstat(descriptor).st_size)
            if sizes[-1] == path.stat().st_size and len(sizes) > 1:
                synced.set()
        else:
            folders.add(name)

    path = tmp_path.resolve() / "out.partial" / "j"
    path.parent.mkdir()
    monkeypatch.setattr(os, "fsync", fsync)
    with Journal(path, HEADER) as journal:
        journal.append(row("a", 0))
        assert folders == {str(path.parent), str(path.parent.parent)}  # its name is there to stay
        assert synced.wait(60)
        synced.clear()
        journal.append(row("a", 1))
        assert synced.wait(60)  # again, after it had nothing to do
        journal.append(row("a", 2))
    assert sizes[-1] == path.stat().st_size


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


def test_an_older_header_lacks_what_is_at_its_default(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append(row("a", 0))
    newer, defaults = {**HEADER, "max_turns": 1}, {"temperature": 0.5, "max_turns": 1}
    with Journal(tmp_path / "j", newer, defaults) as journal:
        assert ("a", 0) in journal
    with pytest.raises(UserError, match="max_turns was 1, is now 2"):
        Journal(tmp_path / "j", {**newer, "max_turns": 2}, defaults)


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
    for wrong in (b'{"problem_id": "a"}\n', b'{"problem_id": "a", "sample": -1}\n'):
        (tmp_path / "j").write_bytes(lines[0] + wrong + lines[2])
        with pytest.raises(UserError, match=r"j:2 is damaged"):
            Journal(tmp_path / "j", HEADER)
    (tmp_path / "j").write_bytes(b'{"jour\n' + lines[1])
    with pytest.raises(UserError, match=r"j:1 is damaged") as lost:
        Journal(tmp_path / "j", HEADER)
    assert "--force keeps it aside" in str(lost.value.hint)
