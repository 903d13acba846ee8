"""What is asked of a Hugging Face hub, or a mirror of it: which commit, and which files.

`huggingface_hub` does the talking. Added here: the login kept on this machine is for the hub alone,
and a listing is read to its end where a mirror passes on links that lead around it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

from llmpipe.core import fs
from llmpipe.core.endpoints import RemoteFile, Wanted, shown, token_for
from llmpipe.core.refusals import DownloadError, explained

_CONNECT = 10.0  # seconds
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_PAGES = 10_000  # of a thousand files each, as the hub pages them
_BATCH = 50  # paths asked for at a time; a mirror may ask the hub for each of them


class Repo:
    """One repo at one endpoint. Methods raise `DownloadError`."""

    def __init__(self, wanted: Wanted, endpoint: str, token: str | None, timeout: float) -> None:
        """``timeout`` is in seconds without an answer or a byte."""
        self.wanted = wanted
        self.endpoint = endpoint
        self.patience = timeout
        self.token = token_for(endpoint, token)

    def __str__(self) -> str:
        return shown(self.endpoint)

    @property
    def timeout(self) -> Any:
        """For `huggingface_hub`: a host that doesn't even connect is given up sooner."""
        from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

        return httpx.Timeout(self.patience, connect=min(self.patience, _CONNECT))

    @property
    def headers(self) -> dict[str, str]:
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        headers: dict[str, str] = build_hf_headers(token=self.token)
        return headers

    def commit(self) -> str:
        """The commit that the wanted revision is at now, 40 hex digits."""
        wanted = self.wanted
        answer = self._ask("GET", self._api("revision", wanted.revision), "the repo")
        with self.explained("the repo"):
            commit = str(answer.json()["sha"])
        if not _COMMIT.fullmatch(commit):
            raise DownloadError(f"{self} names no commit of {wanted}", "endpoint")
        if _COMMIT.fullmatch(wanted.revision) and commit != wanted.revision:
            raise DownloadError(f"{self} has another commit than {wanted.revision}", "endpoint")
        return commit

    def files(self, commit: str) -> list[RemoteFile]:
        """All files of a commit, in the order listed."""
        files: dict[str, RemoteFile] = {}
        for file in self._pages(commit):
            if files.setdefault(file.path, file) != file:
                raise DownloadError(f"{self} lists two files called {file.path}", "endpoint")
        return list(files.values())

    def _pages(self, commit: str) -> Iterator[RemoteFile]:
        page: str | None = f"{self._api('tree', commit)}?recursive=true"
        seen: set[str] = set()
        asked: set[str] = set()
        while page and page not in asked:
            if len(asked) == _MOST_PAGES:
                raise DownloadError(f"{self} lists files without end", "endpoint")
            asked.add(page)
            response = self._ask("GET", page)
            with self.explained("the list of files"):
                found = [e for e in response.json() if e["type"] == "file"]
                if not seen.isdisjoint(e["path"] for e in found):
                    break
                seen.update(e["path"] for e in found)
            yield from self._read(found)
            with self.explained("the list of files"):
                following = self._here(response.links.get("next", {}).get("url"))
            page = following
        if page:  # the same page again: this mirror doesn't know pages (seen of olah 0.5.4)
            yield from self._by_names(commit, seen)

    def _by_names(self, commit: str, seen: set[str]) -> Iterator[RemoteFile]:
        """The files that a listing lacks, by the names that the repo's info gives of all."""
        info = self._ask("GET", self._api("revision", commit))
        with self.explained("the list of files"):
            names = [e["rfilename"] for e in info.json()["siblings"]]
        rest = [name for name in names if name not in seen]
        for start in range(0, len(rest), _BATCH):
            batch = rest[start : start + _BATCH]
            data = {"paths": batch, "expand": False}
            response = self._ask("POST", self._api("paths-info", commit), data=data)
            with self.explained("the list of files"):
                found = response.json()
                if {e["path"] for e in found} != set(batch):
                    raise DownloadError(f"{self} cuts its list of files short", "endpoint")
            yield from self._read(found)

    def _api(self, what: str, revision: str) -> str:
        repo = f"{self.endpoint}/api/{self.wanted.repo_type}s/{self.wanted.repo}"
        return f"{repo}/{what}/{quote(revision, safe='')}"

    def _ask(self, method: Any, url: str, what: str = "the list of files", **settings: Any) -> Any:
        from huggingface_hub.utils import (  # type: ignore[attr-defined]
            hf_raise_for_status,
            http_backoff,
        )

        with self.explained(what):
            # Its own retries would close the client that other threads use.
            response = http_backoff(
                method,
                url,
                headers=self.headers,
                timeout=self.timeout,
                retry_on_exceptions=(),
                retry_on_status_codes=(),
                **settings,
            )
            hf_raise_for_status(response)
        return response

    def _read(self, entries: Iterable[dict[str, Any]]) -> Iterator[RemoteFile]:
        from huggingface_hub import RepoFile

        with self.explained("the list of files"):
            files: list[Any] = [RepoFile(**e) for e in entries]  # type: ignore[no-untyped-call]
            for f in files:
                if not (isinstance(f.path, str) and isinstance(f.size, int) and f.blob_id):
                    raise TypeError
        for f in files:
            if not fs.is_inside(f.path) and not f.path.startswith(".llmpipe/"):
                raise DownloadError(
                    f"{self} lists a file outside the repo, or with a name that none can have: "
                    f"{f.path[:200]!r}",
                    "endpoint",
                    "don't trust that endpoint",
                )
            yield RemoteFile(
                path=f.path,
                size=f.size,
                sha256=f.lfs.sha256 if f.lfs else None,
                blob=f.blob_id,
                xet=f.xet_hash,
            )

    def _here(self, page: str | None) -> str | None:
        """A next page, asked of this endpoint: mirrors pass on links that lead to the hub itself.

        Following those would go around the mirror, and carry a token to another host.
        """
        if page is None:
            return None
        parts = urlsplit(page)
        start = parts.path.find("/api/")
        if start < 0:
            raise DownloadError(f"{self} cuts its list of files short", "endpoint")
        return f"{self.endpoint}{parts.path[start:]}?{parts.query}"

    def explained(
        self, what: str, *, of_file: bool = False
    ) -> contextlib.AbstractContextManager[None]:
        """Within it, the library's errors become `DownloadError`: ``what`` was asked for."""
        return explained(self.wanted, self.endpoint, what, of_file=of_file)

    def url(self, file: RemoteFile, commit: str) -> str:
        """Where the bytes of a file are asked for."""
        kind = "datasets/" if self.wanted.repo_type == "dataset" else ""
        return f"{self.endpoint}/{kind}{self.wanted.repo}/resolve/{commit}/{quote(file.path)}"
