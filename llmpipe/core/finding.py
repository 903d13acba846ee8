"""What a check of the machine found, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "problem", "skipped"]
"""A warning may cost time or quality; a problem stops a stage; skipped: nothing to check."""

_GRAVITY: dict[State, int] = {"skipped": 0, "ok": 1, "warning": 2, "problem": 3}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line about the machine: ``do`` is what helps, a command to type where there is one."""

    name: str
    state: State
    found: str
    do: str = ""


def gravest(*states: State) -> State:
    """The state that decides."""
    return max(states, key=lambda state: _GRAVITY[state])


def joined(name: str, *parts: tuple[State, str, str]) -> Finding:
    """One finding of several remarks, each a state, what was found, and what to do about it."""
    return Finding(
        name,
        gravest(*(state for state, _, _ in parts)),
        "; ".join(found for _, found, _ in parts if found),
        "; ".join(dict.fromkeys(do for _, _, do in parts if do)),
    )
