"""Bring a model or a data set from the hub or a mirror of it, verified and locked to a commit.

What was brought is written to ``.llmpipe/manifest.json`` last: raw files have no other room for it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from llmpipe.core import fs
from llmpipe.core.errors import UserError
from llmpipe.core.hub import HUB, Transfer, Wanted
from llmpipe.core.run import Mode, Result

log = logging.getLogger(__name__)

MANIFEST = Path(".llmpipe", "manifest.json")
_BEFORE = Path(".llmpipe", "before.json")  # the manifest of what is being replaced
_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Config(Wanted):
    """Which files of which repo; ``revision`` is a branch, a tag or a commit."""


def run(
    config: Config,
    mode: Mode,
    *,
    local_dir: Path | None = None,
    endpoints: Sequence[str] = (),
    token: str | None = None,
    max_workers: int = 8,
    root: Path = Path(),
) -> Result:
    """Bring the files to ``local_dir``, or to ``models/ORG/NAME`` or ``datasets/ORG/NAME``.

    ``endpoints`` are tried in order; without any, ``HF_ENDPOINT`` or the hub. A complete folder
    needs no network, and stays at its commit until ``mode.force``. Only the hub itself gets the
    login kept on this machine; ``token`` goes to whatever endpoint is asked.

    Raises:
        UserError: no such repo or revision, no access, no endpoint answers, or a file stays
            damaged.
    """
    _check(config)
    folder = local_dir or root / f"{config.repo_type}s" / config.repo
    old = _read_manifest(folder / MANIFEST) or _read_manifest(folder / _BEFORE)
    if old and (old["repo"], old["repo_type"]) != (config.repo, config.repo_type):
        raise UserError(
            f"{folder} holds the {old['repo_type']} {old['repo']}", "choose another --local-dir"
        )
    asked = json.loads(json.dumps(asdict(config)))
    complete = (folder / MANIFEST).exists()
    if old and complete and not mode.force and old["asked"] == asked and _whole(folder, old):
        log.info("%s is up to date, at commit %s", folder, old["commit"][:12])
        return _result(folder, old, seconds=0.0, up_to_date=True)
    sources = [e.rstrip("/") for e in endpoints or [os.environ.get("HF_ENDPOINT") or HUB]]
    if mode.dry_run:
        plan = f"would bring {config.repo} at {config.revision} from {sources[0]} to {folder}"
        return _result(folder, None, seconds=0.0, up_to_date=False, plan=plan)
    start = time.monotonic()
    try:
        (folder / MANIFEST.parent).mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise UserError(
            f"can't write {folder}: {e.strerror}", "choose a --local-dir that you can write"
        ) from None
    with fs.locked(folder / MANIFEST.parent / "lock", str(folder)):
        transfer = Transfer(
            config,
            folder,
            token=token,
            workers=max_workers,
            progress=mode.progress,
            begin=lambda: _set_aside(folder),
        )
        try:
            endpoint, files = transfer.from_first(sources)
        except UserError:
            _leave_nothing_empty(folder)
            raise
        manifest = {
            "format": _FORMAT,
            "repo": config.repo,
            "repo_type": config.repo_type,
            "commit": transfer.commit,
            "endpoint": endpoint,
            "asked": asked,
            "files": {path: asdict(file) for path, file in sorted(files.items())},
        }
        _drop_stale(folder, old, manifest)
        fs.write_json(folder / MANIFEST, manifest)
        (folder / _BEFORE).unlink(missing_ok=True)
    seconds = time.monotonic() - start
    log.info("%s: %d files at commit %s", folder, len(files), str(transfer.commit)[:12])
    return _result(folder, manifest, seconds=seconds, up_to_date=False)


def _check(config: Config) -> None:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", config.repo):
        raise UserError(
            f"{config.repo!r} is not the id of a repo", "write ORG/NAME, such as openai/gsm8k"
        )
    if config.repo_type not in ("model", "dataset"):
        raise UserError(
            f"--repo-type is {config.repo_type!r}", "--repo-type model or --repo-type dataset"
        )


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        log.warning("%s is damaged: looking at the hub again", path)
        return None
    return manifest if manifest.get("format") == _FORMAT else None


def _set_aside(folder: Path) -> None:
    """While files change there is no manifest, so that nobody takes the folder for whole."""
    if (folder / MANIFEST).exists():
        (folder / MANIFEST).replace(folder / _BEFORE)


def _leave_nothing_empty(folder: Path) -> None:
    """Undo the making of a folder that nothing came to."""
    made = folder / MANIFEST.parent
    if {p.name for p in folder.iterdir()} == {made.name} and {p.name for p in made.iterdir()} == {
        "lock"
    }:
        shutil.rmtree(folder)


def _whole(folder: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether every file is as it was brought; one whose time has changed is read again."""
    for name, entry in manifest["files"].items():
        path = folder / name
        try:
            now = path.stat()
        except FileNotFoundError:
            return False
        if now.st_size != entry["size"]:
            return False
        if now.st_mtime_ns != entry["mtime_ns"] and fs.sha256(path) != entry["sha256"]:
            return False
    return True


def _drop_stale(folder: Path, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> None:
    """Remove what another commit had and this one lacks: its rows or weights would be mixed in."""
    if old is None or old["commit"] == new["commit"]:
        return
    for name in old["files"].keys() - new["files"].keys():
        log.info("%s is of the commit before: removed", name)
        (folder / name).unlink(missing_ok=True)


def _result(
    folder: Path,
    manifest: Mapping[str, Any] | None,
    *,
    seconds: float,
    up_to_date: bool,
    plan: str | None = None,
) -> Result:
    files = manifest["files"] if manifest else {}
    figures = {
        "files": len(files),
        "bytes": sum(f["size"] for f in files.values()),
        **({k: manifest[k] for k in ("repo", "commit", "endpoint")} if manifest else {}),
    }
    return Result(
        stage="download",
        out=folder,
        rows=0,
        dropped={},
        seconds=seconds,
        up_to_date=up_to_date,
        figures=figures if manifest else {},
        plan=plan,
    )
