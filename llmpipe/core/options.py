"""Options of the form ``key=value`` that a plugin takes (``--engine-arg``)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from llmpipe.core.errors import UserError


def parse_options(options: Mapping[str, str], known: Collection[str], owner: str) -> dict[str, Any]:
    """The options with their values read as JSON where they are JSON, else as plain strings.

    ``True`` and ``None`` are taken as Python writes them, too. ``owner`` is whose options these
    are, for the message.

    Raises:
        UserError: an option that is not in ``known``, with the nearest names.
    """
    check_names(options, known, owner)
    return {name: read_value(text) for name, text in options.items()}


def check_names(names: Iterable[str], known: Collection[str], owner: str) -> None:
    """Refuse a name that is not in ``known``.

    Raises:
        UserError: with the nearest names.
    """
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            raise UserError(
                f"{owner} has no option {name!r}",
                f"near names: {', '.join(near)}" if near else _known(known),
            )


def whole(options: Mapping[str, str], name: str, default: int) -> int:
    """A whole number of at least 1, or ``default`` where the option is not given.

    Raises:
        UserError: it is something else.
    """
    value = options.get(name, str(default))
    if not value.isdecimal() or int(value) < 1:
        raise UserError(
            f"{name} is {value!r}, but must be a whole number of at least 1",
            f"--engine-arg {name}={default}",
        )
    return int(value)


def _known(known: Collection[str]) -> str:
    names = sorted(known)
    return f"it has {', '.join(names)}" if len(names) <= 12 else "its own documentation lists them"


_TIME = re.compile(r"(?=.)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?")


def read_seconds(text: str) -> float | None:
    """A time such as 2h, 90m, 30s, 1h30m or 45 (seconds), in seconds; None if it is none."""
    found = _TIME.fullmatch(text.strip().lower())
    if not found:
        return None
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return 3600 * hours + 60 * minutes + seconds


def read_value(text: str) -> Any:
    """A value as JSON, or as Python writes it, else as it stands."""
    word = text.strip()
    if word in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[word]
    try:
        return json.loads(word)
    except ValueError:
        return text


def rules_in_force(drop: Iterable[str], keep: Iterable[str], known: Iterable[str]) -> set[str]:
    """The rules that rows are dropped by: those of ``drop`` that aren't in ``keep``.

    Raises:
        UserError: a name that is not in ``known``, or that both name where not all are dropped by.
    """
    drop, keep, known = tuple(drop), tuple(keep), tuple(known)
    for flag, names in (("--drop", drop), ("--keep", keep)):
        if unknown := sorted(set(names) - set(known)):
            raise UserError(
                f"no rule is called {unknown[0]!r}", f"{flag} takes: {', '.join(known)}"
            )
    both = sorted(set(drop) & set(keep)) if drop != known else []
    if both:
        raise UserError(f"both --drop and --keep name {both[0]}", f"--keep {both[0]}")
    return set(drop) - set(keep)
