"""How long a model's conversations may be, read from its folder before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path

from llmpipe.core.errors import UserError


def context(folder: Path) -> int | None:
    """The model's context in tokens, where its config.json says one."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = config.get("text_config", config)
    limit = config.get("max_position_embeddings") or config.get("n_positions")
    return limit if isinstance(limit, int) else None


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
