"""An append-only journal of JSON lines that survives a kill.

The first line is a header that says whose journal it is. Lines reach the kernel at once (a killed
process loses none) and the disk once a second (a power cut loses a second). A torn last line, left
by a write that was cut, is cut off when the journal is opened.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from llmpipe.core.errors import UserError

_SYNC_SECONDS = 1.0


def begun_with(path: Path) -> dict[str, Any]:
    """The header of the journal at ``path``; empty where there is none, or a damaged one."""
    try:
        with path.open(encoding="utf-8") as f:
            header: dict[str, Any] = json.loads(f.readline())
    except (FileNotFoundError, ValueError):
        return {}
    return header if isinstance(header, dict) else {}


class Journal:
    """Open the journal at ``path``, or begin one with ``header`` at the first row.

    ``header`` is what JSON can hold, and is read back the same.

    Raises:
        UserError: it was begun with another header, or a line before the last is damaged.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.offsets: dict[tuple[str, int], int] = {}
        self._synced = time.monotonic()
        self._header = header
        self._file: BinaryIO | None = None
        if path.exists() and self._repair() and self._read_offsets():
            self._file = path.open("ab")

    def _repair(self) -> bool:
        """Cut a torn last line off. False if nothing is left, not even the header."""
        with self.path.open("r+b") as f:
            end = f.seek(0, os.SEEK_END)
            good = end
            while good:  # back to the end of the last whole line
                step = max(0, good - (1 << 16))
                f.seek(step)
                newline = f.read(good - step).rfind(b"\n")
                if newline >= 0:
                    good = step + newline + 1
                    break
                good = step
            if good < end:
                f.truncate(good)
            return good > 0

    def _read_offsets(self) -> bool:
        """Find the rows; False if there are none, and so nothing that binds to the old header."""
        lines = self._lines()
        _, found = next(lines)
        if "journal" not in found:
            raise UserError(
                f"{self.path}:1 is damaged: under which settings it was begun can't be read",
                "--force keeps it aside and starts over",
            )
        for number, (offset, row) in enumerate(lines, 2):
            if not {"problem_id", "sample"} <= row.keys():
                raise self._damaged(number)
            self.offsets[row["problem_id"], row["sample"]] = offset
        changed = [
            f"{k} was {json.dumps(found.get(k))}, is now {json.dumps(self._header.get(k))}"
            for k in sorted(found.keys() | self._header.keys())
            if found.get(k) != self._header.get(k)
        ]
        if changed and self.offsets:
            raise UserError(
                f"{self.path.parent} was begun with other settings: {'; '.join(changed)}",
                "go on with those, choose another -o, or --force to keep them aside and start over",
            )
        return bool(self.offsets)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        offset = 0
        with self.path.open("rb") as f:
            for number, line in enumerate(f, 1):
                try:
                    row = json.loads(line)
                except ValueError:
                    row = None
                if not isinstance(row, dict):
                    if number > 1:
                        raise self._damaged(number)
                    row = {}
                yield offset, row
                offset += len(line)

    def _damaged(self, number: int) -> UserError:
        return UserError(
            f"{self.path}:{number} is damaged",
            f"delete that line, and its sample is drawn again: sed -i {number}d {self.path}",
        )

    def __contains__(self, key: tuple[str, int]) -> bool:
        return key in self.offsets

    def __len__(self) -> int:
        return len(self.offsets)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row with ``problem_id`` and ``sample``; a second row of the same key is refused."""
        key = (row["problem_id"], row["sample"])
        if key in self.offsets:
            raise ValueError(f"{key} is in the journal already")
        self.offsets[key] = self._write(row)
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self.sync()

    def _write(self, row: Mapping[str, Any]) -> int:
        if self._file is None:
            # Begun with the first row: a run that never drew one binds nobody to its settings.
            self._file = self.path.open("wb")
            self._write(self._header)
        offset = self._file.tell()
        self._file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        return offset

    def sync(self) -> None:
        """Have the disk hold what was written."""
        if self._file:
            os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def read(self, keys: Iterator[tuple[str, int]]) -> Iterator[dict[str, Any]]:
        """The rows of the given keys, in that order."""
        if not self.offsets:
            return
        with self.path.open("rb") as f:
            for key in keys:
                f.seek(self.offsets[key])
                yield json.loads(f.readline())

    def close(self) -> None:
        self.sync()
        if self._file:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()
