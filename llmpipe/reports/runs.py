"""Evals as a report needs them: their results, and the steps that led there."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llmpipe.algo.results import RESULTS, samples_in_words
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.local_folder import Download
from llmpipe.core.records import ProblemScore

_NEEDED = ("problems", "n", "metrics", "curves", "rates", "by", "lengths", "settings", "intervals")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One stage on the way to an eval; ``downloads`` are the repos that it read.

    ``folder`` is the one that ``command`` was run in, where that is known and still there. Where
    the artifact is gone, or is another by now, ``gone`` is True and the rest empty.
    """

    stage: str
    path: str
    record: str = ""
    rows: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    plugins: Collection[str] = ()
    command: Sequence[str] = ()
    folder: Path | None = None
    git_commit: str | None = None
    ended: str = ""
    downloads: Sequence[Download] = ()
    tests_only: bool = False
    gone: bool = False


@dataclass(frozen=True, kw_only=True)
class Run:
    """One eval. ``name`` tells it from the others of a report, ``results`` is ``results.json``.

    ``steps`` are in the order in which they were run; the last one is the eval itself.
    """

    name: str
    path: Path
    results: Mapping[str, Any]
    scores: Sequence[ProblemScore]
    steps: Sequence[Step]

    @property
    def model(self) -> str:
        return str(self.results["settings"].get("model") or "unknown")

    @property
    def samples(self) -> str:
        """How many a problem has."""
        return samples_in_words(self.results["n"])


def load(paths: Sequence[Path]) -> list[Run]:
    """The evals at ``paths``.

    Raises:
        UserError: one is given twice, is no eval, or was made by an llmpipe that said less.
    """
    whole = [Path(os.path.realpath(path)) for path in paths]
    for i, path in enumerate(whole):
        if path in whole[:i]:
            raise UserError(f"{paths[i]} is given twice", "give each eval once")
    return [_load(*pair) for pair in zip(_names(whole), paths, strict=True)]


def _load(name: str, path: Path) -> Run:
    artifact = Artifact.open(path, ProblemScore)
    again = "run its eval again, which takes seconds"
    try:
        results = json.loads((path / RESULTS).read_text(encoding="utf-8"))
        scores = list(artifact.iter_rows(ProblemScore))
    except (OSError, ValueError, KeyError) as e:
        raise UserError(f"{path} can't be read: {e}", again) from None
    missing = [key for key in _NEEDED if key not in results]
    if missing:
        raise UserError(f"{path / RESULTS} has no {', '.join(missing)}", again)
    steps = list(_steps(artifact, set()))
    return Run(name=name, path=path, results=results, scores=scores, steps=steps)


def _same(path: Path, digest: str) -> Artifact | None:
    try:
        found = Artifact.open(path)
    except UserError:
        return None
    return found if found.digest == digest else None


def _names(paths: Sequence[Path]) -> list[str]:
    """The last parts of each path, as many as it takes to tell all apart."""
    most = max(len(path.parts) for path in paths)
    for count in range(1, most + 1):
        names = ["/".join(path.parts[-count:]) for path in paths]
        if len(set(names)) == len(names):
            break
    return names


def _folder(artifact: Artifact) -> Path | None:
    if artifact.manifest.cwd is None:
        return None
    folder = Path(artifact.path, artifact.manifest.cwd).resolve()
    return folder if folder.is_dir() else None


def _steps(artifact: Artifact, seen: set[Path]) -> Iterator[Step]:
    """What an artifact was made from, the first things first, and itself."""
    downloads = []
    for entry in artifact.manifest.inputs.values():
        path = Path(artifact.path, entry["path"]).resolve()
        if path in seen:
            continue
        seen.add(path)
        if not entry.get("stage"):
            manifest = path / ".llmpipe" / "manifest.json"
            if manifest.is_file() and (download := Download.read(manifest)):
                downloads.append(download)
            continue
        before = _same(path, entry["digest"])
        if before:
            yield from _steps(before, seen)
        else:
            yield Step(stage=entry["stage"], path=path.name, gone=True)
    m = artifact.manifest
    yield Step(
        stage=m.stage,
        path=artifact.path.name,
        record=m.record,
        rows=m.rows,
        config=m.config,
        plugins=m.plugins,
        command=m.command,
        folder=_folder(artifact),
        git_commit=m.git_commit,
        ended=m.ended,
        downloads=downloads,
        tests_only=bool(m.details.get("engine", {}).get("for_tests_only")),
    )
