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
from typing import Any, Self

from llmpipe.core.errors import UserError

_SYNC_SECONDS = 1.0


class Journal:
    """Open the journal at ``path``, or begin one with ``header``.

    Raises:
        UserError: it was begun with another header, or a line before the last is damaged.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.offsets: dict[tuple[str, int], int] = {}
        self._synced = time.monotonic()
        fresh = not path.exists() or not self._repair()
        self._file = path.open("ab")
        if fresh:
            self._write({"journal": 1, **header})
            self.sync()
        else:
            self._check(header)

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

    def _check(self, header: Mapping[str, Any]) -> None:
        lines = self._lines()
        _, found = next(lines)
        wanted = json.loads(json.dumps({"journal": 1, **header}))
        if found != wanted:
            changed = [
                f"{k} was {json.dumps(found.get(k))}, is now {json.dumps(wanted.get(k))}"
                for k in sorted(found.keys() | wanted.keys())
                if found.get(k) != wanted.get(k)
            ]
            raise UserError(
                f"{self.path.parent} was begun with other settings: {'; '.join(changed)}",
                f"go on with the old ones, choose another -o, or rm -r {self.path.parent}",
            )
        for offset, row in lines:
            self.offsets[row["problem_id"], row["sample"]] = offset

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        offset = 0
        with self.path.open("rb") as f:
            for number, line in enumerate(f, 1):
                try:
                    yield offset, json.loads(line)
                except ValueError:
                    raise UserError(
                        f"{self.path}:{number} is damaged",
                        f"delete line {number}: sed -i {number}d {self.path}",
                    ) from None
                offset += len(line)

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
        offset = self._file.tell()
        self._file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        return offset

    def sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def read(self, keys: Iterator[tuple[str, int]]) -> Iterator[dict[str, Any]]:
        """The rows of the given keys, in that order."""
        with self.path.open("rb") as f:
            for key in keys:
                f.seek(self.offsets[key])
                yield json.loads(f.readline())

    def close(self) -> None:
        self.sync()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()
