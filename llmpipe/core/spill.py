"""Columns of sequences on disk while a plan is made from their lengths."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Spill:
    """Sequences end to end, each column in a file of its own; their lengths in memory."""

    def __init__(self, folder: Path, columns: Mapping[str, type[np.generic]]) -> None:
        self._types = columns
        self._lengths = array("q")
        self._files = {name: (folder / name).open("w+b") for name in columns}
        self._maps: list[mmap.mmap] = []

    def add(self, **columns: NDArray[Any]) -> None:
        """A sequence: an array for each column, all of one length."""
        (length,) = {len(values) for values in columns.values()}
        self._lengths.append(length)
        for name, kind in self._types.items():
            self._files[name].write(np.ascontiguousarray(columns[name], kind).data)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.array(self._lengths, np.int64)

    def read(self) -> dict[str, NDArray[Any]]:
        """The columns, mapped from disk; there is at least one token."""
        columns: dict[str, NDArray[Any]] = {}
        for name, file in self._files.items():
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._maps.append(mapped)
            columns[name] = np.frombuffer(mapped, self._types[name])
        return columns

    def forget(self) -> None:
        """Let go of the memory that what was read holds; the columns stay good."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()
