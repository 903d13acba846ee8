"""What a user can put right, and the end of the time given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
