"""How the hub on the loopback answers: headers and status codes as the Hugging Face hub's."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from hub_faults import FaultyHandler
from hub_files import File

if TYPE_CHECKING:
    from hub import Hub

_REPO = r"(?P<repo>(?:models|datasets)/[^/]+/[^/]+)"
_API = re.compile(
    rf"/api/{_REPO}(?:/(?P<what>revision|tree|paths-info)/(?P<revision>[^/]+)(?:/(?P<path>.*))?)?"
)
_FILE = re.compile(r"/(?P<repo>(?:datasets/)?[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
_CDN = re.compile(rf"/cdn/{_REPO}/(?P<revision>[^/]+)/(?P<path>.+)")


@dataclass(frozen=True)
class Request:
    """What a client asked: method, path with query, and the token and range sent (if any)."""

    method: str
    path: str
    authorization: str | None
    range: str | None


class Handler(FaultyHandler):
    hub: Hub

    def setup(self) -> None:
        super().setup()
        self.hub.connections.add(self.connection)

    def finish(self) -> None:
        self.hub.connections.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:  # noqa: N802 - the base's name
        asked = self.headers.get("Authorization"), self.headers.get("Range")
        request = Request(self.command, self.path, *asked)
        self.hub.requests.append(request)
        self.taken, self.flip_last = {}, False
        self.form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        split = urlsplit(self.path)
        path = unquote(split.path)
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        try:
            if api := _API.fullmatch(path):
                self._api(api, query)
            elif cdn := _CDN.fullmatch(path):
                self._cdn(cdn, query)
            elif file := _FILE.fullmatch(path):
                self._file(file)
            else:
                self._refuse(404, "EntryNotFound", "not here")
        except ConnectionError:  # a client that left
            self.close_connection = True
        self.hub.answered(request)

    def do_HEAD(self) -> None:  # noqa: N802 - the base's name
        self.do_GET()

    def do_POST(self) -> None:  # noqa: N802 - the base's name
        self.do_GET()

    # What is asked for

    def _api(self, asked: re.Match[str], query: Mapping[str, str]) -> None:
        repo = asked["repo"]
        if self.gone_wrong("api") or self._refused(repo):
            return
        commit = self.hub.store.resolve(repo, asked["revision"])
        listing = self.hub.store.listing(repo, commit) if commit else None
        if listing is None:
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {asked['revision']}")
        elif asked["what"] == "tree":
            entries = self._tree(listing, asked["path"] or "", query.get("recursive") == "true")
            self._page(entries, query)
        elif asked["what"] == "paths-info":
            wanted = [p for p in parse_qs(self.form).get("paths", ()) if p in listing]
            self._json([self.hub.entry(p, listing[p].on_disk) for p in wanted])
        else:
            info: dict[str, Any] = {"id": repo.partition("/")[2], "sha": commit}
            info["private"] = repo in self.hub.private
            info["gated"] = "auto" if repo in self.hub.gated else False
            self._json({**info, "siblings": [{"rfilename": path} for path in listing]})

    def _file(self, asked: re.Match[str]) -> None:
        repo = asked["repo"] if asked["repo"].startswith("datasets/") else f"models/{asked['repo']}"
        path = asked["path"]
        known = repo in self.hub.repos
        commit = self.hub.store.resolve(repo, asked["revision"]) if known else None
        file = self.hub.store.find(repo, commit, path) if commit else None
        to_cdn = self.hub.cdn is not None and file is not None and file.sha256 is not None
        # Where an LFS file's body comes from the CDN, its faults wait for the request there.
        if self.gone_wrong(path, has_body=not to_cdn) or self._refused(repo, for_files=True):
            return
        if commit is None or (file is None and self.hub.store.listing(repo, commit) is None):
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {asked['revision']}")
        elif file is None:
            self._refuse(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        elif to_cdn:
            self._to_cdn(f"/cdn/{repo}/{commit}/{path}", file, self._identity(file, commit))
        else:
            self._content(file, path, self._identity(file, commit))

    def _cdn(self, asked: re.Match[str], query: Mapping[str, str]) -> None:
        if self.gone_wrong(asked["path"]):
            return
        repo, store = asked["repo"], self.hub.store
        commit = store.resolve(repo, asked["revision"]) if repo in self.hub.repos else None
        file = store.find(repo, commit, asked["path"]) if commit else None
        if query.get("sig") != _signature(asked[0]):
            self._refuse(403, "", "SignatureDoesNotMatch")
        elif commit is None or file is None:
            self._refuse(404, "", "NoSuchKey")
        else:
            headers = self._identity(file, commit)
            if self.hub.cdn != "self":  # a host of its own knows nothing of commits
                headers.pop("X-Repo-Commit", None)
            self._content(file, asked["path"], headers)

    def _refused(self, repo: str, *, for_files: bool = False) -> bool:
        """Tell a client that may not read a repo why."""
        hub = self.hub
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        known = token != "" and token == hub.token
        if token and hub.token and not known:
            self._refuse(401, "", "Invalid credentials in Authorization header")
        elif repo not in hub.repos or (repo in hub.private and not known):
            self._refuse(404 if token else 401, "RepoNotFound", "Repository not found")
        elif for_files and repo in hub.gated and not known:
            why = f"Access to {repo} is restricted and you are not in the authorized list."
            self._refuse(403 if token else 401, "GatedRepo", why)
        else:
            return False
        return True

    # What is answered

    def _tree(
        self, listing: Mapping[str, File], inside: str, recursive: bool
    ) -> list[dict[str, Any]]:
        """Files and folders, of the folder ``inside`` ("" for the root)."""
        top = PurePosixPath(inside)
        entries: dict[str, dict[str, Any]] = {}
        for path, file in listing.items():
            below = PurePosixPath(path)
            if top not in below.parents:
                continue
            for folder in [p for p in below.parents if top in p.parents]:
                if recursive or folder.parent == top:
                    oid = hashlib.sha1(str(folder).encode()).hexdigest()
                    shown = {"type": "directory", "path": str(folder), "size": 0, "oid": oid}
                    entries.setdefault(str(folder), shown)
            if recursive or below.parent == top:
                entries[path] = self.hub.entry(path, file.on_disk)
        return [entries[path] for path in sorted(entries)]

    def _page(self, entries: list[dict[str, Any]], query: Mapping[str, str]) -> None:
        start = int(query.get("cursor", 0))
        end = start + self.hub.page
        headers = {}
        if end < len(entries):
            base = self.hub.next_base or f"http://{self.headers['Host']}"
            following = urlencode({**query, "cursor": end})
            headers["Link"] = f'<{base}{urlsplit(self.path).path}?{following}>; rel="next"'
        self._json(entries[start:end], headers)

    def _identity(self, file: File, commit: str) -> dict[str, str]:
        if "no-commit" in self.taken:
            return {}
        commit = "0" * 40 if "wrong-commit" in self.taken else commit
        return {"X-Repo-Commit": commit, "ETag": f'"{file.sha256 or file.oid}"'}

    def _to_cdn(self, path: str, file: File, headers: dict[str, str]) -> None:
        base = f"http://{self.headers['Host']}" if self.hub.cdn == "self" else self.hub.cdn
        headers["X-Linked-Size"] = str(self._size(file))
        if etag := headers.get("ETag"):
            headers["X-Linked-ETag"] = etag
        headers["Location"] = f"{base}{quote(path)}?sig={_signature(path)}"
        self.send(302, headers)

    def _content(self, file: File, path: str, headers: dict[str, str]) -> None:
        size = self._size(file)
        headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes", **headers}
        self.flip_last = self.command == "GET" and self.hub.take_flip(path)
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        start, end = 0, size
        code = 200
        if wanted and any(wanted.groups()) and "no-ranges" not in self.taken:
            code = 206
            if wanted[1]:
                start, end = int(wanted[1]), min(int(wanted[2] or size - 1) + 1, size)
            else:
                start = max(size - int(wanted[2]), 0)
            if start >= end:
                self.send(416, {**headers, "Content-Range": f"bytes */{size}"})
                return
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        with file.on_disk.open("rb") as stream:
            self.send(code, headers, stream, start, end - start)

    def _size(self, file: File) -> int:
        return file.size - ("wrong-size" in self.taken)

    def _json(self, value: Any, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(value).encode()
        headers = {"Content-Type": "application/json", **(headers or {})}
        self.send(200, headers, io.BytesIO(body), 0, len(body))

    def _refuse(
        self, code: int, error: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        said = {"X-Error-Code": error} if error else {}
        self.send(code, {**said, "X-Error-Message": message, **(headers or {})})


def _signature(path: str) -> str:
    return hashlib.sha256(f"signed {path}".encode()).hexdigest()[:16]
