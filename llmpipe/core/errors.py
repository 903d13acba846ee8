"""What a user can put right, and the end of the time given."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Mapping
from typing import Any

_OF_PATHS = {
    errno.EACCES,
    errno.EPERM,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EROFS,
}


class UserError(Exception):
    """Something the user can put right: one line that says what is wrong, and what to do next.

    The command line prints ``message``, then ``hint``, and exits with code 2. A hint is a command
    to type wherever there is one.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class OutOfTimeError(Exception):
    """A stage's time is over (`Mode.deadline`) before it is done.

    What it has is kept where the next run goes on from; ``figures`` say how far it came.
    """

    def __init__(self, figures: Mapping[str, Any]) -> None:
        super().__init__("out of time")
        self.figures = figures


def path_error(error: OSError) -> UserError | None:
    """What a path that can't be used at all is told by; None for what may be a bug.

    A file that is missing is none of these: who opens it knows whether it had to be there.
    """
    if error.errno not in _OF_PATHS or not isinstance(error.filename, str | bytes):
        return None
    path = os.fsdecode(error.filename)
    shown = path if len(path) < 100 else f"{path[:60]}..."
    hint = "give a shorter name"
    if error.errno != errno.ENAMETOOLONG:
        hint = f"ls -ld {shlex.quote(path)}"
    return UserError(f"{shown} can't be used: {error.strerror}", hint)
