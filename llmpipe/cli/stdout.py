"""Standard output that can't be written to: no traceback, whatever command was writing."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

from llmpipe.core.errors import UserError

READER_LEFT = 141
"""What a shell reports of a program whose reader left: 128 and SIGPIPE's number."""


def guard() -> None:
    """From here on, a failed write to stdout is a `UserError`, or the end where nobody reads.

    ``llmpipe show DIR | head`` ends quietly, with exit code `READER_LEFT`.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # None where it was closed
        sys.stdout = _Stdout(
            sys.stdout.buffer,
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            line_buffering=sys.stdout.line_buffering,
        )


class _Stdout(io.TextIOWrapper):
    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as e:
            self._lost(e)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as e:
            self._lost(e)

    def _lost(self, error: OSError) -> NoReturn:
        # What is still in the buffer goes nowhere: Python writes it when it ends, and would fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(READER_LEFT)
        raise UserError(f"stdout can't be written: {error.strerror}", "check where it goes to")
