"""The artifacts that are looked at, by name, and how they hang together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from llmpipe.core.artifact import MANIFEST, Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Record


class Library:
    """Artifacts and what they were made from. Names are paths from the folder that is viewed."""

    def __init__(self, root: Path, find: Callable[[], Sequence[Artifact]]) -> None:
        """``find`` says which artifacts there are now."""
        self._root, self._find = root, find
        self._all: dict[str, Artifact] = {}
        self.refresh()

    def refresh(self) -> Mapping[str, Artifact]:
        """All artifacts by name, as they are now, those that others were made from among them."""
        found: dict[str, Artifact] = {}
        for artifact in self._find():
            for each in (artifact, *_ancestors(artifact)):
                found.setdefault(self._name(each.path), each)
        made = sorted(found.items(), key=lambda item: (item[1].manifest.started, item[0]))
        self._all = dict(made)
        return self._all

    def get(self, name: str) -> Artifact:
        """The artifact of that name, read anew.

        Raises:
            UserError: there is none, or it can't be read any more.
        """
        if name not in self._all:
            raise UserError(f"there is no artifact called {name!r} here")
        return Artifact.open(self._all[name].path)

    def name(self, artifact: Artifact) -> str | None:
        """The name by which an artifact is known here, if it is."""
        name = self._name(artifact.path)
        return name if name in self._all else None

    def made_of(self, problems: Artifact, record: type[Record]) -> list[Artifact]:
        """The artifacts with ``record`` rows that were made from these problems, newest first."""
        path = problems.path.resolve()
        found = [
            a
            for a in self._all.values()
            if a.manifest.record == record.__name__
            and any(parent.path.resolve() == path for parent in _ancestors(a))
        ]
        return sorted(found, key=lambda a: a.manifest.ended, reverse=True)

    def _name(self, path: Path) -> str:
        return os.path.relpath(path.resolve(), self._root.resolve())


def _ancestors(artifact: Artifact) -> Iterator[Artifact]:
    """What an artifact was made from, and what that was, as far as it is still there."""
    waiting, seen = [artifact], {artifact.path.resolve()}
    while waiting:
        child = waiting.pop()
        for entry in child.manifest.inputs.values():
            path = Path(child.path, entry["path"]).resolve()
            if not entry.get("stage") or path in seen or not (path / MANIFEST).is_file():
                continue
            seen.add(path)
            try:
                parent = Artifact.open(path)
            except UserError:  # damaged: whoever looks at it is told so
                continue
            waiting.append(parent)
            yield parent


def upstream(artifact: Artifact, record: type[Record]) -> tuple[Artifact | None, str]:
    """The rows behind an artifact's own, or None and why they can't be shown."""
    if artifact.manifest.record == record.__name__:
        return artifact, ""
    try:
        return artifact.upstream(record), ""
    except UserError as e:
        return None, e.message
