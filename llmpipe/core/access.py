"""What goes along with every download: the login of this machine, Xet, proxies."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from llmpipe.core.endpoints import HUB, is_hub
from llmpipe.core.finding import Finding, State, joined

_LOOK = re.compile(r"hf_[\w.-]{20,}", re.ASCII)
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


def token() -> Finding:
    """Whether there is a login, and where it is from. Its validity shows at the hub's endpoint."""
    from huggingface_hub import constants

    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return Finding("token", "ok", "not used: HF_HUB_DISABLE_IMPLICIT_TOKEN is set")
    for name in _TOKENS:
        if value := os.environ.get(name, "").strip():
            return _token(value, name, f"unset {name}, or export {name}=hf_...")
    path = Path(constants.HF_TOKEN_PATH)
    try:
        if value := path.read_text(encoding="utf-8", errors="replace").strip():
            return _token(value, str(path), "hf auth login")
    except FileNotFoundError:
        pass
    except OSError as e:
        return Finding("token", "warning", f"{path} can't be read: {e.strerror}", "hf auth login")
    return Finding("token", "ok", "none: gated and private repos need one", "hf auth login")


def _token(value: str, source: str, do: str) -> Finding:
    """What is said of a token, and never the token itself."""
    if _LOOK.fullmatch(value):
        return Finding("token", "ok", f"from {source}; sent to nobody but the hub")
    said = f"from {source}, but it doesn't look like one: they begin with hf_ and are longer"
    return Finding("token", "warning", said, f"{do} (make one at {HUB}/settings/tokens)")


def xet(endpoints: Sequence[str]) -> Finding:
    """Whether Xet moves the bytes, and what proxies are set (without their passwords)."""
    from huggingface_hub import constants

    parts: list[tuple[State, str, str]] = []
    try:
        version = importlib.metadata.version("hf-xet")
    except importlib.metadata.PackageNotFoundError:
        parts.append(("ok", "hf_xet is not installed: plain HTTP", ""))
    else:
        if constants.HF_HUB_DISABLE_XET:
            parts.append(("ok", f"hf_xet {version}, off by HF_HUB_DISABLE_XET", ""))
        elif all(map(is_hub, endpoints)):
            off = "if downloads stall: export HF_HUB_DISABLE_XET=1"
            parts.append(("ok", f"hf_xet {version}, used with the hub", off))
        else:
            parts.append(("ok", f"hf_xet {version}, off for endpoints other than the hub", ""))
    if constants.is_offline_mode():
        parts.append(
            ("problem", "HF_HUB_OFFLINE is set: nothing is downloaded", "unset HF_HUB_OFFLINE")
        )
    parts += [_proxy(name, value) for name in _PROXIES if (value := _variable(name))]
    return joined("xet", *parts)


def _variable(name: str) -> str:
    return os.environ.get(name.lower()) or os.environ.get(name) or ""


def _proxy(name: str, value: str) -> tuple[State, str, str]:
    parts = urlsplit(value if "://" in value else f"http://{value}")
    host = parts.hostname or "?"
    said = f"{name} goes through {parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}"
    if parts.scheme.startswith("socks") and importlib.util.find_spec("socksio") is None:
        do = f"pip install socksio, or unset {name} {name.lower()}"
        return "problem", f"{said}, which the hub's client can't use as it is installed", do
    return "ok", said, ""
