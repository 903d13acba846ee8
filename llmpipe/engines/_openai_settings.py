"""The options of the openai engine, read and checked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from llmpipe.core.endpoints import shown
from llmpipe.core.errors import UserError
from llmpipe.core.options import parse_options
from llmpipe.core.protocols import Sampling

KEY = "OPENAI_API_KEY"
_URL_HINT = "--base-url http://HOST:8000/v1"
_DEFAULTS: Mapping[str, Any] = {
    "base_url": None,
    "concurrency": 64,
    "timeout": 3600,  # answers aren't streamed: a long one has to be finished within it
    "retries": 16,  # some nine minutes of waiting: a server that starts anew loads its model
    "api_key_env": None,
}
OPTIONS = frozenset(_DEFAULTS)
_MOST = 1000  # connections that the client opens
_OURS = frozenset(
    {
        "chat_template",
        "chat_template_kwargs",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",
        "return_token_ids",
        "seed",
        "stream",
        "temperature",
        "top_p",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the server is and how it is asked; ``timeout`` is in seconds, for one try."""

    base_url: str
    concurrency: int
    timeout: float
    retries: int
    key_name: str

    @property
    def key(self) -> str | None:
        """The key, from the environment."""
        return os.environ.get(self.key_name, "").strip() or None


def read_settings(options: Mapping[str, str], sampling: Sampling) -> Settings:
    """The settings that ``options`` give.

    Raises:
        UserError: an unknown option, one out of its range, or sampling that no server takes.
    """
    given = {**_DEFAULTS, **parse_options(options, OPTIONS, "the openai engine")}
    for name, low, high in (("concurrency", 1, _MOST), ("retries", 0, 1000)):
        value = given[name]
        if type(value) is not int or not low <= value <= high:
            raise UserError(
                f"{name} is {value!r}, but must be a number from {low} to {high}",
                f"--engine-arg {name}={_DEFAULTS[name]}",
            )
    timeout = given["timeout"]
    if type(timeout) not in (int, float) or not 0 < timeout < 1e6:
        raise UserError(
            f"timeout is {timeout!r}, but must be seconds, more than 0", "--engine-arg timeout=3600"
        )
    _check_sampling(sampling)
    return Settings(
        base_url=_url(given["base_url"]),
        concurrency=given["concurrency"],
        timeout=timeout,
        retries=given["retries"],
        key_name=_key_name(given["api_key_env"]),
    )


def _url(given: Any) -> str:
    if given is None:
        raise UserError("the openai engine needs to know where the server is", _URL_HINT)
    url = str(given).strip().rstrip("/")
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        whole = False
        parts = urlsplit("")
    if "@" in parts.netloc:
        raise UserError(
            f"base_url {shown(url)} comes with a name or a password, which would be written down",
            f"export {KEY}=... for the key, and {_URL_HINT}",
        )
    # What comes after a question mark may be a key, so it isn't repeated.
    if not whole or parts.query or parts.fragment:
        raise UserError(f"base_url {shown(url).partition('?')[0]!r} is no plain URL", _URL_HINT)
    return url


def _key_name(given: Any) -> str:
    if given is None:
        return KEY
    # What isn't the name of a variable may be the key itself, so it isn't repeated.
    if not re.fullmatch(r"[A-Za-z_]\w*", str(given), re.ASCII) or not os.environ.get(str(given)):
        raise UserError(
            "api_key_env names no variable of the environment that is set",
            "export MY_KEY=..., then --engine-arg api_key_env=MY_KEY",
        )
    return str(given)


def _check_sampling(sampling: Sampling) -> None:
    ours = sorted(_OURS & sampling.extra.keys())
    if ours:
        raise UserError(
            f"{', '.join(ours)} can't be given as an extra sampling parameter",
            "it has an option of its own, or is chosen by the engine: llmpipe rollout --help",
        )
    if sampling.chat_template == "":
        raise UserError(
            "a chat server can't be given the bare text of a prompt",
            "use --engine vllm, or start the server with --chat-template",
        )
