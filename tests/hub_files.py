"""The files that the hub on the loopback serves: their hashes, and the commits that they are at."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

_RACY = 50_000_000  # nanoseconds; a file this new may change again and keep its time


@dataclass(frozen=True)
class File:
    """A file of a commit. ``oid`` is git's hash, of the pointer where the file is in LFS."""

    on_disk: Path
    size: int
    oid: str
    sha256: str | None = None  # of files in LFS
    pointer_size: int = 0


class Store:
    """Folders as repos with one branch; a commit is known from the first time that it was seen."""

    def __init__(self, repos: Mapping[str, Path], lfs_from: int) -> None:
        self._repos = repos
        self._lfs_from = lfs_from
        self._hashed: dict[Path, tuple[tuple[int, int], File]] = {}
        self._commits: dict[tuple[str, str], Mapping[str, File]] = {}
        self._lock = threading.Lock()

    def head(self, repo: str) -> str:
        """The commit that a folder is at now: another after any change."""
        root = self._repos[repo]
        files = {
            p.relative_to(root).as_posix(): self.file(p)
            for p in sorted(root.rglob("*"))
            if p.is_file()
        }
        digest = hashlib.sha1(repo.encode())
        for path, file in files.items():
            digest.update(f"{path}\0{file.oid}\n".encode())
        commit = digest.hexdigest()
        self._commits.setdefault((repo, commit), files)
        return commit

    def resolve(self, repo: str, revision: str | None) -> str | None:
        """The commit of a branch (None: main) or commit; None where it was never seen."""
        if revision in (None, "main"):
            return self.head(repo)
        if (repo, revision) in self._commits or self.head(repo) == revision:
            return revision
        return None

    def listing(self, repo: str, commit: str) -> Mapping[str, File] | None:
        """The files of a commit that was seen; None where one of them was overwritten."""
        files = self._commits[repo, commit]
        return files if all(self._unchanged(f) for f in files.values()) else None

    def find(self, repo: str, commit: str, path: str) -> File | None:
        """One file of a commit that was seen, without a look at the others."""
        file = self._commits[repo, commit].get(path)
        return file if file and self._unchanged(file) else None

    def freeze(self, repo: str, to: Path) -> str:
        """Copy what a folder holds to ``to``, so that its commit can be had after it changes."""
        commit = self.head(repo)
        copies: dict[str, File] = {}
        for path, file in self._commits[repo, commit].items():
            copy = to / commit / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.exists():
                shutil.copyfile(file.on_disk, copy)
            copies[path] = replace(file, on_disk=copy)
        self._commits[repo, commit] = copies
        return commit

    def _unchanged(self, file: File) -> bool:
        try:
            return self.file(file.on_disk) == file
        except FileNotFoundError:
            return False

    def file(self, path: Path) -> File:
        """The hashes of a file, read once while its size and time stay as they are."""
        now = path.stat()
        state = (now.st_size, now.st_mtime_ns)
        known = self._hashed.get(path)
        if known and known[0] == state:
            return known[1]
        with self._lock:
            known = self._hashed.get(path)
            if known and known[0] == state:
                return known[1]
            file = self._read(path, now.st_size)
            if time.time_ns() - now.st_mtime_ns > _RACY:
                self._hashed[path] = (state, file)
        return file

    def _read(self, path: Path, size: int) -> File:
        if size < self._lfs_from:
            return File(path, size, blob(path.read_bytes()))
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        pointer = (
            f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
        ).encode()
        return File(path, size, blob(pointer), sha256, len(pointer))


def blob(content: bytes) -> str:
    """Git's hash of a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
