"""Values between a process and its children: each pickled, behind its length."""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

_HEAD = struct.Struct("<I")


def pack(value: Any) -> bytes:
    """One value as it goes over the wire."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEAD.pack(len(data)) + data


def send(stream: IO[bytes], value: Any) -> None:
    """Write one value."""
    stream.write(pack(value))
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """The next value, waiting for it.

    Raises:
        EOFError: the other side has closed the stream.
    """
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    size = _HEAD.unpack(head)[0]
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


class Received:
    """Values out of bytes that come in pieces, for a side that must not wait."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, data: bytes) -> list[Any]:
        """The values that are whole now."""
        self._bytes += data
        values = []
        while len(self._bytes) >= _HEAD.size:
            end = _HEAD.size + _HEAD.unpack_from(self._bytes)[0]
            if len(self._bytes) < end:
                break
            values.append(pickle.loads(self._bytes[_HEAD.size : end]))
            del self._bytes[:end]
        return values


def interpreter(module: str) -> tuple[list[str], Mapping[str, str]]:
    """The command that runs a module of llmpipe in a fresh interpreter, and what its environment
    needs.

    The working directory is kept off the path: a user's math.py must not be imported. The package's
    own folder is handed on, so that an editable checkout works too.
    """
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)
    return [sys.executable, "-P", "-m", module], {"PYTHONPATH": path}
