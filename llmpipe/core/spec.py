"""What a stage says of itself, and what comes back: modes, specs, results, fingerprints."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from llmpipe.core import fs
from llmpipe.core.artifact import Artifact
from llmpipe.core.plugins import source_digest
from llmpipe.core.provenance import versions
from llmpipe.core.records import Record

Input = Artifact | Path


class Progress(Protocol):
    """How far a stage is; ``figures`` are what else is worth showing beside the bar.

    ``unit`` is what is counted ("bytes" are shown as such); ``parts`` are the pieces in work now,
    each with what is done of it and its whole.
    """

    def __call__(
        self,
        done: int,
        total: int | None,
        *,
        unit: str = "",
        parts: Mapping[str, tuple[int, int]] | None = None,
        **figures: Any,
    ) -> None: ...


def _silent(
    done: int,
    total: int | None,
    *,
    unit: str = "",
    parts: Mapping[str, tuple[int, int]] | None = None,
    **figures: Any,
) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Mode:
    """How a stage is run, which never changes what it makes.

    ``force`` makes again whatever is there; ``remake`` only what was made with other settings,
    which is refused otherwise. ``deadline`` is a moment of `time.monotonic` at which a stage that
    can go on later is to have ended.
    """

    force: bool = False
    remake: bool = False
    dry_run: bool = False
    command: Sequence[str] = ()
    progress: Progress = _silent
    deadline: float | None = None

    @property
    def watched(self) -> bool:
        """Whether anybody is told of progress."""
        return self.progress is not _silent


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a stage is about to make.

    ``config`` is a frozen dataclass; a field with ``metadata={"fingerprint": False}`` is recorded
    but may change freely. ``inputs`` are what the result is a function of; ``plugins`` are
    (room, name) pairs whose source counts too; ``libraries`` are distributions whose versions are
    recorded, those in ``pinned`` count too. ``version`` goes up when the stage makes something
    else of the same input. ``keep_old`` moves a forced-out artifact aside instead of deleting it.
    ``shard_rows`` is how many rows a data file gets; None leaves it to their bytes.
    ``lines`` writes JSON Lines, for other tools than llmpipe.
    """

    stage: str
    record: type[Record]
    config: Any
    inputs: Mapping[str, Input]
    out: Path
    version: int = 1
    plugins: Sequence[tuple[str, str]] = ()
    libraries: Sequence[str] = ()
    pinned: Sequence[str] = ()
    keep_old: bool = False
    shard_rows: int | None = None
    lines: bool = False


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a stage made, or would make, or found already made.

    One that is not ``complete`` ran out of time: nothing was made yet, and it can go on.
    """

    stage: str
    out: Path
    rows: int
    dropped: Mapping[str, int]
    seconds: float
    up_to_date: bool
    figures: Mapping[str, Any]
    attention: str | None = None
    plan: str | None = None
    complete: bool = True

    @property
    def exit_code(self) -> int:
        return 3 if self.attention else 0


def counted(config: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a config's values that are part of the fingerprint.

    What was recorded before a setting came to be was made with its default.
    """
    fields = dataclasses.fields(config)
    free = {f.name for f in fields if not f.metadata.get("fingerprint", True)}
    return {k: v for k, v in {**_defaults(config), **values}.items() if k not in free}


def _defaults(config: Any) -> dict[str, Any]:
    defaults = {}
    for field in dataclasses.fields(config):
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory()
    whole: dict[str, Any] = json.loads(json.dumps(defaults, default=str))
    return whole


def same_settings(config: Any, recorded: Mapping[str, Any]) -> bool:
    """Whether a manifest's config is this one, but for fields that are free to change."""
    return not changes(counted(config, recorded), counted(config, plain(config)))


def plain(config: Any) -> dict[str, Any]:
    """A config as it stands in a manifest."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config), default=str))
    return plain


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    keys = sorted(old.keys() | new.keys())
    return [
        f"{k} was {json.dumps(old.get(k), ensure_ascii=False)}, "
        f"is now {json.dumps(new.get(k), ensure_ascii=False)}"
        for k in keys
        if old.get(k) != new.get(k)
    ]


def fingerprint(spec: Spec) -> dict[str, Any]:
    config = plain(spec.config)
    inputs: dict[str, dict[str, str]] = {}
    for role, value in spec.inputs.items():
        if isinstance(value, Artifact):
            entry = {"digest": value.digest, "stage": value.manifest.stage}
            path = value.path
        else:
            entry, path = {"digest": fs.digest(value)}, value
        inputs[role] = {"path": os.path.relpath(path.resolve(), spec.out.resolve()), **entry}
    plugins = {f"{room}/{name}": source_digest(room, name) for room, name in spec.plugins}
    key = {
        "stage": spec.stage,
        "version": spec.version,
        "config": counted(spec.config, config),
        "inputs": {k: v["digest"] for k, v in inputs.items()},
        "plugins": plugins,
        "pinned": {k: v for k, v in versions(spec.pinned).items() if k in spec.pinned},
    }
    text = json.dumps(key, sort_keys=True, ensure_ascii=False)
    return {
        "fingerprint": hashlib.sha256(text.encode()).hexdigest(),
        "config": config,
        "inputs": inputs,
        "plugins": plugins,
        "cwd": os.path.relpath(os.curdir, spec.out.resolve()),
    }
