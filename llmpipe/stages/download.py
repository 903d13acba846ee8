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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from llmpipe.algo.model_files import doubles
from llmpipe.core import fs
from llmpipe.core.endpoints import RemoteFile, Wanted, endpoints, shown
from llmpipe.core.errors import UserError
from llmpipe.core.hub import Repo
from llmpipe.core.local_folder import Download, LocalFolder
from llmpipe.core.mirrors import Mirrors, Retry
from llmpipe.core.partial import LocalFile
from llmpipe.core.provenance import log_to, now, redact, versions
from llmpipe.core.refusals import DownloadError
from llmpipe.core.run import Mode, Result
from llmpipe.core.transfer import Transfer

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Config(Wanted):
    """Which files of which repo; ``revision`` is a branch, a tag or a commit.

    Without ``include``, a model comes without the files that hold its weights once more.
    """


@dataclass(frozen=True, kw_only=True)
class Network:
    """How the files are brought, which never changes what they are.

    ``endpoints`` are asked in order (`llmpipe.core.endpoints.endpoints` says what stands in for
    none). Only the hub itself gets the login kept on this machine; ``token`` goes to every
    endpoint. ``timeout`` is in seconds without an answer or a byte.
    """

    endpoints: Sequence[str] = ()
    token: str | None = None
    workers: int = 8
    timeout: float = 30.0
    retry: Retry = field(default_factory=Retry)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What the hub has of what was asked for; ``listed`` is all that the commit has."""

    commit: str
    endpoint: str
    files: Sequence[RemoteFile]
    left_out: Mapping[str, str]
    listed: Sequence[str]


def run(
    config: Config,
    mode: Mode,
    *,
    local_dir: Path | None = None,
    network: Network | None = None,
    root: Path = Path(),
) -> Result:
    """Bring the files to ``local_dir``, or to ``models/ORG/NAME`` or ``datasets/ORG/NAME``.

    A complete folder needs no network. It stays at its commit until ``mode.force``, also where
    other files of it are asked for; another revision is refused. Where another process is at the
    same folder, this one waits for it. Files in the way that no download brought are moved to
    ``.llmpipe/replaced`` in the folder.

    Raises:
        UserError: no such repo or revision, no access, no endpoint answers, no room on the disk,
            or a file stays damaged. Files that came whole stay, and the next run goes on.
    """
    network = network or Network()
    _check(config, network)
    path = local_dir.expanduser() if local_dir else root / f"{config.repo_type}s" / config.repo
    try:
        folder = LocalFolder(path)
        job = _Job(config, folder, mode, network)
        if done := job.done():
            return done
        found = job.look()
        if mode.dry_run:
            return job.plan(found)
        folder.make()
        with fs.locked(folder.lock, str(path), wait=True):
            folder.look()  # another process may have brought it in the meantime
            return job.done() or job.do(found)
    except OSError as e:
        raise UserError(
            f"can't use {path}: {e.strerror or e}{f': {e.filename}' if e.filename else ''}",
            "choose a --local-dir of your own",
        ) from None


def _check(config: Config, network: Network) -> None:
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", config.repo):
        raise UserError(
            f"{config.repo!r} is not the id of a repo", "write ORG/NAME, such as openai/gsm8k"
        )
    if config.repo_type not in ("model", "dataset"):
        raise UserError(
            f"--repo-type is {config.repo_type!r}", "--repo-type model or --repo-type dataset"
        )
    if not config.revision.strip():
        raise UserError("--revision is empty", "--revision main, a tag or a whole commit")
    if network.token is not None and not re.fullmatch(r"[!-~]+", network.token):
        raise UserError(
            "the token is empty, or has characters that no token has", "copy it once more"
        )


class _Job:
    """One download: look, compare with what is there, bring the rest, write it down."""

    def __init__(self, config: Config, folder: LocalFolder, mode: Mode, network: Network) -> None:
        self._config = config
        self._folder = folder
        self._mode = mode
        self._network = network
        self._stop = threading.Event()
        self._again = mode.force or mode.remake

    def done(self) -> Result | None:
        """The result, where nothing is to be done.

        Raises:
            UserError: the folder holds something else.
        """
        old, asked = self._folder.manifest or self._folder.before, _asked(self._config)
        if old is None:
            return None
        path = self._folder.path
        if (old.repo, old.repo_type) != (self._config.repo, self._config.repo_type):
            raise UserError(
                f"{path} holds the {old.repo_type} {old.repo}", "choose another --local-dir"
            )
        if self._folder.manifest is None or self._again:
            return None
        if asked["revision"] not in (old.asked["revision"], old.commit):
            raise UserError(
                f"{path} holds revision {old.asked['revision']} (commit {old.commit[:12]}), "
                f"not {asked['revision']}",
                "--force replaces it; --local-dir DIR keeps both",
            )
        if {**asked, "revision": ""} != {**old.asked, "revision": ""} or not self._folder.whole():
            return None
        log.info("%s is up to date, at commit %s", path, old.commit[:12])
        return _result(path, old, seconds=0.0, up_to_date=True)

    def look(self) -> _Found:
        """Resolve the revision, once, and choose among the files of that commit."""
        held = None if self._again else self._folder.manifest
        wanted = replace(self._config, revision=held.commit) if held else self._config
        network = self._network
        self._mirrors = Mirrors(
            [
                Repo(wanted, endpoint, network.token, network.timeout)
                for endpoint in endpoints(network.endpoints)
            ],
            network.retry,
            self._stop,
        )
        try:
            commit = held.commit if held else self._mirrors.ask(lambda repo: repo.commit())[1]
            repo, listed = self._mirrors.ask(lambda repo: repo.files(commit))
        except DownloadError as e:
            raise UserError(e.message, e.hint) from None
        files, left_out = _choose(self._config, listed)
        return _Found(
            commit=commit,
            endpoint=shown(repo.endpoint),
            files=files,
            left_out=left_out,
            listed=[f.path for f in listed],
        )

    def plan(self, found: _Found) -> Result:
        whole = sum(f.size for f in found.files)
        missing = self._transfer(found).missing(found.files)
        there = f" (of which {fs.size(whole - missing)} may be there)" if missing < whole else ""
        plan = (
            f"would bring {_files(len(found.files))}, {fs.size(whole)}{there}, of {self._config} "
            f"at commit {found.commit[:12]} from {found.endpoint} to {self._folder.path}"
        )
        return _result(self._folder.path, None, seconds=0.0, plan=plan)

    def do(self, found: _Found) -> Result:
        start, began = time.monotonic(), now()
        with log_to(self._folder.log):
            log.debug("%s at commit %s from %s", self._config, found.commit, found.endpoint)
            transfer = self._transfer(found)
            self._check_room(transfer.missing(found.files))
            self._folder.begin()
            files = transfer.bring(found.files, self._network.workers)
            download = Download(
                repo=self._config.repo,
                repo_type=self._config.repo_type,
                commit=found.commit,
                endpoint=found.endpoint,
                asked=_asked(self._config),
                files=dict(sorted(files.items())),
                left_out=found.left_out,
                about={
                    "versions": versions(["huggingface_hub"]),
                    "command": redact(self._mode.command),
                    "start": began,
                    "end": now(),
                },
            )
            download = self._folder.finish(download, found.listed)
            result = _result(self._folder.path, download, seconds=time.monotonic() - start)
            _say(result, self._config, transfer.fetched)
        return result

    def _transfer(self, found: _Found) -> Transfer:
        before = self._folder.before
        return Transfer(
            self._folder,
            commit=found.commit,
            mirrors=self._mirrors,
            known=before.files if before else {},
            trusting=not self._mode.force,
            progress=self._mode.progress,
            stop=self._stop,
        )

    def _check_room(self, missing: int) -> None:
        free = shutil.disk_usage(self._folder.path).free
        if missing > free:
            raise UserError(
                f"{self._config} needs {fs.size(missing)} more at {self._folder.path}, "
                f"where {fs.size(free)} are free",
                "free some, take less by --include, or choose a --local-dir on another disk",
            )


def _asked(config: Config) -> dict[str, Any]:
    asked: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    return asked


def _choose(
    config: Config, listed: Sequence[RemoteFile]
) -> tuple[list[RemoteFile], dict[str, str]]:
    """The files that match, and those that a model is the same without.

    Raises:
        UserError: none is left.
    """
    from huggingface_hub.utils import filter_repo_objects  # type: ignore[attr-defined]

    files = [f for f in listed if fs.is_inside(f.path)]
    left_out = {f.path: "an earlier download's own" for f in listed if not fs.is_inside(f.path)}
    if not files:
        raise UserError(f"{config} has no files", "check the name and --revision")
    matching = list(
        filter_repo_objects(
            files,
            allow_patterns=list(config.include) or None,
            ignore_patterns=list(config.exclude) or None,
            key=lambda f: f.path,
        )
    )
    if not matching:
        raise UserError(
            f"no file of {config} is as --include and --exclude say",
            f"patterns are over whole paths, such as {files[0].path} or 'data/*'",
        )
    if not config.include and config.repo_type == "model":
        left_out |= doubles([f.path for f in matching])
    if left_out:
        skipped = [f for f in listed if f.path in left_out]
        names = ", ".join(f"{f.path} ({fs.size(f.size)})" for f in skipped[:5])
        log.info(
            "leaving out %s, %s, that the model loads without: %s%s (--include '*' brings all)",
            _files(len(skipped)),
            fs.size(sum(f.size for f in skipped)),
            names,
            ", ..." if len(skipped) > 5 else "",
        )
    return [f for f in matching if f.path not in left_out], left_out


def _say(result: Result, config: Config, fetched: Mapping[str, LocalFile]) -> None:
    """How it went, and which endpoint served what of it now."""
    figures = result.figures
    log.info(
        "%s: %s, %s, of %s at commit %s in %.0f s",
        result.out,
        _files(figures["files"]),
        fs.size(figures["bytes"]),
        config,
        figures["commit"][:12],
        result.seconds,
    )
    for endpoint, (count, size) in _by_endpoint(fetched).items():
        log.info("  %s, %s, from %s", _files(count), fs.size(size), endpoint)
    there = figures["files"] - len(fetched)
    if there:
        log.info("  %s there already", _files(there))


def _files(count: int) -> str:
    return f"{count:,} file{'s' * (count != 1)}"


def _by_endpoint(files: Mapping[str, LocalFile]) -> dict[str, tuple[int, int]]:
    """How many files, and bytes, came from where."""
    count, size = Counter[str](), Counter[str]()
    for file in files.values():
        endpoint = file.endpoint or "this machine"
        count[endpoint] += 1
        size[endpoint] += file.size
    return {endpoint: (count[endpoint], size[endpoint]) for endpoint in sorted(count)}


def _result(
    path: Path,
    download: Download | None,
    *,
    seconds: float,
    up_to_date: bool = False,
    plan: str | None = None,
) -> Result:
    figures: dict[str, Any] = {}
    if download:
        served = _by_endpoint(download.files)
        figures = {
            "files": len(download.files),
            "bytes": sum(size for _, size in served.values()),
            "repo": download.repo,
            "commit": download.commit,
            "endpoint": download.endpoint,
            "endpoints": {e: {"files": n, "bytes": size} for e, (n, size) in served.items()},
            "left_out": len(download.left_out),
        }
    return Result(
        stage="download",
        out=path,
        rows=0,
        dropped={},
        seconds=seconds,
        up_to_date=up_to_date,
        figures=figures,
        plan=plan,
    )
