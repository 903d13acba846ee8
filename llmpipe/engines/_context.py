"""How long a model's answers may be, looked at before anything is loaded."""

from __future__ import annotations

from llmpipe.core.errors import UserError


def check_room(max_tokens: int, limit: int | None) -> None:
    """Refuse an answer's length that leaves no token for a prompt.

    Raises:
        UserError: ``max_tokens`` is not below ``limit``.
    """
    if limit is not None and max_tokens >= limit:
        raise UserError(
            f"max-tokens {max_tokens} leaves no room for a prompt in a context of {limit} tokens",
            f"--max-tokens {limit // 2}",
        )
