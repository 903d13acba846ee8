"""Bring a model or a data set from the hub or a mirror of it, verified and locked to a commit.

What was brought is written to ``.llmpipe/manifest.json`` last: raw files have no other room for it.
Beside it lie ``run.log`` and, while a download is unfinished, what has come of its files.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from llmpipe.algo.model_files import doubles
from llmpipe.core import fs
from llmpipe.core.endpoints import RemoteFile, Wanted, endpoints, shown
from llmpipe.core.errors import UserError
from llmpipe.core.hub import Repo
from llmpipe.core.mirrors import Mirrors, Retry
from llmpipe.core.partial import LocalFile
from llmpipe.core.provenance import log_to, now, redact, versions
from llmpipe.core.refusals import DownloadError
from llmpipe.core.run import Mode, Result
from llmpipe.core.transfer import Transfer

log = logging.getLogger(__name__)

MANIFEST = Path(".llmpipe", "manifest.json")
_BEFORE = Path(".llmpipe", "before.json")  # the manifest of what is being replaced
_LOCK = Path(".llmpipe", "lock")
_LOG = Path(".llmpipe", "run.log")
_ASIDE = Path(".llmpipe", "partial")
_FORMAT = 2


@dataclass(frozen=True, kw_only=True)
class Config(Wanted):
    """Which files of which repo; ``revision`` is a branch, a tag or a commit.

    Without ``include``, a model comes without the files that hold its weights once more.
    """


@dataclass(frozen=True, kw_only=True)
class Network:
    """How the files are brought, which never changes what they are.

    ``endpoints`` are asked in order (`llmpipe.core.hub.endpoints` says what stands in for none).
    Only the hub itself gets the login kept on this machine; ``token`` goes to every endpoint.
    ``timeout`` is in seconds without an answer or a byte.
    """

    endpoints: Sequence[str] = ()
    token: str | None = None
    workers: int = 8
    timeout: float = 30.0
    retry: Retry = field(default_factory=Retry)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What the hub has of what was asked for."""

    commit: str
    endpoint: str
    files: Sequence[RemoteFile]
    left_out: Mapping[str, str]


def run(
    config: Config,
    mode: Mode,
    *,
    local_dir: Path | None = None,
    network: Network | None = None,
    root: Path = Path(),
) -> Result:
    """Bring the files to ``local_dir``, or to ``models/ORG/NAME`` or ``datasets/ORG/NAME``.

    A complete folder needs no network, and stays at its commit until ``mode.force``. Where another
    process is at the same folder, this one waits for it.

    Raises:
        UserError: no such repo or revision, no access, no endpoint answers, no room on the disk,
            or a file stays damaged. Files that came whole stay, and the next run goes on.
    """
    _check(config)
    folder = local_dir or root / f"{config.repo_type}s" / config.repo
    job = _Job(config, folder, mode, network or Network())
    if done := _complete(folder, config, mode):
        return done
    if mode.dry_run:
        return job.plan()
    try:
        (folder / MANIFEST.parent).mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise UserError(
            f"can't write {folder}: {e.strerror}", "choose a --local-dir that you can write"
        ) from None
    with fs.locked(folder / _LOCK, str(folder), wait=True):
        # Another process may have brought it in the meantime.
        return _complete(folder, config, mode) or job.do()


class _Job:
    """One download: look, compare with what is there, bring the rest, write it down."""

    def __init__(self, config: Config, folder: Path, mode: Mode, network: Network) -> None:
        self._config = config
        self._folder = folder
        self._mode = mode
        self._network = network
        self._stop = threading.Event()
        repos = [
            Repo(config, endpoint, network.token, network.timeout)
            for endpoint in endpoints(network.endpoints)
        ]
        self._mirrors = Mirrors(repos, network.retry, self._stop)

    def plan(self) -> Result:
        found = self._look()
        whole = sum(f.size for f in found.files)
        missing = self._transfer(found).missing(found.files)
        there = f" (of which {fs.size(whole - missing)} may be there)" if missing < whole else ""
        plan = (
            f"would bring {len(found.files)} files, {fs.size(whole)}{there}, of {self._config} "
            f"at commit {found.commit[:12]} from {found.endpoint} to {self._folder}"
        )
        return _result(self._folder, None, seconds=0.0, plan=plan)

    def do(self) -> Result:
        start, began = time.monotonic(), now()
        with log_to(self._folder / _LOG):
            try:
                found = self._look()
            except UserError as e:
                log.debug("%s", e)
                _leave_nothing_empty(self._folder)
                raise
            files = self._bring(found)
            manifest = {
                "format": _FORMAT,
                "repo": self._config.repo,
                "repo_type": self._config.repo_type,
                "commit": found.commit,
                "endpoint": found.endpoint,
                "asked": _asked(self._config),
                "files": {path: asdict(file) for path, file in sorted(files.items())},
                "left_out": found.left_out,
                "versions": versions(["huggingface_hub"]),
                "command": redact(self._mode.command),
                "start": began,
                "end": now(),
            }
            _drop_stale(self._folder, _manifest(self._folder), manifest)
            fs.write_json(self._folder / MANIFEST, manifest)
            (self._folder / _BEFORE).unlink(missing_ok=True)
            shutil.rmtree(self._folder / _ASIDE, ignore_errors=True)
            result = _result(self._folder, manifest, seconds=time.monotonic() - start)
            _say(result, self._config)
        return result

    def _look(self) -> _Found:
        """Resolve the revision, once, and choose among the files of that commit."""
        try:
            _, commit = self._mirrors.ask(lambda repo: repo.commit())
            repo, listed = self._mirrors.ask(lambda repo: repo.files(commit))
        except DownloadError as e:
            raise UserError(e.message, e.hint) from None
        files, left_out = _choose(self._config, listed)
        if not files:
            raise UserError(
                f"{self._config.repo} has no file that was asked for",
                "check --include and --exclude",
            )
        return _Found(commit=commit, endpoint=shown(repo.endpoint), files=files, left_out=left_out)

    def _transfer(self, found: _Found) -> Transfer:
        old = _manifest(self._folder)
        return Transfer(
            self._folder,
            self._folder / _ASIDE,
            commit=found.commit,
            mirrors=self._mirrors,
            known={path: LocalFile(**file) for path, file in old["files"].items()} if old else {},
            progress=self._mode.progress,
            stop=self._stop,
        )

    def _bring(self, found: _Found) -> dict[str, LocalFile]:
        transfer = self._transfer(found)
        missing, free = transfer.missing(found.files), shutil.disk_usage(self._folder).free
        if missing > free:
            raise UserError(
                f"{self._config} needs {fs.size(missing)} more at {self._folder}, "
                f"where {fs.size(free)} are free",
                "free some, take less by --include, or choose a --local-dir on another disk",
            )
        _set_aside(self._folder)
        return transfer.bring(found.files, self._network.workers)


def _complete(folder: Path, config: Config, mode: Mode) -> Result | None:
    """The result, where nothing is to be done."""
    old = _manifest(folder)
    if old is None:
        return None
    if (old["repo"], old["repo_type"]) != (config.repo, config.repo_type):
        raise UserError(
            f"{folder} holds the {old['repo_type']} {old['repo']}", "choose another --local-dir"
        )
    same = old["asked"] == _asked(config) or (
        {**old["asked"], "revision": old["commit"]} == _asked(config)
    )
    if mode.force or not same or not (folder / MANIFEST).exists() or not _whole(folder, old):
        return None
    log.info("%s is up to date, at commit %s", folder, old["commit"][:12])
    return _result(folder, old, seconds=0.0, up_to_date=True)


def _asked(config: Config) -> dict[str, Any]:
    asked: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    return asked


def _choose(
    config: Config, listed: Sequence[RemoteFile]
) -> tuple[list[RemoteFile], dict[str, str]]:
    """The files that match, and those that a model is the same without."""
    from huggingface_hub.utils import filter_repo_objects  # type: ignore[attr-defined]

    matching = list(
        filter_repo_objects(
            listed,
            allow_patterns=list(config.include) or None,
            ignore_patterns=list(config.exclude) or None,
            key=lambda f: f.path,
        )
    )
    if config.include or config.repo_type != "model":
        return matching, {}
    left_out = doubles([f.path for f in matching])
    if left_out:
        skipped = [f for f in matching if f.path in left_out]
        names = ", ".join(f"{f.path} ({fs.size(f.size)})" for f in skipped[:5])
        log.info(
            "leaving out %d files, %s, that the model loads without: %s%s "
            "(--include '*' brings all)",
            len(skipped),
            fs.size(sum(f.size for f in skipped)),
            names,
            ", ..." if len(skipped) > 5 else "",
        )
    return [f for f in matching if f.path not in left_out], left_out


def _check(config: Config) -> None:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", config.repo):
        raise UserError(
            f"{config.repo!r} is not the id of a repo", "write ORG/NAME, such as openai/gsm8k"
        )
    if config.repo_type not in ("model", "dataset"):
        raise UserError(
            f"--repo-type is {config.repo_type!r}", "--repo-type model or --repo-type dataset"
        )


def _manifest(folder: Path) -> dict[str, Any] | None:
    """What this folder holds, or held when a download to it began."""
    return _read_manifest(folder / MANIFEST) or _read_manifest(folder / _BEFORE)


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
    ours = {_LOCK.name, _LOG.name}
    if {p.name for p in folder.iterdir()} == {made.name} and ours >= {
        p.name for p in made.iterdir()
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


def _say(result: Result, config: Config) -> None:
    """How it went, and which endpoint served what."""
    figures = result.figures
    log.info(
        "%s: %d files, %s, of %s at commit %s in %.0f s",
        result.out,
        figures["files"],
        fs.size(figures["bytes"]),
        config,
        figures["commit"][:12],
        result.seconds,
    )
    for endpoint, served in figures["endpoints"].items():
        log.info("  %d files, %s, from %s", served["files"], fs.size(served["bytes"]), endpoint)


def _result(
    folder: Path,
    manifest: Mapping[str, Any] | None,
    *,
    seconds: float,
    up_to_date: bool = False,
    plan: str | None = None,
) -> Result:
    figures: dict[str, Any] = {}
    if manifest:
        files = manifest["files"].values()
        count, sizes = Counter[str](), Counter[str]()
        for file in files:
            endpoint = file["endpoint"] or "this machine"
            count[endpoint] += 1
            sizes[endpoint] += file["size"]
        figures = {
            "files": len(files),
            "bytes": sizes.total(),
            **{k: manifest[k] for k in ("repo", "commit", "endpoint")},
            "endpoints": {e: {"files": count[e], "bytes": sizes[e]} for e in sorted(count)},
            "left_out": len(manifest["left_out"]),
        }
    return Result(
        stage="download",
        out=folder,
        rows=0,
        dropped={},
        seconds=seconds,
        up_to_date=up_to_date,
        figures=figures,
        plan=plan,
    )
