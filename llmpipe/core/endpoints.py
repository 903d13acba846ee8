"""Endpoints: the Hugging Face hub or mirrors of it, and what may be told to which."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from llmpipe.core.errors import UserError

HUB = "https://huggingface.co"


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
    xet: str | None = None


def endpoints(given: Sequence[str] = ()) -> list[str]:
    """The endpoints to ask, in order: those given, else ``LLMPIPE_ENDPOINTS``, ``HF_ENDPOINT``.

    ``LLMPIPE_ENDPOINTS`` holds URLs with spaces or commas between them. Without any, the hub.

    Raises:
        UserError: one of them is no URL.
    """
    listed = re.split(r"[\s,]+", os.environ.get("LLMPIPE_ENDPOINTS", "").strip())
    named = [*given] or [e for e in listed if e] or [os.environ.get("HF_ENDPOINT") or HUB]
    for endpoint in named:
        try:
            parts = urlsplit(endpoint)
            whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            whole = False
        if not whole or parts.query or parts.fragment:
            raise UserError(
                f"the endpoint {shown(endpoint)!r} is no URL", "write it as https://HOST"
            )
    return list(dict.fromkeys(e.rstrip("/") for e in named))


def shown(endpoint: str) -> str:
    """An endpoint without the name and the password that it may hold."""
    scheme, mark, rest = endpoint.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def is_hub(endpoint: str) -> bool:
    """Whether an endpoint is the hub itself, by https: not a mirror, and no one in between."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    return parts.scheme == "https" and (
        host in ("huggingface.co", "hf.co") or host.endswith(".huggingface.co")
    )


def token_for(endpoint: str, token: str | None) -> str | bool | None:
    """What `huggingface_hub` is to send: ``token``, the login of this machine (None), or nothing.

    The login kept on this machine is for the hub alone; a given token is for whoever is asked.
    """
    return token or (None if is_hub(endpoint) else False)
