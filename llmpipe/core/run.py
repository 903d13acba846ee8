"""Run a stage: is it up to date, may it be made, make it, and put it in place whole.

A stage describes itself in a `Spec` and hands `execute` a function that fills a `Writer`. All rules
about artifacts are kept here, once: same fingerprint, nothing to do; other inputs under the
same config, made again; other config, refused unless forced; written beside and renamed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from llmpipe.core import fs
from llmpipe.core.artifact import (
    MANIFEST,
    REJECT_SCHEMA,
    REJECTS,
    RUN_LOG,
    Artifact,
    Manifest,
)
from llmpipe.core.errors import UserError
from llmpipe.core.records import Record, to_batch
from llmpipe.core.tables import ShardWriter

log = logging.getLogger(__name__)

Input = Artifact | Path


class Progress(Protocol):
    """How far a stage is; ``figures`` are what else is worth showing beside the bar."""

    def __call__(self, done: int, total: int | None, **figures: Any) -> None: ...


def _silent(done: int, total: int | None, **figures: Any) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Mode:
    """How a stage is run, which never changes what it makes."""

    force: bool = False
    dry_run: bool = False
    command: Sequence[str] = ()
    progress: Progress = _silent


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a stage is about to make.

    ``config`` is a frozen dataclass; a field with ``metadata={"fingerprint": False}`` is recorded
    but may change freely. ``inputs`` are what the result is a function of; ``plugins`` are
    (room, name) pairs whose source counts too; ``libraries`` are distributions whose versions are
    recorded, those in ``pinned`` count too. ``version`` goes up when the stage makes something
    else of the same input. ``keep_old`` moves a forced-out artifact aside instead of deleting it.
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


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a stage made, or would make, or found already made."""

    stage: str
    out: Path
    rows: int
    dropped: Mapping[str, int]
    seconds: float
    up_to_date: bool
    figures: Mapping[str, Any]
    attention: str | None = None
    complete: bool = True
    plan: str | None = None

    @property
    def exit_code(self) -> int:
        return 3 if self.attention else 0


class Stopped(Exception):  # noqa: N818 - not an error: the time given to the stage is over
    """Raised by a build that ends in good order before it is complete; it can go on later."""


class Writer:
    """What a build fills: rows, rejects, counts and figures."""

    def __init__(self, spec: Spec, folder: Path, partial: Path, progress: Progress) -> None:
        self.figures: dict[str, Any] = {}
        self.details: dict[str, Any] = {}
        self.read = 0
        self.dropped: Counter[str] = Counter()
        self.attention: str | None = None
        self.progress = progress
        self.partial = partial
        self._record = spec.record
        self._folder = folder
        self._shards = ShardWriter(folder / "data", spec.record.SCHEMA)
        self._rows: list[Record] = []
        self._rejects: list[dict[str, str]] = []
        self._attached: list[str] = []
        self._reject_writer: pq.ParquetWriter | None = None

    @property
    def kept(self) -> int:
        return self._shards.rows + len(self._rows)

    def add(self, row: Record) -> None:
        """Keep a row."""
        self._rows.append(row)
        if len(self._rows) >= 1024:
            self._flush_rows()

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Keep a batch of rows in the record's schema."""
        self._flush_rows()
        self._shards.write(batch)

    def reject(self, row_id: str, reason: str, detail: str = "") -> None:
        """Drop a row, and say why: ``reason`` is counted, ``detail`` is kept with the row's id."""
        self.dropped[reason] += 1
        self._rejects.append({"id": row_id, "reason": reason, "detail": detail})
        if len(self._rejects) >= 10_000:
            self._flush_rejects()

    def attach(self, name: str, text: str) -> None:
        """Put a further file beside the rows; it is listed in the manifest."""
        (self._folder / name).write_text(text, encoding="utf-8")
        self._attached.append(name)

    def _flush_rows(self) -> None:
        if self._rows:
            self._shards.write(to_batch(self._record, self._rows))
            self._rows = []

    def _flush_rejects(self) -> None:
        if self._rejects:
            if self._reject_writer is None:
                self._reject_writer = pq.ParquetWriter(
                    self._folder / REJECTS, REJECT_SCHEMA, compression="zstd"
                )
            self._reject_writer.write_batch(
                pa.RecordBatch.from_pylist(self._rejects, schema=REJECT_SCHEMA)
            )
            self._rejects = []

    def close(self) -> list[Path]:
        self._flush_rows()
        self._flush_rejects()
        files = self._shards.close()
        if self._reject_writer:
            self._reject_writer.close()
            files.append(self._folder / REJECTS)
        return files + [self._folder / name for name in self._attached]

    def abandon(self) -> None:
        self._shards.abandon()
        if self._reject_writer:
            self._reject_writer.close()


Build = Callable[[Writer], None]


def execute(
    spec: Spec,
    build: Build,
    mode: Mode,
    *,
    done: Callable[[Artifact], bool] = lambda _: True,
) -> Result:
    """Make the artifact that ``spec`` describes, unless it is there already.

    ``done`` is asked of an artifact with the same fingerprint whether it holds all that is wanted
    now; where it says no, the artifact is built again in place (a rollout whose n grew).

    Raises:
        UserError: the output is something else, is being written by another run, or was made with
            another config and ``mode.force`` is off.
    """
    _recover(spec.out)
    prints = _fingerprint(spec)
    old = _existing(spec)
    plan, why = _decide(spec, prints, old, mode.force, done)
    if plan == "up to date" and old:
        log.info("%s is up to date", spec.out)
        return _result(old, seconds=0.0, up_to_date=True)
    if mode.dry_run:
        return Result(
            stage=spec.stage,
            out=spec.out,
            rows=0,
            dropped={},
            seconds=0.0,
            up_to_date=False,
            figures={},
            plan=f"would make {spec.out} from {_names(spec.inputs)}" + (f": {why}" if why else ""),
        )
    if why:
        log.info("%s: %s", spec.out, why)
    with _output_errors(spec.out):
        return _make(spec, build, mode, prints, old)


def _make(
    spec: Spec, build: Build, mode: Mode, prints: dict[str, Any], old: Artifact | None
) -> Result:
    partial = _partial(spec.out)
    partial.mkdir(parents=True, exist_ok=True)
    new = partial / "new"
    with fs.locked(partial / "lock", str(spec.out)):
        if new.exists():
            shutil.rmtree(new)
        new.mkdir()
        started, clock = _now(), time.monotonic()
        writer = Writer(spec, new, partial, mode.progress)
        try:
            with _log_to(partial / RUN_LOG):
                log.info("%s %s", spec.stage, json.dumps(prints["config"], ensure_ascii=False))
                build(writer)
                seconds = time.monotonic() - clock
                _say(spec, writer, seconds)
        except Stopped as stop:
            writer.abandon()
            shutil.rmtree(new)
            log.info("%s: %s", spec.out, stop)
            return Result(
                stage=spec.stage,
                out=spec.out,
                rows=writer.kept,
                dropped=dict(writer.dropped),
                seconds=time.monotonic() - clock,
                up_to_date=False,
                figures=writer.figures,
                complete=False,
            )
        except BaseException:
            writer.abandon()
            raise
        files = writer.close()
        shutil.copyfile(partial / RUN_LOG, new / RUN_LOG)
        attention = writer.attention or _empty(spec, writer)
        manifest = Manifest(
            stage=spec.stage,
            stage_version=spec.version,
            record=spec.record.__name__,
            rows=writer.kept,
            fingerprint=prints["fingerprint"],
            config=prints["config"],
            inputs=prints["inputs"],
            plugins=prints["plugins"],
            files={
                f.relative_to(new).as_posix(): {"sha256": fs.sha256(f), "bytes": f.stat().st_size}
                for f in files
            },
            counts={
                "read": writer.read,
                "kept": writer.kept,
                "dropped": dict(writer.dropped.most_common()),
            },
            figures={**writer.figures, "seconds": round(seconds, 3)},
            versions=_versions([*spec.libraries, *spec.pinned]),
            command=redact(mode.command),
            git_commit=_git_commit(),
            started=started,
            ended=_now(),
            attention=attention,
            details=writer.details,
        )
        manifest.write(new)
        _swap(spec, partial, new, old)
    return _result(Artifact(spec.out, manifest), seconds=seconds, up_to_date=False)


def _partial(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


def _existing(spec: Spec) -> Artifact | None:
    """The artifact at the output, if any. Anything else there is not ours to replace."""
    out = spec.out
    if not out.exists():
        return None
    if (out / MANIFEST).is_file():
        old = Artifact(out, Manifest.read(out))
        if old.manifest.stage != spec.stage:
            raise UserError(
                f"{out} was made by {old.manifest.stage}, not by {spec.stage}",
                "choose another -o",
            )
        return old
    if out.is_dir() and all(c.is_dir() and _ours(c) for c in out.iterdir()):
        return None  # empty, or holding only artifacts of other stages (an eval's rollouts)
    raise UserError(f"{out} exists and was not made by llmpipe", "choose another -o")


def _ours(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() or folder.name.endswith(".partial")


def _decide(
    spec: Spec,
    prints: dict[str, Any],
    old: Artifact | None,
    force: bool,
    done: Callable[[Artifact], bool],
) -> tuple[Literal["up to date", "make"], str | None]:
    if old is None:
        return "make", None
    if force:
        return "make", "making it again (--force)"
    damage = old.damage()
    if damage:
        return "make", f"{damage}: making it again"
    m = old.manifest
    if m.fingerprint == prints["fingerprint"]:
        return ("up to date", None) if done(old) else ("make", "growing it")
    changed = _changes(_counted(spec.config, m.config), _counted(spec.config, prints["config"]))
    if changed:
        raise UserError(
            f"{spec.out} was made with other settings: {'; '.join(changed)}",
            "choose another -o, or --force to make it again",
        )
    digests = {k: v["digest"] for k, v in m.inputs.items()}
    news = [k for k, v in prints["inputs"].items() if digests.get(k) != v["digest"]]
    if news or digests.keys() != prints["inputs"].keys():
        return (
            "make",
            f"its input has changed ({', '.join(news) or 'fewer inputs'}): making it again",
        )
    return "make", "llmpipe's own code for it has changed: making it again"


def _counted(config: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    free = {f.name for f in dataclasses.fields(config) if not f.metadata.get("fingerprint", True)}
    return {k: v for k, v in values.items() if k not in free}


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    keys = sorted(old.keys() | new.keys())
    return [
        f"{k} was {json.dumps(old.get(k), ensure_ascii=False)}, "
        f"is now {json.dumps(new.get(k), ensure_ascii=False)}"
        for k in keys
        if old.get(k) != new.get(k)
    ]


def _fingerprint(spec: Spec) -> dict[str, Any]:
    from llmpipe.core.plugins import source_digest

    config = json.loads(json.dumps(dataclasses.asdict(spec.config), default=str))
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
        "config": _counted(spec.config, config),
        "inputs": {k: v["digest"] for k, v in inputs.items()},
        "plugins": plugins,
        "pinned": {k: v for k, v in _versions(spec.pinned).items() if k in spec.pinned},
    }
    text = json.dumps(key, sort_keys=True, ensure_ascii=False)
    return {
        "fingerprint": hashlib.sha256(text.encode()).hexdigest(),
        "config": config,
        "inputs": inputs,
        "plugins": plugins,
    }


def _swap(spec: Spec, partial: Path, new: Path, old: Artifact | None) -> None:
    """Put ``new`` where the output belongs. `_recover` ends it if we die in between."""
    if spec.out.exists():
        if (
            old
            and spec.keep_old
            and old.manifest.config
            != json.loads((new / MANIFEST).read_text(encoding="utf-8"))["config"]
        ):
            stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
            aside = spec.out.with_name(f"{spec.out.name}.old-{stamp}")
            log.info("the old rollouts are kept at %s", aside)
            spec.out.rename(aside)
        else:
            _carry(spec.out, new)
            spec.out.rename(partial / "old")
    new.rename(spec.out)
    shutil.rmtree(partial)


def _carry(old: Path, new: Path) -> None:
    """Artifacts that other stages keep inside this one (an eval's rollouts) move along."""
    for child in old.iterdir():
        if child.is_dir() and _ours(child) and not (new / child.name).exists():
            child.rename(new / child.name)


def _recover(out: Path) -> None:
    """End a swap that was cut short: the new artifact is whole once its manifest is there."""
    partial = _partial(out)
    if not (partial / "new" / MANIFEST).is_file():
        return
    with _output_errors(out), fs.locked(partial / "lock", str(out)):
        if out.exists():
            _carry(out, partial / "new")
            out.rename(partial / "old")
        (partial / "new").rename(out)
        shutil.rmtree(partial)


def _empty(spec: Spec, writer: Writer) -> str | None:
    if writer.kept:
        return None
    if not writer.dropped:
        return f"{spec.stage} got no rows"
    reason, count = writer.dropped.most_common(1)[0]
    return f"{spec.stage} dropped all {writer.read} rows, most ({count}) for {reason}"


def _say(spec: Spec, writer: Writer, seconds: float) -> None:
    dropped = ", ".join(f"{k} {v}" for k, v in writer.dropped.most_common())
    log.info(
        "%s: %d rows read, %d kept%s, %.1f s",
        spec.out,
        writer.read,
        writer.kept,
        f", dropped: {dropped}" if dropped else "",
        seconds,
    )


def _result(artifact: Artifact, *, seconds: float, up_to_date: bool) -> Result:
    m = artifact.manifest
    return Result(
        stage=m.stage,
        out=artifact.path,
        rows=m.rows,
        dropped=m.counts["dropped"],
        seconds=seconds,
        up_to_date=up_to_date,
        figures=m.figures,
        attention=m.attention,
    )


def _names(inputs: Mapping[str, Input]) -> str:
    paths = [str(v.path if isinstance(v, Artifact) else v) for v in inputs.values()]
    return ", ".join(paths) or "nothing"


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _versions(libraries: Sequence[str]) -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in dict.fromkeys(["llmpipe", "pyarrow", *libraries]):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


_SECRET_FLAG = re.compile(r"(?i)(token|secret|password|api[-_]?key)$")
_SECRET_PAIR = re.compile(r"(?i)((?:token|secret|password|api[-_]?key)\s*=\s*)\S+")
_SECRET_TEXT = re.compile(r"\b(hf_|sk-)[A-Za-z0-9_-]{8,}|(?<=://)[^/@\s]+:[^/@\s]+(?=@)")


def redact(command: Sequence[str]) -> list[str]:
    """A command line without its secrets: values of token-like options, and what looks like one."""
    out: list[str] = []
    hide = False
    for word in command:
        word = "***" if hide else _SECRET_TEXT.sub("***", _SECRET_PAIR.sub(r"\1***", word))
        out.append(word)
        hide = word.startswith("-") and "=" not in word and bool(_SECRET_FLAG.search(word))
    return out


def _git_commit() -> str | None:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@contextlib.contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """Everything llmpipe says while the stage runs, in a file, appended over resumes."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger("llmpipe")
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


@contextlib.contextmanager
def _output_errors(out: Path) -> Iterator[None]:
    """An output that can't be written is the user's to put right."""
    try:
        yield
    except (PermissionError, NotADirectoryError, FileExistsError) as e:
        raise UserError(
            f"can't write {out}: {e.strerror}: {e.filename}", "choose an -o that you can write"
        ) from None
    except OSError as e:
        if e.errno in _FULL:
            raise UserError(
                f"can't write {out}: {e.strerror}", "free some space, then go on"
            ) from None
        raise


_FULL = {28, 30, 122}  # no space left, read-only file system, quota exceeded


def iter_inputs(artifacts: Iterable[Artifact]) -> dict[str, Input]:
    """Several inputs of one kind, as roles that stay apart: 0, 1, 2..."""
    return {str(i): a for i, a in enumerate(artifacts)}
