"""Commands that may hang, crash or leave processes behind, with a limit on wall time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

MARK = "LLMPIPE_CHILD"
"""A variable of the environment by which what a child started is known: see `end`."""

_PATIENCE = 2.0  # seconds for the kernel to end what was killed: a wedged driver holds on to it


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: ``code`` is None where it was killed at its limit."""

    code: int | None
    out: str
    errors: str


class Children:
    """Runs commands from any thread; what they started ends with them, and all with this."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def run(
        self, command: Sequence[str], seconds: float, env: Mapping[str, str] | None = None
    ) -> Ended:
        """Run a command with nothing to read; ``env`` is added to this process's own.

        Raises:
            OSError: it can't be started.
            RuntimeError: these children were ended in the meantime.
        """
        mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        # In memory: a full disk is one of the things looked for, and a pipe would be held open by
        # what the command leaves behind.
        with _memory() as out, _memory() as errors:
            with self._lock:
                if self._closed:
                    raise RuntimeError("stopped")
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=errors,
                    env={**os.environ, **(env or {}), MARK: mark},
                    start_new_session=True,
                )
                self._running[mark] = process
            try:
                code: int | None = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                end(process, mark)
                with self._lock:
                    self._running.pop(mark, None)
            return Ended(code, _text(out), _text(errors))

    def close(self) -> None:
        """Kill what still runs, and start nothing more."""
        with self._lock:
            self._closed = True
            running = dict(self._running)
        for mark, process in running.items():
            end(process, mark)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


def _memory() -> IO[bytes]:
    return os.fdopen(os.memfd_create("output"), "w+b")


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


def end(process: subprocess.Popen[bytes], mark: str) -> None:
    """Kill a command and every process it started, as far as the kernel lets them go.

    It was started in a session of its own, with ``mark`` in its environment (`MARK`).
    """
    until = time.monotonic() + _PATIENCE
    while left := list(_left(process.pid, mark)):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
        if time.monotonic() > until:
            return


def _left(leader: int, mark: str) -> Iterator[int]:
    """Processes of a command: in its session, or in another with its mark in the environment.

    Neither alone is enough: a daemon leaves the session, and one that writes its own title may
    write over the environment that the kernel shows.
    """
    word = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            pid = int(folder.name)
            if _zombie(folder):
                continue
            ours = os.getsid(pid) == leader
            if ours or word in (folder / "environ").read_bytes().split(b"\0"):
                yield pid


def _zombie(folder: Path) -> bool:
    """Whether it has ended, and only waits for its parent to look."""
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "ZX"


def end_with(lifeline: int) -> None:
    """Have the kernel kill this process's whole group when the other end of a pipe closes."""
    with contextlib.suppress(OSError):  # a kernel without this: a closed pipe has to do
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:
        os._exit(1)  # it closed before
