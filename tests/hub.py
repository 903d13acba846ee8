"""A hub on the loopback for tests: enough of the Hugging Face hub for its own client and mirrors.

``with Hub({"models/ORG/NAME": folder, "datasets/ORG/NAME": folder}) as url: ...`` serves folders as
repos with branch main, at another commit after any change. Files of ``lfs_from`` bytes or more are
LFS files. It answers repo info, the file tree, paths-info, and files by HEAD and GET, with ranges.

    python tests/hub.py models/ORG/NAME=FOLDER... [--port N] [--lfs-from BYTES]

serves until it is killed; the first line that it prints is its URL.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import socket
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from hub_faults import Fault, take
from hub_files import Store
from hub_http import Handler, Request

__all__ = ["Fault", "Hub", "Request"]


class Hub:
    """Everything but ``repos`` and ``port`` may be changed while it serves.

    Args:
        flips: how often a file, by its path in its repo, is served with its last byte wrong.
        gated: repos whose files are for ``token`` only; their listing is for everyone.
        private: repos that are missing to everyone without ``token``.
        token: what opens those; None: nothing does. Another token is refused (401) for any repo,
            unless this is None.
        faults: what goes wrong, see `Fault`; the first that match are applied.
        page: entries in a page of a listing.
        next_base: the base URL in the link to the next page, instead of the one asked at.
        cdn: base URL of another hub of the same repos, or "self": LFS files are redirected to it.

    Attributes:
        requests: what clients asked so far.
        after: called when a request has been answered, before the next on its connection is read;
            by one thread at a time.
    """

    def __init__(
        self,
        repos: Mapping[str, Path],
        *,
        lfs_from: int = 1024,
        flips: Mapping[str, int] | None = None,
        gated: Collection[str] = (),
        private: Collection[str] = (),
        token: str | None = None,
        faults: Sequence[Fault] = (),
        page: int = 1000,
        next_base: str | None = None,
        cdn: str | None = None,
        port: int = 0,
    ) -> None:
        self.repos = dict(repos)
        self.flips = Counter(flips or {})
        self.gated = gated
        self.private = private
        self.token = token
        self.faults = list(faults)
        self.page = page
        self.next_base = next_base
        self.cdn = cdn
        self.requests: list[Request] = []
        self.after: Callable[[Request], None] | None = None
        self.connections: set[socket.socket] = set()
        self.stopped = threading.Event()
        self.store = Store(self.repos, lfs_from)
        self._lock = threading.Lock()
        self._after_lock = threading.Lock()
        self._port = port
        self._frozen: Path | None = None

    def __enter__(self) -> str:
        self.stopped.clear()
        handler = type("BoundHandler", (Handler,), {"hub": self})
        self._server = _Server(("127.0.0.1", self._port), handler)
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.02,), daemon=True)
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self.connections):  # a client keeps its own open
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        if self._frozen:
            shutil.rmtree(self._frozen)
            self._frozen = None

    def commit(self, repo: str) -> str:
        """The commit that a repo's branch is at: another after any change."""
        return self.store.head(repo)

    def snapshot(self, repo: str) -> str:
        """Keep what a repo holds now under its commit, also after the folder changes."""
        self._frozen = self._frozen or Path(tempfile.mkdtemp(prefix="hub-"))
        return self.store.freeze(repo, self._frozen / repo)

    def entry(self, path: str, content: Path) -> dict[str, Any]:
        """A file as the tree lists it."""
        file = self.store.file(content)
        entry: dict[str, Any] = {"type": "file", "path": path, "size": file.size, "oid": file.oid}
        if file.sha256:
            lfs = {"oid": file.sha256, "size": file.size, "pointerSize": file.pointer_size}
            entry["lfs"] = lfs
        return entry

    def answered(self, request: Request) -> None:
        with self._after_lock:
            if self.after:
                self.after(request)

    def take_faults(self, path: str, method: str, *, has_body: bool) -> Mapping[str, Fault]:
        """The faults that apply to a request, by kind; they count down."""
        with self._lock:
            return take(self.faults, path, method, has_body=has_body)

    def take_flip(self, path: str) -> bool:
        """Whether the last byte is to be wrong this time."""
        with self._lock:
            flip = self.flips[path] > 0
            self.flips[path] -= flip
        return flip


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that left."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve folders as a Hugging Face hub would.")
    parser.add_argument("repos", nargs="+", metavar="models/ORG/NAME=FOLDER")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--lfs-from", type=int, default=1024, metavar="BYTES")
    options = parser.parse_args()
    repos = {name: Path(folder) for name, _, folder in (r.partition("=") for r in options.repos)}
    hub = Hub(repos, lfs_from=options.lfs_from, port=options.port)
    for repo in repos:
        hub.commit(repo)  # hash everything before the first client waits for it
    with hub as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        hub.stopped.wait()


if __name__ == "__main__":
    main()
