"""Files of a download on this machine: on their way, or whole as their hash says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from llmpipe.core.endpoints import RemoteFile

_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class LocalFile:
    """A file that is whole; ``endpoint`` is None where it was there before."""

    size: int
    sha256: str
    blob: str
    mtime_ns: int
    endpoint: str | None


class TooLongError(Exception):
    """More bytes came than the file has."""


class Digest:
    """The hashes of a file's bytes as they come: SHA-256, and git's blob hash if that is listed."""

    def __init__(self, file: RemoteFile) -> None:
        self.size = 0
        self._file = file
        self._sha256 = hashlib.sha256()
        header = b"blob %d\0" % file.size
        self._blob = None if file.sha256 else hashlib.sha1(header, usedforsecurity=False)

    def update(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._sha256.update(chunk)
        if self._blob:
            self._blob.update(chunk)

    def right(self) -> str | None:
        """The SHA-256, where the bytes are those of the file that is listed."""
        sha256 = self._sha256.hexdigest()
        found, listed = (
            (self._blob.hexdigest(), self._file.blob) if self._blob else (sha256, self._file.sha256)
        )
        return sha256 if found == listed else None


def right(path: Path, file: RemoteFile, alive: Callable[[], None]) -> str | None:
    """The SHA-256 of a file on disk, where it is the one listed; ``alive`` may raise to stop."""
    digest = Digest(file)
    with path.open("rb") as f:
        while chunk := f.read(_CHUNK):
            alive()
            digest.update(chunk)
    return digest.right()


class Partial:
    """A file on its way: its bytes so far on disk, and their hash. Goes on with what is there.

    ``resumed`` says whether bytes of an earlier run, or of another endpoint, are among them.
    """

    def __init__(self, path: Path, file: RemoteFile) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = file
        self._open()

    def _open(self) -> None:
        self._digest = Digest(self._file)
        if self._path.is_symlink():  # never write through one
            self._path.unlink()
        self._out = self._path.open("a+b", buffering=0)
        self._out.seek(0)
        while chunk := self._out.read(_CHUNK):
            self._digest.update(chunk)
        self.resumed = self.size > 0
        if self.size > self._file.size or (self.size == self._file.size and not self.right()):
            self.restart()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._out.close()

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._digest.size

    @property
    def complete(self) -> bool:
        """Whether all bytes are there, right or wrong."""
        return self.size == self._file.size

    def write(self, chunk: bytes) -> None:
        """Append bytes.

        Raises:
            TooLongError: with them there would be more than the file has; they are not written.
        """
        if self.size + len(chunk) > self._file.size:
            raise TooLongError
        rest = memoryview(chunk)
        while rest:
            rest = rest[self._out.write(rest) :]
        self._digest.update(chunk)

    def restart(self) -> None:
        """Throw away what is there."""
        self._out.truncate(0)
        self._digest = Digest(self._file)
        self.resumed = False

    def take(self, path: Path) -> None:
        """Go on with the bytes of another file, which is moved."""
        self._out.close()
        path.replace(self._path)
        self._open()

    def right(self) -> str | None:
        """The SHA-256, where the bytes are those of the file that is listed."""
        return self._digest.right()

    def move_to(self, path: Path) -> None:
        """Give the file its name, in place of any other."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path.replace(path)
