"""Find a plugin by its file's name; other packages add theirs by entry point.

A plugin room is a package such as ``llmpipe.engines``; a plugin is a module in it with one constant
(``ENGINE``), and a module whose name begins with an underscore is none. Nothing is registered: a
new file is a new plugin. Names are written with dashes on the command line (``reasoning-gym``) and
with underscores as files. Another package offers one by an entry point in the group
``llmpipe.engines`` (``llmpipe.tasks``, ``llmpipe.recipes``, ``llmpipe.trackers``,
``llmpipe.exporters``).
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

from llmpipe.core.errors import UserError

_CONSTANT = {
    "engines": "ENGINE",
    "tasks": "TASK",
    "recipes": "RECIPE",
    "trackers": "TRACKER",
    "exporters": "EXPORTER",
    "trainers": "TRAINER",
}
# How one is asked for; a task's name may come with the rows, too.
_FLAG = {"engines": "--engine ", "trackers": "--track ", "exporters": "--to "}


def names(room: str) -> list[str]:
    """The plugins of a room, as written on the command line, sorted."""
    package = importlib.import_module(f"llmpipe.{room}")
    modules = [m.name for m in pkgutil.iter_modules(package.__path__)]
    own = {name.replace("_", "-") for name in modules if not name.startswith("_")}
    others = {e.name for e in importlib.metadata.entry_points(group=f"llmpipe.{room}")}
    return sorted(own | others)


def _module(room: str, name: str) -> ModuleType | None:
    path = f"llmpipe.{room}.{name.replace('-', '_')}"
    try:
        found = importlib.util.find_spec(path)
    except (ModuleNotFoundError, ValueError):
        found = None
    if found:
        return importlib.import_module(path)
    for entry in importlib.metadata.entry_points(group=f"llmpipe.{room}"):
        if entry.name == name:
            return importlib.import_module(entry.module)
    return None


def load(room: str, name: str) -> Any:
    """The constant of plugin ``name`` in ``room``.

    Raises:
        UserError: no such plugin, with the nearest names and all of them.
    """
    word = name.replace("-", "_")
    module = _module(room, name) if word.isidentifier() and word[0] != "_" else None
    if module is None:
        known = names(room)
        near = difflib.get_close_matches(name, known, n=3)
        hint = _FLAG.get(room, "") + " or ".join(near or known)
        if near and near != known:
            hint += f" (there are {', '.join(known)})"
        raise UserError(f"no {room.removesuffix('s')} is called {name!r}", hint)
    return getattr(module, _CONSTANT[room])


def about(room: str, name: str) -> str:
    """What a plugin's file says of itself in its first line."""
    return (getattr(_module(room, name), "__doc__", None) or "").strip().partition("\n")[0]


def source_digest(room: str, name: str) -> str:
    """A hash of the plugin's own source: another rule makes another result."""
    module = _module(room, name)
    file = getattr(module, "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16] if file else "unknown"
