"""An append-only journal of JSON lines that survives a kill.

The first line is a header that says whose journal it is. Lines reach the kernel at once (a killed
process loses none) and the disk within a second (a power cut loses a second). A torn last line,
left by a write that was cut, is cut off when the journal is opened.

A row with ``"open": true`` is a conversation that goes on; the last row of a sample counts.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

from llmpipe.core import fs
from llmpipe.core.errors import UserError
from llmpipe.core.sample_index import SampleIndex
from llmpipe.core.syncer import Syncer

log = logging.getLogger(__name__)


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

    ``header`` is what JSON can hold, and is read back the same; of an older one, ``defaults`` says
    what a key means that it lacks. ``whole`` says whether a row that was read has all that one
    needs. ``len`` and ``in`` are about finished samples.

    Raises:
        UserError: it was begun with another header, or a line before the last is damaged.
    """

    def __init__(
        self,
        path: Path,
        header: Mapping[str, Any],
        defaults: Mapping[str, Any] | None = None,
        whole: Callable[[Mapping[str, Any]], bool] = lambda row: True,
    ) -> None:
        self.path = path
        self._whole = whole
        self._index = SampleIndex()
        self._end = 0
        self._header = header
        self._defaults = defaults or {}
        self._file: BinaryIO | None = None
        self._syncer: Syncer | None = None
        if path.exists() and self._repair() and self._read_index():
            self._begin("ab")

    def _begin(self, mode: Literal["ab", "wb"]) -> BinaryIO:
        self._file = file = self.path.open(mode)
        self._syncer = Syncer(file.fileno())
        return file

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
            self._end = good
            return good > 0

    def _read_index(self) -> bool:
        """Find the rows; False if there are none, and so nothing that binds to the old header."""
        lines = self._lines()
        _, found = next(lines)
        if "journal" not in found:
            raise UserError(
                f"{self.path}:1 is damaged: under which settings it was begun can't be read",
                "--force keeps it aside and starts over",
            )
        twice = 0
        for number, (offset, row) in enumerate(lines, 2):
            problem, sample = row.get("problem_id"), row.get("sample")
            if not (isinstance(problem, str) and isinstance(sample, int) and self._whole(row)):
                raise self._damaged(number)
            if (problem, sample) in self:
                twice += 1  # two runs at once, on a file system without locks
                continue
            try:
                self._index.put(problem, sample, offset, open_=_is_open(row))
            except ValueError:
                raise self._damaged(number) from None
        if twice:
            log.warning("%s has %d samples twice: the first of each is kept", self.path, twice)
        found = {**self._defaults, **found}
        changed = [
            f"{k} was {json.dumps(found.get(k))}, is now {json.dumps(self._header.get(k))}"
            for k in sorted(found.keys() | self._header.keys())
            if found.get(k) != self._header.get(k)
        ]
        begun = bool(self._index.finished or self._index.open)
        if changed and begun:
            raise UserError(
                f"{self.path.parent} was begun with other settings: {'; '.join(changed)}",
                "go on with those, choose another -o, or --force to keep them aside and start over",
            )
        return begun

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
        return self._index.place(*key) is not None

    def __len__(self) -> int:
        return self._index.finished

    def problems(self) -> Iterator[str]:
        """The problems that have a sample here, finished or open."""
        return self._index.problems()

    def samples(self, problem_id: str) -> Iterator[int]:
        """The numbers of a problem's finished samples, ascending."""
        return self._index.samples(problem_id)

    def is_open(self, problem_id: str, sample: int) -> bool:
        """Whether this is a conversation that goes on."""
        return self._index.place(problem_id, sample, open_=True) is not None

    def open_keys(self) -> Iterator[tuple[str, int]]:
        """Problem and sample number of the conversations that go on.

        Rows may be appended meanwhile.
        """
        for problem in list(self._index.problems()):
            for sample in list(self._index.samples(problem, open_=True)):
                yield problem, sample

    def open_row(self, problem_id: str, sample: int) -> dict[str, Any] | None:
        """The last row of a conversation that goes on; None where there is none."""
        place = self._index.place(problem_id, sample, open_=True)
        if place is None:
            return None
        with self.path.open("rb") as f:
            return _row_at(f, place)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row with ``problem_id`` and ``sample``, which may say that it is ``open``.

        An open row takes the place of the open one before; one without ``open`` finishes the
        sample.

        Raises:
            ValueError: the sample is finished already.
        """
        key = (row["problem_id"], row["sample"])
        if key in self:
            raise ValueError(f"{key} is in the journal already")
        offset = self._write(row)
        self._index.put(*key, offset, open_=_is_open(row))

    def _write(self, row: Mapping[str, Any]) -> int:
        file = self._file
        if file is None:
            # Begun with the first row: a run that never drew one binds nobody to its settings.
            file = self._begin("wb")
            self._end = 0
            self._write(self._header)
            self.sync()
            fs.sync_folder(self.path.parent)
            fs.sync_folder(self.path.parent.parent)
        offset = self._end
        line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
        file.write(line)
        file.flush()
        self._end += len(line)
        if self._syncer:
            self._syncer.written()
        return offset

    def sync(self) -> None:
        """Have the disk hold what was written."""
        if self._file:
            os.fsync(self._file.fileno())

    def read(self, keys: Iterable[tuple[str, int]]) -> Iterator[dict[str, Any]]:
        """The rows of the given finished samples, in that order.

        Raises:
            KeyError: one isn't finished.
        """
        if not len(self):
            return
        with self.path.open("rb") as f:
            for key in keys:
                place = self._index.place(*key)
                if place is None:
                    raise KeyError(key)
                yield _row_at(f, place)

    def close(self) -> None:
        """Have the disk hold all of it. No row can be added any more."""
        syncer, self._syncer = self._syncer, None
        try:
            if syncer:
                syncer.stop()
                self.sync()
        finally:
            if self._file:
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


def _is_open(row: Mapping[str, Any]) -> bool:
    return bool(row.get("open"))


def _row_at(file: BinaryIO, place: int) -> dict[str, Any]:
    file.seek(place)
    row: dict[str, Any] = json.loads(file.readline())
    return row
