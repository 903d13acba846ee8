"""Files and folders: digests, atomic writes, a lock on an output."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llmpipe.core.errors import UserError

log = logging.getLogger(__name__)

_CHUNK = 1 << 20
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}
# Above this a file's digest is taken from its size, its beginning and its end: hashing a 70B
# model's weights would take minutes at every start, and weights are told apart by far less.
_SAMPLED = 256 << 20


def sha256(path: Path) -> str:
    """The SHA-256 of a whole file, in hex."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def digest(path: Path) -> str:
    """A digest of a file's content, or of all files in a folder with their names.

    Files over 256 MiB count by size, first MiB and last MiB. Hidden files and folders don't count,
    so that a download's bookkeeping is no part of the content.

    Raises:
        UserError: nothing is there.
    """
    if path.is_file():
        return _file_digest(path)
    if not path.is_dir():
        raise UserError(f"{path} does not exist", "check the path")
    h = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        name = file.relative_to(path)
        if not any(part.startswith(".") for part in name.parts):
            h.update(f"{name.as_posix()}\0{_file_digest(file)}\n".encode())
    return h.hexdigest()


def _file_digest(path: Path) -> str:
    size = path.stat().st_size
    if size <= _SAMPLED:
        return sha256(path)
    with path.open("rb") as f:
        head = f.read(_CHUNK)
        f.seek(-_CHUNK, os.SEEK_END)
        return hashlib.sha256(str(size).encode() + head + f.read()).hexdigest()


def size(count: float) -> str:
    """Bytes as people read them, in powers of 1000 as disks and the hub count."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def is_inside(name: str) -> bool:
    """Whether a file's name in a download stays in its folder, and out of llmpipe's own there."""
    parts = Path(name).parts
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return bool(parts) and not (
        ".." in parts or name.startswith("/") or "\0" in name or parts[0] == ".llmpipe"
    )


def write_json(path: Path, value: Any) -> None:
    """`write` a value as JSON, indented."""
    write(path, (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode())


def write(path: Path, content: bytes) -> None:
    """Write beside ``path``, sync it, and rename it over; then its name is synced, too.

    A device or a pipe is written to, as there is nothing to lose, and it must not be replaced.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    beside = path.with_name(path.name + ".tmp")
    with beside.open("wb") as f:
        f.write(content)
        f.flush()
        os.fsync(f.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def sync(path: Path) -> None:
    """Have the disk hold a file that was written and closed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Have the disk hold the names in a folder, where the file system can do that."""
    with contextlib.suppress(OSError):
        sync(path)


@contextlib.contextmanager
def locked(path: Path, what: str, *, wait: bool = False) -> Iterator[None]:
    """Hold an exclusive lock on the file ``path`` (made where missing).

    The kernel lets go of it when the process ends, however it ends. Some network file systems have
    no locks: there it is said, and nothing is held.

    Raises:
        UserError: another process holds it, and this one is not to ``wait``.
    """
    with path.open("a") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno in _NO_LOCKS:
                log.warning("%s can't be locked here: don't run llmpipe twice on it", what)
                yield
                return
            if not isinstance(e, BlockingIOError):
                raise
            if not wait:
                raise UserError(
                    f"another llmpipe run is writing {what}",
                    "wait for it to end, or choose another -o",
                ) from None
            log.info("another llmpipe run is writing %s: waiting for it", what)
            fcntl.flock(f, fcntl.LOCK_EX)
        yield
