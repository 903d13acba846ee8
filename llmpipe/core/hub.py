"""What is asked of a Hugging Face hub, or a mirror of it: a listing, files, and why not.

`huggingface_hub` does the talking. Added here: the hash of every file is checked (the library takes
a damaged file of the right size for good), Xet and the login kept on this machine are for the hub
alone, and errors become one line with what to do.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from llmpipe.core.errors import UserError
from llmpipe.core.spec import Progress

log = logging.getLogger(__name__)

HUB = "https://huggingface.co"
_TRIES = 2  # of fetching a file whose hash is wrong
_FULL = {28, 122}  # no space left, quota exceeded


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which files of which repo; ``include`` and ``exclude`` are shell patterns over paths."""

    repo: str
    repo_type: str = "model"
    revision: str = "main"
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def __str__(self) -> str:
        return f"the {self.repo_type} {self.repo}"


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file as the hub lists it: ``sha256`` where it is kept in LFS, ``blob`` is git's hash."""

    path: str
    size: int
    sha256: str | None
    blob: str


@dataclass(frozen=True, kw_only=True)
class LocalFile:
    """A file that has come and is whole."""

    size: int
    sha256: str
    mtime_ns: int


class Transfer:
    """One download. The commit is resolved once, so that all endpoints serve the same files."""

    def __init__(
        self,
        wanted: Wanted,
        folder: Path,
        *,
        token: str | None,
        workers: int,
        progress: Progress,
        begin: Callable[[], None],
    ) -> None:
        """``begin`` is called before files in ``folder`` are changed."""
        self.commit: str | None = None
        self._wanted = wanted
        self._folder = folder
        self._token = token
        self._workers = workers
        self._progress = progress
        self._begin = begin

    def from_first(self, endpoints: Sequence[str]) -> tuple[str, dict[str, LocalFile]]:
        """The first endpoint that serves everything, and the files by their paths.

        Raises:
            UserError: none does; it says why of each.
        """
        errors: list[UserError] = []
        for endpoint in endpoints:
            try:
                with _explained(self._wanted, endpoint), _xet(_is_hub(endpoint)):
                    return endpoint, self._fetch(endpoint)
            except UserError as e:
                errors.append(e)
                if endpoint != endpoints[-1]:
                    log.warning("%s: trying the next endpoint", e.message)
        if len(errors) == 1:
            raise errors[0]
        raise UserError("; ".join(e.message for e in errors), errors[-1].hint)

    def _fetch(self, endpoint: str) -> dict[str, LocalFile]:
        from huggingface_hub import HfApi, snapshot_download

        wanted = self._wanted
        # None lets the library use the login kept on this machine; False keeps it from doing so.
        token = self._token or (None if _is_hub(endpoint) else False)
        api = HfApi(endpoint=endpoint, token=token)
        if self.commit is None:
            self.commit = api.repo_info(
                wanted.repo, repo_type=wanted.repo_type, revision=wanted.revision
            ).sha
        files = self._listing(api)
        self._begin()
        checked: dict[str, LocalFile] = {}
        include, wrong = list(wanted.include) or None, files
        for _ in range(_TRIES):
            with self._watched(files):
                snapshot_download(
                    wanted.repo,
                    repo_type=wanted.repo_type,
                    revision=self.commit,
                    local_dir=self._folder,
                    endpoint=endpoint,
                    token=token,
                    allow_patterns=include,
                    ignore_patterns=list(wanted.exclude) or None,
                    max_workers=self._workers,
                )
            checked |= {f.path: e for f in wrong if (e := _checked(self._folder, f))}
            wrong = [f for f in files if f.path not in checked]
            if not wrong:
                return checked
            include = [glob.escape(f.path) for f in wrong]
            log.warning("%d files did not come whole from %s: once more", len(wrong), endpoint)
        raise UserError(
            f"{endpoint} serves {wrong[0].path} damaged: its hash is not the one listed",
            "try again later, or another --endpoint",
        )

    def _listing(self, api: Any) -> list[RemoteFile]:
        """The files asked for, with their hashes."""
        from huggingface_hub import RepoFile
        from huggingface_hub.utils import filter_repo_objects  # type: ignore[attr-defined]

        wanted = self._wanted
        listed = api.list_repo_tree(
            wanted.repo, repo_type=wanted.repo_type, revision=self.commit, recursive=True
        )
        chosen = filter_repo_objects(
            [f for f in listed if isinstance(f, RepoFile)],
            allow_patterns=list(wanted.include) or None,
            ignore_patterns=list(wanted.exclude) or None,
            key=lambda f: f.path,
        )
        files = [
            RemoteFile(
                path=f.path, size=f.size, sha256=f.lfs.sha256 if f.lfs else None, blob=f.blob_id
            )
            for f in chosen
        ]
        if not files:
            raise UserError(
                f"{wanted.repo} has no file that was asked for",
                "check --include and --exclude",
            )
        for file in files:
            parts = Path(file.path).parts
            if ".." in parts or file.path.startswith("/") or parts[0] == ".llmpipe":
                raise UserError(
                    f"{api.endpoint} lists a file outside the repo: {file.path}",
                    "don't trust that endpoint",
                )
        return files

    @contextlib.contextmanager
    def _watched(self, files: Sequence[RemoteFile]) -> Iterator[None]:
        """Report the bytes that have come, once a second, instead of the library's own bars."""
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

        disable_progress_bars()
        total = sum(f.size for f in files)
        over = threading.Event()

        def watch() -> None:
            while not over.wait(1.0):
                self._progress(self._bytes(files), total)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _bytes(self, files: Sequence[RemoteFile]) -> int:
        partial = self._folder.glob(".cache/huggingface/download/**/*.incomplete")
        present = [self._folder / f.path for f in files]
        sizes = 0
        for path in [*partial, *present]:
            with contextlib.suppress(FileNotFoundError):  # renamed in between
                sizes += path.stat().st_size
        return sizes


def _is_hub(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host == "huggingface.co" or host.endswith(".huggingface.co")


@contextlib.contextmanager
def _xet(allowed: bool) -> Iterator[None]:
    """Keep Xet off while an endpoint isn't the hub: its traffic would go around the mirror.

    The library reads the environment once, when it is imported, and this constant at each use.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_DISABLE_XET
    constants.HF_HUB_DISABLE_XET = before or not allowed
    try:
        yield
    finally:
        constants.HF_HUB_DISABLE_XET = before


@contextlib.contextmanager
def _explained(wanted: Wanted, endpoint: str) -> Iterator[None]:
    """The library's errors in one line, with what to do."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

    try:
        yield
    except GatedRepoError:
        kind = "datasets/" if wanted.repo_type == "dataset" else ""
        raise UserError(
            f"{wanted} is gated",
            f"ask for access at {HUB}/{kind}{wanted.repo}, then give --token",
        ) from None
    except RepositoryNotFoundError:
        other = "dataset" if wanted.repo_type == "model" else "model"
        raise UserError(
            f"{endpoint} has no {wanted.repo_type} {wanted.repo}, or it is private",
            f"check the name; --repo-type {other} if it is one; --token for a private one",
        ) from None
    except RevisionNotFoundError:
        raise UserError(
            f"{wanted} has no revision {wanted.revision}", "--revision main, a tag or a commit"
        ) from None
    except HFValidationError:
        raise UserError(
            f"{wanted.repo!r} is not the id of a repo", "write ORG/NAME, such as openai/gsm8k"
        ) from None
    except OfflineModeIsEnabled:
        raise UserError(
            f"{wanted} can't be brought: HF_HUB_OFFLINE is set", "unset HF_HUB_OFFLINE"
        ) from None
    except (OSError, httpx.HTTPError) as e:
        if isinstance(e, OSError) and e.errno in _FULL:
            raise UserError(f"no space left for {wanted}", "free some, then run it again") from None
        cause = e.__cause__ or e
        raise UserError(
            f"{endpoint} does not serve {wanted}: {str(cause).splitlines()[0] or type(cause)}",
            "run it again to go on; --endpoint URL for a mirror",
        ) from None


def _checked(folder: Path, file: RemoteFile) -> LocalFile | None:
    """The file, where it is the one listed; any other is removed, and None."""
    path = folder / file.path
    try:
        size = path.stat().st_size
        sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        with path.open("rb") as f:
            while chunk := f.read(1 << 20):
                sha256.update(chunk)
                if file.sha256 is None:
                    blob.update(chunk)
    except FileNotFoundError:
        return None
    expected, found = (
        (file.sha256, sha256.hexdigest()) if file.sha256 else (file.blob, blob.hexdigest())
    )
    if found != expected:
        path.unlink()
        return None
    return LocalFile(size=size, sha256=sha256.hexdigest(), mtime_ns=path.stat().st_mtime_ns)
