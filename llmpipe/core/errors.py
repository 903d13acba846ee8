"""What a user can put right."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can put right: one line that says what is wrong, and what to do next.

    The command line prints ``message``, then ``hint``, and exits with code 2. A hint is a command
    to type wherever there is one.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
