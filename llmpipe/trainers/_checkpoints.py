"""Checkpoints that a killed training goes on from: only whole ones count."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from llmpipe.core import fs

_WHOLE = "whole"  # a file in a checkpoint, written last
_NAME = re.compile(r"checkpoint-(\d+)")


def seal(checkpoint: Path) -> None:
    """Say of a checkpoint that it is whole, once the disk holds all of it."""
    for file in checkpoint.rglob("*"):
        if file.is_file():
            fs.sync(file)
    fs.write(checkpoint / _WHOLE, b"")
    fs.sync_folder(checkpoint.parent)


def last_whole(folder: Path) -> tuple[int, Path] | None:
    """The step and the folder of the last checkpoint below ``folder`` that was written whole."""
    found = [(step, path) for step, path in _all(folder) if (path / _WHOLE).is_file()]
    return max(found, default=None)


def remove_torn(folder: Path) -> None:
    """Take away what a kill left of a checkpoint that it cut short."""
    for _, path in _all(folder):
        if not (path / _WHOLE).is_file():
            shutil.rmtree(path)


def _all(folder: Path) -> list[tuple[int, Path]]:
    paths = folder.iterdir() if folder.is_dir() else ()
    return [(int(m[1]), path) for path in paths if (m := _NAME.fullmatch(path.name))]
