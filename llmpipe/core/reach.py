"""Whether a hub or a mirror of it can be downloaded from: answers, headers, ranges, speed.

What breaks downloads there, by experience of others (hf-mirror-site issues 50 and 64,
huggingface_hub issues 1796, 3913 and 4475): answers without ``X-Repo-Commit`` or ``ETag``, which
`huggingface_hub` needs; a mirror that has no bytes of its own and sends clients on to a host that
their network blocks; no ranges, so that a broken download begins again.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from llmpipe.core.endpoints import HUB, RemoteFile, Wanted, is_hub
from llmpipe.core.finding import Finding, State, joined
from llmpipe.core.hub import Repo
from llmpipe.core.refusals import DownloadError

_TIMEOUT = 10.0  # seconds without an answer or a byte, as huggingface_hub waits
_SMALL, _LARGE = 256 << 10, 16 << 20  # bytes
_SECONDS = 5.0  # for one range
_SLOW = 1e6  # bytes a second: a model of 15 GB takes four hours
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")

_Part = tuple[State, str, str]


@dataclass(frozen=True, slots=True)
class _Range:
    """A part of a file that was asked for: the answer's status and host, what came and how fast."""

    status: int
    host: str
    size: int
    seconds: float

    @property
    def speed(self) -> float:
        return self.size / max(self.seconds, 1e-6)


class _Asked(Repo):
    """A public model at one of the ``endpoints``: what helps depends on the others."""

    def __init__(self, repo: str, url: str, endpoints: Sequence[str]) -> None:
        super().__init__(Wanted(repo=repo), url, None, _TIMEOUT)
        self.hub = is_hub(url)
        self._alone = all(e == url for e in endpoints)
        self._beside_hub = any(map(is_hub, endpoints))

    @property
    def instead(self) -> str:
        """What else may be asked."""
        if self.hub and self._alone:
            return f'export LLMPIPE_ENDPOINTS="https://hf-mirror.com {HUB}"'
        if self.hub or self._beside_hub:
            return "another mirror: --endpoint URL"
        return f"another mirror, or the hub itself: --endpoint {HUB}"

    @property
    def changed(self) -> str:
        """What to do about answers that are not the hub's."""
        if not self.hub:
            return self.instead
        return f"curl -I {HUB} shows who answers: a login page or a proxy of this network may"


def endpoint(url: str, repo: str, endpoints: Sequence[str] = ()) -> Finding:
    """Ask one of the ``endpoints`` for what a download asks, of a public model.

    The login of this machine goes to nobody but the hub itself.
    """
    asked = _Asked(repo, url, endpoints)
    parts: list[_Part] = [("ok", "", "")]
    try:
        start = time.monotonic()
        commit = asked.commit()
        milliseconds = (time.monotonic() - start) * 1000
        parts.append(("ok", f"answers in {milliseconds:.0f} ms", ""))
        small, large = _chosen(asked.files(commit), repo)
        for file in dict.fromkeys([small, large]):
            parts += _head(asked, file, commit)
        parts += _ranges(asked, large, commit)
    except DownloadError as e:
        said = e.message.removeprefix(f"{asked} ").removeprefix(f"{asked}: ")
        parts.append(("problem", said, _advice(e, asked)))
    found = joined("endpoint", *parts)
    return Finding("endpoint", found.state, f"{asked}: {found.found}", found.do)


def _chosen(files: Sequence[RemoteFile], repo: str) -> tuple[RemoteFile, RemoteFile]:
    """A small file out of git, and one out of LFS that fills the large range if there is one."""
    if not files:
        raise DownloadError(f"lists no files of {repo}", "endpoint")
    by_size = sorted(files, key=lambda f: f.size)
    in_git = [f for f in by_size if f.sha256 is None] or by_size
    in_lfs = [f for f in by_size if f.sha256 is not None] or by_size
    small = next((f for f in in_git if f.size), in_git[-1])
    return small, next((f for f in in_lfs if f.size >= 2 * _LARGE), in_lfs[-1])


def _head(repo: _Asked, file: RemoteFile, commit: str) -> list[_Part]:
    """What `huggingface_hub` reads of a file before it downloads it."""
    from huggingface_hub import get_hf_file_metadata

    with repo.explained(file.path):
        head = get_hf_file_metadata(
            repo.url(file, commit),
            token=repo.token,
            timeout=_TIMEOUT,
            endpoint=repo.endpoint,
        )
    headers = {"X-Repo-Commit": head.commit_hash, "ETag": head.etag, "a size": head.size}
    lacking = " and ".join(name for name, value in headers.items() if value is None)
    parts: list[_Part] = []
    if lacking:
        parts.append(
            (
                "problem",
                f"{file.path} comes without {lacking}: huggingface_hub can't take it",
                repo.changed,
            )
        )
    elif head.size != file.size:
        said = f"{file.path} has {head.size} bytes, and {file.size} in the list"
        parts.append(("problem", said, repo.changed))
    host = _host(head.location)
    if host != _host(repo.endpoint):
        parts.append(_sent_on(repo, file, host))
    return parts


def _sent_on(repo: _Asked, file: RemoteFile, host: str) -> _Part:
    if repo.hub:
        return "ok", f"bytes of {file.path} come from {host}", ""
    return (
        "warning",
        f"bytes of {file.path} come from {host}, not from the mirror: a network that blocks {host} "
        "can't download it",
        f"where {host} is blocked: a mirror with bytes of its own, or export HTTPS_PROXY=URL",
    )


def _ranges(repo: Repo, file: RemoteFile, commit: str) -> list[_Part]:
    """Whether a download can go on where it broke, and how fast bytes come."""
    if file.size < 2:
        return []
    parts: list[_Part] = []
    start = min(_LARGE, file.size // 2)
    small = _range(repo, file, commit, start, _SMALL)
    if small.status != 206:
        said = "no ranges: a download that breaks begins again"
        parts.append(("warning", said, "another endpoint for large files"))
    else:
        parts.append(("ok", "ranges work", ""))
    large = _range(repo, file, commit, start, _LARGE)
    speeds = ", ".join(
        f"{_rate(r.speed)} over {_size(r.size)}" for r in dict.fromkeys((small, large))
    )
    slow = large.speed < _SLOW and large.size > _SMALL
    hours = 15e9 / max(large.speed, 1) / 3600
    parts.append(
        (
            "warning" if slow else "ok",
            f"{speeds} from {large.host}",
            f"a model of 15 GB takes {hours:.0f} h: another endpoint, or let it run on"
            if slow
            else "",
        )
    )
    return parts


def _range(repo: Repo, file: RemoteFile, commit: str, start: int, size: int) -> _Range:
    """Read part of a file, as far as it comes in a few seconds."""
    from huggingface_hub import get_session
    from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]

    size = min(size, file.size - start)
    url: str = repo.url(file, commit)
    headers = {
        **repo.headers,
        "Range": f"bytes={start}-{start + size - 1}",
        "Accept-Encoding": "identity",
    }
    began = time.monotonic()
    came = 0
    # The client drops the login where it is sent on to another host.
    with (
        repo.explained(f"the bytes of {file.path}"),
        get_session().stream(
            "GET", url, headers=headers, timeout=_TIMEOUT, follow_redirects=True
        ) as answer,
    ):
        hf_raise_for_status(answer)
        for chunk in answer.iter_raw():
            came += len(chunk)
            if came >= size or time.monotonic() - began > _SECONDS:
                break
        return _Range(
            answer.status_code,
            _host(str(answer.url)),
            min(came, size),
            time.monotonic() - began,
        )


def _advice(error: DownloadError, repo: _Asked) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in error.message:
        return "export SSL_CERT_FILE=FILE, with the certificate of the network's own proxy"
    if "answers with something" in error.message:
        return repo.changed
    if error.helps == "retry" and not re.search(r"HTTP \d", error.message):
        return f"{repo.instead}; or {_proxy()}"
    if error.helps in ("retry", "file"):
        return "try again later" if repo.hub else f"try again later, or {repo.instead}"
    if error.helps == "endpoint" and "token" not in error.message:
        return f"see {HUB}/{repo.wanted.repo}, or try another model: --repo ORG/NAME"
    return error.hint


def _proxy() -> str:
    names = [n for name in _PROXIES for n in (name, name.lower()) if os.environ.get(n)]
    if names:
        return f"unset {' '.join(names)}, if this network needs no proxy"
    return "export HTTPS_PROXY=URL, if this network needs one"


def _host(url: str) -> str:
    parts = urlsplit(url)
    host: Any = parts.hostname
    return f"{host}:{parts.port}" if parts.port else str(host)


def _rate(speed: float) -> str:
    return f"{speed / 1e6:.2f} MB/s" if speed < 1e7 else f"{speed / 1e6:.0f} MB/s"


def _size(size: int) -> str:
    return f"{size / (1 << 20):.3g} MiB" if size >= 1 << 20 else f"{size / 1024:.3g} KiB"
