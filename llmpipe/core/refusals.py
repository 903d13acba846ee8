"""Why a download fails, and what may help: errors of `huggingface_hub` in one line each."""

from __future__ import annotations

import contextlib
import datetime
import email.utils
import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

from llmpipe.core.endpoints import HUB, Wanted, is_hub, shown
from llmpipe.core.provenance import redact

_FULL = {28, 122}  # no space left, quota exceeded
_PASSING = {36, 20, 21, 17}  # a name too long, a file or a folder in the way: of one file only
_NONSENSE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # answers make these
_AGAIN = {408, 425, 429}  # these and 5xx may pass


class DownloadError(Exception):
    """Why something did not come, in one line, and what may help.

    ``helps`` is "retry" (the same again, after ``wait`` seconds where the server named them),
    "file" (another endpoint may have this file), "endpoint" (another endpoint may have this repo)
    or "user" (nothing that a program can do).
    """

    def __init__(
        self,
        message: str,
        helps: Literal["retry", "file", "endpoint", "user"],
        hint: str = "run it again to go on; --endpoint URL for a mirror",
        *,
        wait: float | None = None,
        slow: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.helps = helps
        self.hint = hint
        self.wait = wait
        self.slow = slow  # so slow that what it brings is no progress
        self.gained = False  # whether it came after more had been brought than before

    def __str__(self) -> str:
        return self.message


@contextlib.contextmanager
def explained(wanted: Wanted, endpoint: str, what: str, *, of_file: bool = False) -> Iterator[None]:
    """Turn the library's errors into `DownloadError`: ``what`` of ``wanted`` was asked for."""
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

    try:
        yield
    except ImportError as e:  # a SOCKS proxy is set, and the client for it isn't there
        raise DownloadError(
            f"can't ask {shown(endpoint)}: {_reason(e)}",
            "user",
            "pip install socksio, or unset ALL_PROXY",
        ) from None
    except (OSError, httpx.HTTPError, httpx.InvalidURL, *_NONSENSE) as e:
        raise _trouble(wanted, endpoint, e, what, of_file=of_file) from None


def _trouble(
    wanted: Wanted, endpoint: str, e: Exception, what: str, *, of_file: bool
) -> DownloadError:
    """Errors of the library, of HTTP, of this machine, and of answers that make no sense."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

    asked = shown(endpoint)
    if isinstance(e, HfHubHTTPError):
        return _refusal(wanted, endpoint, e, what, of_file=of_file)
    if isinstance(e, OfflineModeIsEnabled):
        return DownloadError(
            f"{wanted} can't be brought: HF_HUB_OFFLINE is set",
            "user",
            "unset HF_HUB_OFFLINE",
        )
    if isinstance(e, httpx.TransportError):
        said = f"{asked} does not send {what}: {_reason(e)}{_way(e, endpoint)}"
        return DownloadError(said, "retry")
    if isinstance(e, OSError):
        return local_trouble(e, what)
    if isinstance(e, json.JSONDecodeError):
        said = f"{asked} answers with something that is not {what}: a login page of the network?"
        return DownloadError(said, "retry")
    return DownloadError(f"{asked} answers with something that is not {what}", "retry")


def _way(e: Any, endpoint: str) -> str:
    """Where a request went, if that is not the endpoint itself: a redirect's host, a proxy."""
    try:
        url = urlsplit(str(e.request.url))
    except RuntimeError:  # it failed before there was a request
        return ""
    parts = []
    if url.netloc.rpartition("@")[2] != urlsplit(endpoint).netloc.rpartition("@")[2]:
        parts.append(f"at {url.netloc.rpartition('@')[2]}, where it sends for it")
    proxy = urllib.request.getproxies().get(url.scheme) or urllib.request.getproxies().get("all")
    if proxy and not urllib.request.proxy_bypass(url.hostname or ""):
        parts.append(f"by the proxy {shown(proxy)}")
    return f" ({', '.join(parts)})" if parts else ""


def _refusal(wanted: Wanted, endpoint: str, e: Any, what: str, *, of_file: bool) -> DownloadError:
    """What an HTTP status of 400 or more means."""
    from huggingface_hub.errors import (
        DisabledRepoError,
        GatedRepoError,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    asked = shown(endpoint)
    kind = "datasets/" if wanted.repo_type == "dataset" else ""
    page = f"{HUB}/{kind}{wanted.repo}"
    status = e.response.status_code
    if isinstance(e, GatedRepoError):
        return DownloadError(
            f"{wanted} is gated", "endpoint", f"ask for access at {page}, then {_login(endpoint)}"
        )
    if isinstance(e, DisabledRepoError):
        return DownloadError(f"{wanted} is closed on {asked}", "endpoint", f"see {page}")
    if status == 401 and "credentials" in (e.response.headers.get("X-Error-Message") or ""):
        return DownloadError(
            f"{asked} does not accept the token",
            "endpoint",
            f"make another at {HUB}/settings/tokens, then {_login(endpoint)}",
        )
    if of_file and status in (401, 403) and "X-Error-Code" not in e.response.headers:
        # A signed link that has run out, as a clock that is wrong makes of it: a new one may do.
        return DownloadError(f"{asked} does not send {what}: HTTP {status}", "retry")
    if isinstance(e, RepositoryNotFoundError):
        other = "dataset" if wanted.repo_type == "model" else "model"
        return DownloadError(
            f"{asked} has no {wanted.repo_type} {wanted.repo}, or it is private",
            "endpoint",
            f"check the name at {page}; --repo-type {other} if it is one; "
            f"for a private one {_login(endpoint)}",
        )
    if isinstance(e, RevisionNotFoundError):
        return DownloadError(
            f"{asked}: {wanted} has no revision {wanted.revision}",
            "endpoint",
            "--revision main, a tag or a whole commit",
        )
    if isinstance(e, RemoteEntryNotFoundError):
        return DownloadError(f"{asked} does not have {what} (HTTP 404)", "file")
    if status in _AGAIN or status >= 500:
        wait = retry_after(e.response.headers)
        return DownloadError(f"{asked} does not send {what}: HTTP {status}", "retry", wait=wait)
    if status in (401, 403):
        return DownloadError(
            f"{asked} does not let you read {what}: HTTP {status}",
            "endpoint",
            f"see {page}; {_login(endpoint)}",
        )
    return DownloadError(f"{asked} does not send {what}: HTTP {status}", "file")


def _login(endpoint: str) -> str:
    """What gives access, as commands."""
    if is_hub(endpoint):
        return "hf auth login, or --token TOKEN"
    return "--token TOKEN (the login of this machine is not sent to a mirror)"


def local_trouble(e: OSError, what: str) -> DownloadError:
    """This machine can't take ``what``."""
    if e.errno in _FULL:
        return DownloadError(f"no space left for {what}", "user", "free some, then run it again")
    return DownloadError(
        f"can't write {what}: {e.strerror or e}",
        "file" if e.errno in _PASSING else "user",
        "choose a --local-dir that you can write",
    )


def retry_after(headers: Any) -> float | None:
    """The seconds that a server wants to be left alone, from either of the hub's headers.

    ``Retry-After`` may be a date too; the hub's own rate limits come as ``ratelimit``
    (RateLimit header fields for HTTP, IETF draft): ``"api";r=0;t=93``.
    """
    after = headers.get("Retry-After", "").strip()
    if re.fullmatch("[0-9]{1,9}", after):
        return float(after)
    if after:
        return _until(after)
    limit = re.search(r"\br=0\b.*?\bt=(\d+)", headers.get("ratelimit", ""))
    return float(limit[1]) if limit else None


def _until(date: str) -> float | None:
    try:
        then = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=datetime.UTC)
    return max(0.0, (then - datetime.datetime.now(datetime.UTC)).total_seconds())


def _reason(e: BaseException) -> str:
    """The first line of an error, without the secrets that a signed URL holds."""
    text = str(e.__cause__ or e).strip()
    line = text.splitlines()[0] if text else type(e).__name__
    return redact([re.sub(r"\?\S+", "", line)])[0]
