"""The parent's hold on one engine process of a fleet."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
import subprocess
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llmpipe.core import child
from llmpipe.core.protocols import Request, Sampling
from llmpipe.core.wire import Received, interpreter, pack

_SAID = 2000  # characters of what it said last


@dataclass(slots=True)
class Asked:
    """A request, under the number by which a fleet knows it."""

    number: int
    request: Request
    deaths: int = 0
    """Processes that ended while they had it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Where an engine process runs: its devices, and its cores where these are shared out."""

    number: int
    devices: Sequence[str]
    cores: Sequence[int]
    environment: Mapping[str, str]

    def __str__(self) -> str:
        return f"engine {self.number} ({', '.join(self.devices)})"


class EngineProcess:
    """A process that loads an engine and answers what it is given."""

    def __init__(
        self,
        post: Post,
        name: str,
        model: str,
        sampling: Sampling,
        options: Mapping[str, str],
        *,
        beat: float,
    ) -> None:
        """Start it; while it works it says something every ``beat`` seconds."""
        self.post = post
        self.seats = 0
        """Answers that it draws side by side; 0 until it is loaded."""
        self.has: dict[int, Asked] = {}
        """What it was given and has not answered."""
        self.answered = 0
        self.silent = 0.0
        """Seconds that it was listened to, had something to do, and said nothing."""
        self.reason = ""
        """Why it ends, where that is known: it could not load the engine, or it hangs."""
        self.said = ""
        """What it wrote last, once it has ended."""
        self._mark = secrets.token_hex(8)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self.wire, theirs = socket.socketpair()
        lifeline, self._lifeline = os.pipe()
        command, environment = interpreter("llmpipe.engines._fleet_child")
        cores = ",".join(map(str, post.cores))
        try:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(lifeline), str(post.number), cores],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env={**os.environ, **environment, **post.environment, child.MARK: self._mark},
                pass_fds=(theirs.fileno(), lifeline),
                # Ctrl-C is the parent's business; and what it starts can be killed with it.
                start_new_session=True,
            )
        finally:
            theirs.close()
            os.close(lifeline)
        self.wire.setblocking(False)
        self._received = Received()
        self._unsent = bytearray()
        self._send((beat, name, model, sampling, options))

    @property
    def careful(self) -> bool:
        """Whether it is to get nothing more until it has answered."""
        return any(asked.deaths > 1 for asked in itertools.islice(self.has.values(), 1))

    @property
    def unsent(self) -> bool:
        """Whether there is something that it has not taken yet."""
        return bool(self._unsent)

    def give(self, batch: Sequence[Asked]) -> None:
        if not self.has:
            self.silent = 0.0
        self.has |= {asked.number: asked for asked in batch}
        self._send([(asked.request, asked.number) for asked in batch])

    def drop(self) -> None:
        """Let it forget what it has."""
        if self.has:
            self.has = {}
            self._send(None)

    def _send(self, value: Any) -> None:
        self._unsent += pack(value)
        self.flush()

    def flush(self) -> None:
        """Send as much as it takes."""
        # Where it has ended, `alive` will say so.
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._unsent:
                del self._unsent[: self.wire.send(self._unsent)]

    def read(self) -> tuple[list[tuple[str, Any]], bool]:
        """What it has said, and whether it will say no more."""
        words: list[tuple[str, Any]] = []
        try:
            while data := self.wire.recv(1 << 20):
                self.silent = 0.0
                for some in self._received.add(data):
                    words += some
        except BlockingIOError:
            return words, False
        except ConnectionResetError:
            pass
        return words, True

    def listened(self, seconds: float) -> None:
        """It could have said something for as long; one with nothing to do has nothing to say."""
        if self.has or not self.seats:
            self.silent += seconds

    def alive(self) -> bool:
        return self._process.poll() is None

    def finish(self) -> None:
        """Let it end by itself; what it says from now on is lost, and holds it up no more."""
        with contextlib.suppress(OSError):
            self.wire.shutdown(socket.SHUT_RDWR)

    def wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, seconds))

    def end(self) -> str:
        """Kill it with all that it started, and return in a line how it ended. Called once."""
        self.wait(0.05)  # one that is ending has its own code
        child.end(self._process, self._mark)
        self.wait(1)
        self.wire.close()
        os.close(self._lifeline)
        with self._errors as errors:
            size = errors.seek(0, os.SEEK_END)
            errors.seek(max(0, size - _SAID))
            self.said = errors.read().decode(errors="replace").strip()
        if self.reason:
            return self.reason
        code = self._process.returncode
        how = f"exit code {code}"
        if code is not None and code < 0:
            how = f"killed by signal {-code}"
        last = self.said.rpartition("\n")[2].strip()
        return f"{how}: {textwrap.shorten(last, 240)}" if last else how
