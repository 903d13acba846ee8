"""A folder that a download goes to: its manifest, and which of its files may be replaced.

Only what llmpipe brought and nobody changed since is ever overwritten or removed; any other file
that is in the way is moved to ``.llmpipe/replaced/``.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import threading
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from llmpipe.core import fs
from llmpipe.core.errors import UserError
from llmpipe.core.partial import LocalFile, Partial
from llmpipe.core.provenance import stamp
from llmpipe.core.refusals import DownloadError

log = logging.getLogger(__name__)

_FORMAT = 2


@dataclass(frozen=True, kw_only=True)
class Download:
    """What was brought: ``asked`` are the settings, ``about`` how and when it came."""

    repo: str
    repo_type: str
    commit: str
    endpoint: str
    asked: Mapping[str, Any]
    files: Mapping[str, LocalFile]
    left_out: Mapping[str, str]
    about: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The manifest at ``path``; None where there is none, or none that can be understood."""
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            held = None
        try:
            if (
                held["format"] != _FORMAT
                or not held["files"]
                or not all(map(fs.is_inside, held["files"]))
            ):
                raise ValueError
            files = {name: LocalFile(**file) for name, file in held["files"].items()}
            known = {f.name: held[f.name] for f in fields(cls) if f.name != "files"}
            if not isinstance(held["asked"]["revision"], str) or not isinstance(
                held["commit"], str
            ):
                raise ValueError
            return cls(**known, files=files)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def write(self, path: Path) -> None:
        fs.write_json(path, {"format": _FORMAT, **asdict(self)})


class LocalFolder:
    """``manifest`` is what the folder holds; ``before`` what it held when an update began."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._own = path / ".llmpipe"
        self.log = self._own / "run.log"
        self.lock = self._own / "lock"
        self.aside = self._own / "partial"
        self._placing = threading.Lock()
        self.look()

    def look(self) -> None:
        """Read the manifests again: another process may have been here."""
        path = self._own / "manifest.json"
        self.manifest = Download.read(path)
        self.before = self.manifest or Download.read(self._own / "before.json")
        if self.manifest is None and path.exists():
            log.info("%s can't be read: looking at the hub again", path)

    def make(self) -> None:
        """Make the folder.

        Raises:
            UserError: llmpipe's own folder in it leads elsewhere.
        """
        self._own.mkdir(parents=True, exist_ok=True)
        for own in (self._own, self.aside):
            if own.is_symlink():
                raise UserError(f"{own} is a link", f"rm {own}, or choose another --local-dir")

    def whole(self) -> bool:
        """Whether every file is as it was brought; one whose time has changed is read again."""
        return self.manifest is not None and all(
            self._same(name, file) or self._equal(name, file)
            for name, file in self.manifest.files.items()
        )

    def _same(self, name: str, file: LocalFile) -> bool:
        """Whether a file has the size and the time that it was brought with."""
        try:
            now = (self.path / name).stat()
        except OSError:
            return False
        return (now.st_size, now.st_mtime_ns) == (file.size, file.mtime_ns)

    def _equal(self, name: str, file: LocalFile) -> bool:
        path = self.path / name
        try:
            return path.stat().st_size == file.size and fs.sha256(path) == file.sha256
        except OSError:
            return False

    def begin(self) -> None:
        """While files change there is no manifest, so that nobody takes the folder for whole."""
        with contextlib.suppress(FileNotFoundError):
            (self._own / "manifest.json").replace(self._own / "before.json")

    def put(self, name: str, partial: Partial) -> Path:
        """Give a file that is whole its name.

        Raises:
            DownloadError: the name leads out of the folder by a link.
        """
        path = self.path / name
        if not path.parent.resolve().is_relative_to(self.path.resolve()):
            raise DownloadError(
                f"{path.parent} is a link that leads out of {self.path}",
                "file",
                f"rm {path.parent}, or choose another --local-dir",
            )
        with self._placing:
            for parent in reversed(path.relative_to(self.path).parents[:-1]):
                self._make_way(self.path / parent, folder=True)
            self._make_way(path, folder=False)
            partial.move_to(path)
        return path

    def _make_way(self, path: Path, *, folder: bool) -> None:
        """Make room for a folder or a file: what is ours and unchanged goes, the rest moves."""
        is_folder = path.is_dir() and not (path.is_symlink() and not folder)
        if not os.path.lexists(path) or (is_folder and folder):
            return
        inner = [p for p in path.rglob("*") if not p.is_dir() or p.is_symlink()]
        if not all(self._ours(p) for p in (inner if is_folder else [path])):
            self._move_away(path)
        elif is_folder:
            shutil.rmtree(path)
        elif folder:
            path.unlink()  # a file in the place of a file is replaced at the last moment

    def _ours(self, path: Path) -> bool:
        """Whether a file was brought by an earlier download, and is as it was then."""
        name = path.relative_to(self.path).as_posix()
        file = self.before.files.get(name) if self.before else None
        return file is not None and not path.is_symlink() and self._same(name, file)

    def _move_away(self, path: Path) -> None:
        to = self._own / "replaced" / stamp() / path.relative_to(self.path)
        while os.path.lexists(to):
            to = to.with_name(to.name + "+")
        to.parent.mkdir(parents=True, exist_ok=True)
        path.rename(to)
        log.warning("%s is not what this download brought before: it is now %s", path, to)

    def finish(self, download: Download, listed: Collection[str]) -> Download:
        """Write the manifest, last, and return it with all that the folder holds of its commit.

        What only an earlier commit had goes, if it is unchanged. ``listed`` are all files of the
        new one: what is among them but was not asked for stays.
        """
        before = self.before
        if before and before.commit == download.commit:
            also = {name: file for name, file in before.files.items() if self._same(name, file)}
            download = replace(download, files={**also, **download.files})
        old = before.files if before else {}
        for name in sorted(old.keys() - download.files.keys()):
            path = self.path / name
            if not (path.is_file() or path.is_symlink()):
                continue
            if name in listed or not self._ours(path):
                log.warning("%s stays, and is no part of this download any more", path)
                continue
            log.info("%s is not in the new commit: removed", path)
            path.unlink()
            with contextlib.suppress(OSError):  # not empty
                for parent in path.relative_to(self.path).parents[:-1]:
                    (self.path / parent).rmdir()
        download.write(self._own / "manifest.json")
        (self._own / "before.json").unlink(missing_ok=True)
        shutil.rmtree(self.aside, ignore_errors=True)
        self.look()
        return download
