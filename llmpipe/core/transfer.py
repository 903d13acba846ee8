"""Bring the files of one commit to a folder: in parallel, resumed, each checked by its hash.

`huggingface_hub` fetches a file anew after a kill, takes a damaged file of the right size for good
and ends at the first 503 (seen with 2.4.0). Here partial files are kept and gone on with, the hash
that the hub lists decides, and each file has its own tries at each endpoint.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llmpipe.core.endpoints import RemoteFile, is_hub, shown
from llmpipe.core.errors import UserError
from llmpipe.core.hub import Repo
from llmpipe.core.local_folder import LocalFolder
from llmpipe.core.mirrors import Mirrors, StoppedError
from llmpipe.core.partial import LocalFile, Partial, TooLongError, right
from llmpipe.core.refusals import DownloadError, local_trouble
from llmpipe.core.spec import Progress

log = logging.getLogger(__name__)

_DAMAGED = 3  # times that one endpoint may send a file whose hash is wrong
_BETWEEN = 0.25  # seconds between two words on progress
_SLOWEST = 1000  # bytes a second: less, for long enough, is as good as nothing
_PATIENCE = 30.0  # seconds


class Transfer:
    """One commit's files, on their way to ``folder``; ``fetched`` are those that had to come."""

    def __init__(
        self,
        folder: LocalFolder,
        *,
        commit: str,
        mirrors: Mirrors,
        known: Mapping[str, LocalFile],
        trusting: bool,
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        """``known`` files were brought before; ``trusting`` their size and time saves a reading."""
        self.fetched: dict[str, LocalFile] = {}
        self._folder = folder
        self._commit = commit
        self._mirrors = mirrors
        self._known = known
        self._trusting = trusting
        self._progress = progress
        self._stop = stop
        self._have: Counter[str] = Counter()
        self._active: dict[str, int] = {}

    def missing(self, files: Sequence[RemoteFile]) -> int:
        """The bytes that are still to come, by the sizes of what is there."""
        return sum(
            file.size - min(file.size, _size(self._partial(file)) or 0)
            for file in files
            if _size(self._folder.path / file.path) != file.size
        )

    def bring(self, files: Sequence[RemoteFile], workers: int) -> dict[str, LocalFile]:
        """Bring all files, the largest first; those that are there and whole stay.

        Raises:
            UserError: some did not come, or came damaged; the others are there.
        """
        waiting: queue.SimpleQueue[RemoteFile] = queue.SimpleQueue()
        for file in sorted(files, key=lambda f: -f.size):
            waiting.put(file)
        come: dict[str, LocalFile] = {}
        failed: dict[str, DownloadError] = {}
        bugs: list[Exception] = []

        def work() -> None:
            while not self._stop.is_set():
                try:
                    file = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    come[file.path] = self._one(file)
                except StoppedError:
                    return
                except DownloadError as e:
                    failed[file.path] = e
                    if e.helps == "user":
                        self._stop.set()
                except Exception as e:
                    bugs.append(e)
                    self._stop.set()

        # Daemons, as Ctrl-C must not wait for a server that has gone silent.
        threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
        with self._watched(sum(file.size for file in files)):
            for thread in threads:
                thread.start()
            try:
                for thread in threads:
                    thread.join()
            finally:
                self._stop.set()
        if bugs:
            raise bugs[0]
        if failed:
            raise _summary(failed, len(files))
        return come

    def _one(self, file: RemoteFile) -> LocalFile:
        self._active[file.path] = file.size
        try:
            return self._there(file) or self._fetch(file)
        except OSError as e:
            raise local_trouble(e, file.path) from None
        finally:
            self._active.pop(file.path)

    def _there(self, file: RemoteFile) -> LocalFile | None:
        """The file, where it is in its place and whole."""
        path, known = self._folder.path / file.path, self._known.get(file.path)
        if _size(path) is None:
            return None
        stat = path.stat()
        same = known is not None and known.blob == file.blob and known.size == stat.st_size
        if known and same and self._trusting and known.mtime_ns == stat.st_mtime_ns:
            local: LocalFile | None = known
        elif stat.st_size == file.size and (sha256 := right(path, file, self._go_on)):
            local = _local(path, file, sha256, known.endpoint if known and same else None)
        else:
            local = None
        if local:
            self._have[file.path] = file.size
        return local

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise StoppedError

    def _fetch(self, file: RemoteFile) -> LocalFile:
        damaged: Counter[str] = Counter()
        with Partial(self._partial(file), file) as partial:

            def call(repo: Repo) -> str:
                before = partial.size
                try:
                    return self._try(repo, file, partial, by_xet=not damaged)
                except DownloadError as e:
                    e.gained = partial.size > before and not e.slow
                    raise
                except _DamagedError as e:
                    damaged[repo.endpoint] += 1
                    raise DownloadError(
                        f"{repo} sends {file.path} damaged: {e}",
                        "retry" if damaged[repo.endpoint] < _DAMAGED else "file",
                        "try again later, or another --endpoint",
                    ) from None
                finally:
                    self._have[file.path] = partial.size

            repo, sha256 = self._mirrors.ask(call)
            path = self._folder.put(file.path, partial)
        self._have[file.path] = file.size
        log.debug("%s: %d bytes from %s", file.path, file.size, repo)
        self.fetched[file.path] = _local(path, file, sha256, shown(repo.endpoint))
        return self.fetched[file.path]

    def _partial(self, file: RemoteFile) -> Path:
        """By the path and the hash: a partial file is for no other file, and for no other bytes."""
        name = hashlib.sha256(f"{file.path}\0{file.sha256 or file.blob}".encode()).hexdigest()
        return self._folder.aside / f"{name[:32]}.incomplete"

    def _try(self, repo: Repo, file: RemoteFile, partial: Partial, *, by_xet: bool) -> str:
        """One try at one endpoint: what is missing of a file, and its hash if all is right."""
        if by_xet and not partial.size and file.xet and _xet_is_on(repo.endpoint):
            self._by_xet(repo, file, partial)
        if not partial.complete:
            self._by_http(repo, file, partial)
        sha256 = partial.right()
        if sha256 is None and partial.resumed:
            # Whose bytes are wrong can't be told, so this endpoint sends all of them.
            log.info("%s does not fit together: fetching all of it", file.path)
            partial.restart()
            self._by_http(repo, file, partial)
            sha256 = partial.right()
        if sha256 is None:
            partial.restart()
            raise _DamagedError("its hash is not the one listed")
        return sha256

    def _by_http(self, repo: Repo, file: RemoteFile, partial: Partial) -> None:
        """Go on with a file where it ends. An answer that can't be its rest changes nothing."""
        from huggingface_hub.utils import (  # type: ignore[attr-defined]
            hf_raise_for_status,
            http_stream_backoff,
        )

        # A compressed body has no offsets to go on from.
        headers = {**repo.headers, "Accept-Encoding": "identity"}
        if partial.size:
            headers["Range"] = f"bytes={partial.size}-"
        try:
            with (
                repo.explained(file.path, of_file=True),
                http_stream_backoff(
                    "GET",
                    repo.url(file, self._commit),
                    headers=headers,
                    timeout=repo.timeout,
                    retry_on_exceptions=(),
                    retry_on_status_codes=(),
                ) as response,
            ):
                if response.status_code == 416:
                    raise _DamagedError("it is shorter there than listed")
                hf_raise_for_status(response)
                start = _start(response, partial.size)
                promised = _length(response)
                if promised is not None and start + promised != file.size:
                    raise _DamagedError(f"it has {start + promised} bytes, not {file.size}")
                self._receive(response, start, file, partial, repo)
        except TooLongError:
            raise _DamagedError(f"it has more than {file.size} bytes") from None
        if not partial.complete:
            raise DownloadError(f"{repo} ends {file.path} after {partial.size} bytes", "retry")

    def _receive(
        self, response: Any, start: int, file: RemoteFile, partial: Partial, repo: Repo
    ) -> None:
        """Write a body, but for what is there already of one that begins at ``start``."""
        skip = partial.size - start
        since, came = time.monotonic(), 0
        for chunk in response.iter_bytes():
            self._go_on()
            partial.write(chunk[skip:])
            skip = max(0, skip - len(chunk))
            self._have[file.path] = partial.size
            came += len(chunk)
            if (seconds := time.monotonic() - since) > max(_PATIENCE, 2 * repo.patience):
                if came < _SLOWEST * seconds:
                    raise DownloadError(
                        f"{repo} sends {file.path} at {came / seconds:.0f} B/s", "retry", slow=True
                    )
                since, came = time.monotonic(), 0

    def _by_xet(self, repo: Repo, file: RemoteFile, partial: Partial) -> None:
        """Let the library bring a file from the hub's own store; if it fails, HTTP follows."""
        from huggingface_hub import hf_hub_download

        wanted = repo.wanted
        try:
            path = hf_hub_download(
                wanted.repo,
                file.path,
                repo_type=wanted.repo_type,
                revision=self._commit,
                local_dir=self._by_library,
                endpoint=repo.endpoint,
                token=repo.token,
            )
        except Exception as e:  # what hf_xet raises is not documented
            log.info("Xet does not bring %s (%s): by HTTP", file.path, e)
        else:
            partial.take(Path(path))

    @property
    def _by_library(self) -> Path:
        return self._folder.aside / "hub"

    @contextlib.contextmanager
    def _watched(self, total: int) -> Iterator[None]:
        """Report the bytes that are here, in all and of the files on their way."""
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

        disable_progress_bars()
        over = threading.Event()

        def watch() -> None:
            while not over.wait(_BETWEEN):
                by_library = self._by_library.glob(".cache/**/*.incomplete")
                done = sum(self._have.values()) + sum(_size(p) or 0 for p in by_library)
                parts = {
                    path: (self._have[path], size) for path, size in self._active.copy().items()
                }
                self._progress(done, total, unit="bytes", parts=parts)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


class _DamagedError(Exception):
    """What an endpoint sends can't be the file that is listed."""


def _local(path: Path, file: RemoteFile, sha256: str, endpoint: str | None) -> LocalFile:
    return LocalFile(
        size=file.size,
        sha256=sha256,
        blob=file.blob,
        mtime_ns=path.stat().st_mtime_ns,
        endpoint=endpoint,
    )


def _size(path: Path) -> int | None:
    """The size of a file in bytes, None where there is none."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:  # such as a name that is too long
        return None


def _xet_is_on(endpoint: str) -> bool:
    """Xet's bytes come from hosts of its own, so they would go around a mirror."""
    from huggingface_hub import constants

    off = constants.HF_HUB_DISABLE_XET or importlib.util.find_spec("hf_xet") is None
    return is_hub(endpoint) and not off


def _start(response: Any, asked: int) -> int:
    """Where in the file a body begins: some servers send all of it again."""
    if response.status_code != 206:
        return 0
    where = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if where is None or int(where[1]) != asked:
        raise _DamagedError("another part of it comes than was asked for")
    return asked


def _length(response: Any) -> int | None:
    """The bytes that a body will have, where the server says so of the bytes themselves."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        return None
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdigit() else None


def _summary(failed: Mapping[str, DownloadError], of: int) -> UserError:
    """What to say of the files that did not come: what only the user can mend comes first."""
    troubles = sorted(failed.values(), key=lambda e: e.helps != "user")
    for message in dict.fromkeys(e.message for e in troubles) if len(troubles) > 1 else ():
        log.warning("%s", message)
    first = troubles[0]
    if len(failed) == 1 or first.helps in ("user", "endpoint"):
        return UserError(first.message, first.hint)
    return UserError(f"{len(failed)} of {of} files did not come; {first.message}", first.hint)
