"""Where and when something was made, without secrets: for manifests and names of files."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import logging
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


def stamp() -> str:
    """The time now, fit for a file's name."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")


def now() -> str:
    """The time now in UTC, to the millisecond: two stages may end within a second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def versions(libraries: Sequence[str]) -> dict[str, str]:
    """The versions of Python, llmpipe, pyarrow and of those of ``libraries`` that are installed."""
    found = {"python": platform.python_version()}
    for name in dict.fromkeys(["llmpipe", "pyarrow", *libraries]):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


_SECRET_FLAG = re.compile(r"(?i)(token|secret|password|api[-_]?key)$")
_SECRET_PAIR = re.compile(r"(?i)((?:token|secret|password|api[-_]?key)\s*=\s*)\S+")
_SECRET_TEXT = re.compile(r"\b(hf_|sk-)[A-Za-z0-9_-]{8,}|(?<=://)[^/@\s]+(?=@)")


def redact(command: Sequence[str]) -> list[str]:
    """A command line without its secrets: values of token-like options, and what looks like one."""
    out: list[str] = []
    hide = False
    for word in command:
        word = "***" if hide else _SECRET_TEXT.sub("***", _SECRET_PAIR.sub(r"\1***", word))
        out.append(word)
        hide = word.startswith("-") and "=" not in word and bool(_SECRET_FLAG.search(word))
    return out


def git_commit() -> str | None:
    """The commit that the working directory is at, where it is in a repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


class _RunLog(logging.FileHandler):
    """Of a disk that is full the rows tell; the log needn't, by a traceback a line."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)


@contextlib.contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Everything llmpipe says while the stage runs, in a file, appended over resumes."""
    handler = _RunLog(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger("llmpipe")
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()
