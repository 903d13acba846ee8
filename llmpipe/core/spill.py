"""Columns of sequences on disk while a plan is made from their lengths."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Spill:
    """Sequences end to end, each column in a file of its own; their lengths in memory."""

    def __init__(self, folder: Path, columns: Mapping[str, type[np.generic]]) -> None:
        self.columns = columns
        self._lengths = array("q")
        self._files = {name: (folder / name).open("w+b") for name in columns}

    def add(self, **columns: NDArray[Any]) -> None:
        """A sequence: an array for each column, all of one length."""
        (length,) = {len(values) for values in columns.values()}
        self._lengths.append(length)
        for name, kind in self.columns.items():
            self._files[name].write(np.ascontiguousarray(columns[name], kind).data)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.array(self._lengths, np.int64)

    def read(
        self,
        name: str,
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        places: NDArray[np.int64],
        into: NDArray[Any],
    ) -> None:
        """Copy ``sizes[i]`` values of a column from its ``starts[i]`` to ``places[i]`` of an array.

        They are read, not mapped: pages that are mapped at random cost more time than reading, and
        as much memory as there are tokens.
        """
        file, width, room = self._files[name], into.itemsize, into.data.cast("B")
        file.flush()
        descriptor, got = file.fileno(), 0
        for start, size, place in zip(
            (starts * width).tolist(),
            (sizes * width).tolist(),
            (places * width).tolist(),
            strict=True,
        ):
            got += os.preadv(descriptor, (room[place : place + size],), start)
        if got != sizes.sum() * width:
            raise OSError(f"{file.name} gave {got} bytes of {sizes.sum() * width}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()
