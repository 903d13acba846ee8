"""llmpipe: data and evaluation for post-training reasoning models on one shared server.

The functions below are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmpipe.algo.passk import pass_at_k
    from llmpipe.core.records import Score
    from llmpipe.verifiers.math import verify_math
    from llmpipe.verifiers.maze import verify_maze

__all__ = ["Score", "pass_at_k", "verify_math", "verify_maze"]
__version__ = "0.1.0"

_HOME = {
    "Score": "llmpipe.core.records",
    "pass_at_k": "llmpipe.algo.passk",
    "verify_math": "llmpipe.verifiers.math",
    "verify_maze": "llmpipe.verifiers.maze",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'llmpipe' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
