"""A place in the tokens of an answer."""

from __future__ import annotations

from llmpipe.algo.answers.lexer import Token
from llmpipe.algo.answers.tree import TooLargeError, UnreadableError

_DEPTH = 60


class Cursor:
    """Reads tokens one by one; how deep it is in the grammar is counted and bounded."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0

    def more(self) -> bool:
        return self._at < len(self._tokens)

    def shown(self) -> str:
        return str(self._tokens[self._at].value) if self.more() else "the end"

    def _kind(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].kind if at < len(self._tokens) else "end"

    def _is(self, *values: str, ahead: int = 0) -> bool:
        at = self._at + ahead
        if at >= len(self._tokens):
            return False
        token = self._tokens[at]
        return token.kind in ("op", "cmd") and token.value in values

    def _take(self) -> Token:
        if not self.more():
            raise UnreadableError("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, *values: str) -> str | None:
        return str(self._take().value) if self._is(*values) else None

    def _expect(self, *values: str) -> str:
        taken = self._accept(*values)
        if taken is None:
            raise UnreadableError(f"{self.shown()} instead of {values[0]}")
        return taken

    def _deeper(self, by: int) -> None:
        self._depth += by
        if self._depth > _DEPTH:
            raise TooLargeError(f"nested more than {_DEPTH} deep")


def plain(token: Token) -> str:
    """A token as it was written, more or less."""
    return str(token.value[0]) if token.kind == "num" else str(token.value)
