"""A hub on the loopback for tests: enough of the Hugging Face hub for its own client.

``with Hub({"models/ORG/NAME": folder, "datasets/ORG/NAME": folder}) as url: ...`` serves folders as
repos with one commit each, on branch main. Files of ``lfs_from`` bytes or more are LFS files. It
answers repo info, the file tree, and files by HEAD and GET, with ranges.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

_API = re.compile(
    r"/api/(?P<repo>(?:models|datasets)/[^/]+/[^/]+)"
    r"(?:/(?P<what>revision|tree)/(?P<revision>[^/]+))?(?:/(?P<path>.*))?"
)
_FILE = re.compile(r"/(?P<repo>(?:datasets/)?[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")


@dataclass(frozen=True)
class Request:
    """What a client asked: its method, its path, and the token it sent (if any)."""

    method: str
    path: str
    authorization: str | None


class Hub:
    """``flips`` says how often a file, by its path in the repo, is served with one byte flipped.

    ``gated`` names repos that nobody may read. What clients asked is kept in ``requests``.
    """

    def __init__(
        self,
        repos: Mapping[str, Path],
        *,
        lfs_from: int = 1024,
        flips: Mapping[str, int] | None = None,
        gated: Collection[str] = (),
    ) -> None:
        self.repos = dict(repos)
        self.lfs_from = lfs_from
        self.flips = Counter(flips or {})
        self.gated = gated
        self.requests: list[Request] = []
        self.connections: set[socket.socket] = set()

    def __enter__(self) -> str:
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.02,), daemon=True)
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self.connections):  # a client keeps its own open
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def files(self, repo: str) -> Iterator[tuple[str, bytes]]:
        root = self.repos[repo]
        for file in sorted(p for p in root.rglob("*") if p.is_file()):
            yield file.relative_to(root).as_posix(), file.read_bytes()

    def commit(self, repo: str) -> str:
        """The commit that a repo's files are at: another after any change."""
        digest = hashlib.sha1(repo.encode())
        for path, content in self.files(repo):
            digest.update(f"{path}\0{_blob(content)}\n".encode())
        return digest.hexdigest()

    def entry(self, path: str, content: bytes) -> dict[str, Any]:
        """A file as the tree lists it."""
        if len(content) < self.lfs_from:
            return {"type": "file", "path": path, "size": len(content), "oid": _blob(content)}
        sha256 = hashlib.sha256(content).hexdigest()
        pointer = (
            "version https://git-lfs.github.com/spec/v1\n"
            f"oid sha256:{sha256}\nsize {len(content)}\n"
        ).encode()
        return {
            "type": "file",
            "path": path,
            "size": len(content),
            "oid": _blob(pointer),
            "lfs": {"oid": sha256, "size": len(content), "pointerSize": len(pointer)},
        }


def _blob(content: bytes) -> str:
    """Git's hash of a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.hub.connections.add(self.connection)

    def finish(self) -> None:
        self.hub.connections.discard(self.connection)
        super().finish()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.hub.requests.append(
            Request(self.command, self.path, self.headers.get("Authorization"))
        )
        path = unquote(urlsplit(self.path).path)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a client that left
            if api := _API.fullmatch(path):
                self._api(api)
            elif file := _FILE.fullmatch(path):
                self._file(file)
            else:
                self._refuse(404, "not here")

    def _found(self, repo: str, revision: str | None) -> str | None:
        """The commit of a repo that may be read at that revision; else the client is told why."""
        if repo not in self.hub.repos:
            self._refuse(404, "RepoNotFound")
        elif repo in self.hub.gated:
            self._refuse(403, "GatedRepo")
        elif revision not in (None, "main", commit := self.hub.commit(repo)):
            self._refuse(404, "RevisionNotFound")
        else:
            return commit
        return None

    def _api(self, asked: re.Match[str]) -> None:
        repo = asked["repo"]
        commit = self._found(repo, asked["revision"])
        if commit is None:
            return
        entries = [self.hub.entry(path, content) for path, content in self.hub.files(repo)]
        if asked["what"] == "tree":
            inside = f"{asked['path']}/" if asked["path"] else ""
            self._json([e for e in entries if e["path"].startswith(inside)])
        else:
            siblings = [{"rfilename": e["path"]} for e in entries]
            self._json({"id": repo.partition("/")[2], "sha": commit, "siblings": siblings})

    def _file(self, asked: re.Match[str]) -> None:
        repo = asked["repo"] if asked["repo"].startswith("datasets/") else f"models/{asked['repo']}"
        commit = self._found(repo, asked["revision"])
        if commit is None:
            return
        content = dict(self.hub.files(repo)).get(asked["path"])
        if content is None:
            self._refuse(404, "EntryNotFound", {"X-Repo-Commit": commit})
            return
        entry = self.hub.entry(asked["path"], content)
        headers = {
            "X-Repo-Commit": commit,
            "ETag": f'"{entry["lfs"]["oid"] if "lfs" in entry else entry["oid"]}"',
            "Accept-Ranges": "bytes",
        }
        if self.command == "GET" and self.hub.flips[asked["path"]]:
            self.hub.flips[asked["path"]] -= 1
            content = content[:-1] + bytes([content[-1] ^ 1])
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not wanted:
            self._send(200, content, headers)
            return
        start, end = int(wanted[1]), int(wanted[2] or len(content) - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
        self._send(206, content[start : end + 1], headers)

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _refuse(self, code: int, error: str, headers: Mapping[str, str] | None = None) -> None:
        self._send(code, b"", {"X-Error-Code": error, "X-Error-Message": error, **(headers or {})})

    def _send(self, code: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""
