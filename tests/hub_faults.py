"""What can go wrong between a hub and its client: faults for the hub on the loopback."""

from __future__ import annotations

import contextlib
import fcntl
import io
import socket
import struct
import termios
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from hub import Hub

# At most one of these is applied to a request; the others add to each other.
_ENDING = frozenset({"status", "redirect", "truncate", "reset", "close-short", "stall", "slow"})
_BODY = frozenset({"truncate", "close-short", "slow", "no-ranges", "flip", "longer"})
_FILE = frozenset({"wrong-size", "no-commit", "wrong-commit"})  # of GET and HEAD alike
_CUTS = frozenset({"truncate", "reset", "close-short", "stall"})
_PIECES = 20  # of a slow body
KINDS = _ENDING | _BODY | _FILE


@dataclass
class Fault:
    """``do`` it to the next ``times`` requests (None: to all) that match, counting down.

    ``path`` is a shell pattern over a file's path in its repo, or "api" for requests of the API.
    ``method`` is "GET", "HEAD" or "*". The kinds:

    - status: answer with ``status`` and ``headers``
    - redirect: to the same path at the base URL ``to``
    - truncate: promise the whole body, send ``after`` bytes of it, close
    - reset: the same, but with a TCP reset; a HEAD isn't answered at all
    - close-short: promise no length, send ``after`` bytes, close
    - stall: ``after`` bytes, then nothing for ``seconds`` (0: until the hub stops), then the rest;
      a HEAD is answered only then
    - slow: the body in pieces over ``seconds``
    - no-ranges: answer 200 with everything to a request for a range
    - flip: one bit of byte ``after`` of the body is wrong
    - longer: one byte too many, with a length that says so
    - wrong-size: HEAD and GET say and send one byte less than the listing says
    - no-commit, wrong-commit: HEAD and GET leave out X-Repo-Commit and ETag, or name commit 000...
    """

    do: str
    path: str = "*"
    method: str = "GET"
    times: int | None = 1
    after: int = 0
    status: int = 503
    headers: Mapping[str, str] = field(default_factory=dict)
    to: str = ""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.do not in KINDS:
            raise ValueError(f"no fault {self.do!r}: there are {', '.join(sorted(KINDS))}")

    def matches(self, path: str, method: str) -> bool:
        if path == "api":  # not by "*": a listing is another matter than a file
            here = self.path == "api"
        else:
            here = path == self.path or fnmatchcase(path, self.path)
        methods = {"GET", "HEAD"} if self.method == "*" or self.do in _FILE else {self.method}
        return here and (method in methods or (method == "POST" and "GET" in methods))


def take(faults: Iterable[Fault], path: str, method: str, *, has_body: bool) -> Mapping[str, Fault]:
    """The faults that apply to a request, by kind, each counted down."""
    taken: dict[str, Fault] = {}
    kinds: Collection[str] = KINDS if has_body else KINDS - _BODY
    for fault in faults:
        spent = fault.times is not None and fault.times <= 0
        second = fault.do in taken or (fault.do in _ENDING and taken.keys() & _ENDING)
        if spent or second or fault.do not in kinds or not fault.matches(path, method):
            continue
        if fault.times is not None:
            fault.times -= 1
        taken[fault.do] = fault
    return taken


class FaultyHandler(BaseHTTPRequestHandler):
    """Answers requests, as well as the faults taken for them allow."""

    hub: Hub
    taken: Mapping[str, Fault]
    flip_last: bool
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body go in two writes

    def gone_wrong(self, path: str, *, has_body: bool = True) -> bool:
        """Take the faults of a request; whether one of them answered it."""
        has_body = has_body and self.command != "HEAD"
        self.taken = self.hub.take_faults(path, self.command, has_body=has_body)
        if status := self.taken.get("status"):
            body = b'{"error": "this is a fault"}'
            self.send(status.status, status.headers, io.BytesIO(body), 0, len(body))
        elif redirect := self.taken.get("redirect"):
            self.send(302, {"Location": redirect.to + self.path, **redirect.headers})
        elif not has_body and "reset" in self.taken:
            self._reset()
        elif not has_body and (stall := self.taken.get("stall")):
            self.hub.stopped.wait(stall.seconds or None)
            return self.hub.stopped.is_set()
        else:
            return False
        return True

    def send(
        self,
        code: int,
        headers: Mapping[str, str],
        stream: BinaryIO | None = None,
        start: int = 0,
        size: int = 0,
    ) -> None:
        """Send ``size`` bytes of ``stream`` from ``start`` on, as the faults want it."""
        length = {"Content-Length": str(size + ("longer" in self.taken))}
        if "close-short" in self.taken:
            length = {"Connection": "close"}
        self.send_response(code)
        for name, value in {**headers, **length}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD" or stream is None:
            return
        self.flip_at = -1
        if flip := self.taken.get("flip"):
            self.flip_at = start + min(flip.after, size - 1)
        elif self.flip_last:
            self.flip_at = start + size - 1
        cut = next((f for do, f in self.taken.items() if do in _CUTS), None)
        sent = min(cut.after, size) if cut else size
        if slow := self.taken.get("slow"):
            for i in range(_PIECES):
                piece = range(start + size * i // _PIECES, start + size * (i + 1) // _PIECES)
                self._part(stream, piece.start, len(piece))
                self.hub.stopped.wait(slow.seconds / _PIECES)
        else:
            self._part(stream, start, sent)
        if cut and cut.do == "stall":
            self.hub.stopped.wait(cut.seconds or None)
            self.close_connection = self.hub.stopped.is_set()
            if not self.close_connection:
                self._part(stream, start + sent, size - sent)
        elif cut and cut.do == "reset":
            self._reset()
        elif cut:
            self.close_connection = True
        if "longer" in self.taken:
            self.connection.sendall(b"\0")

    def _part(self, stream: BinaryIO, start: int, size: int) -> None:
        if start <= self.flip_at < start + size:
            before = self.flip_at - start
            at, self.flip_at = self.flip_at, -1
            self._part(stream, start, before)
            stream.seek(at)
            self.connection.sendall(bytes([stream.read(1)[0] ^ 1]))
            self._part(stream, at + 1, size - before - 1)
        elif size:
            self.connection.sendfile(stream, start, size)

    def _reset(self) -> None:
        """End the connection by a TCP reset, after what was sent has left."""
        until = time.monotonic() + 2
        left = bytearray(4)
        with contextlib.suppress(OSError):
            while time.monotonic() < until:
                fcntl.ioctl(self.connection, termios.TIOCOUTQ, left)
                if not any(left):
                    break
                time.sleep(0.001)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Taken from the socket object, which the server would shut down (and so say goodbye) first.
        socket.close(self.connection.detach())
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""
