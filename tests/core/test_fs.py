"""Files are put in place whole, and what is no file is left what it is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from llmpipe.core import fs
from llmpipe.core.errors import path_error


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    fs.write(path, b"old")
    (tmp_path / "page.html.tmp").mkdir()  # in the way of the new one
    with pytest.raises(IsADirectoryError):
        fs.write(path, b"new")
    assert path.read_bytes() == b"old"
    (tmp_path / "page.html.tmp").rmdir()
    fs.write(path, b"new")
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=fs.write, args=(pipe, b"page"))
    writing.start()
    assert pipe.read_bytes() == b"page"
    writing.join()
    assert pipe.is_fifo()


def test_an_error_of_a_path_is_the_user_s(tmp_path: Path) -> None:
    said = path_error(PermissionError(13, "Permission denied", "my runs/a"))
    assert said is not None
    assert said.message == "my runs/a can't be used: Permission denied"
    assert said.hint == "ls -ld 'my runs/a'"
    with pytest.raises(OSError, match="too long") as long:
        (tmp_path / ("n" * 300)).exists()
    said = path_error(long.value)
    assert said is not None
    assert len(said.message) < 200
    assert path_error(PermissionError(13, "Permission denied")) is None  # of no path
    assert path_error(FileNotFoundError(2, "No such file or directory", "a")) is None
