"""Run a stage: is it up to date, may it be made, make it, and put it in place whole.

A stage describes itself in a `Spec` and hands `execute` a function that fills a `Writer`. All rules
about artifacts are kept here, once: same fingerprint, nothing to do; other inputs under the
same config, made again; other config, refused unless forced; written beside and renamed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from llmpipe.core import fs
from llmpipe.core.artifact import MANIFEST, REJECTS, RUN_LOG, Artifact, Manifest
from llmpipe.core.errors import OutOfTimeError, UserError
from llmpipe.core.provenance import git_commit, log_to, now, redact, stamp, versions
from llmpipe.core.spec import Input, Mode, Result, Spec, changes, counted, fingerprint
from llmpipe.core.writer import Writer

# Stages take all they need to be run from here.
__all__ = ["Input", "Mode", "Result", "Spec", "Writer", "execute"]

log = logging.getLogger(__name__)

_LONGEST_NAME = 220  # bytes; file systems allow 255, and what is beside it has a longer name

Build = Callable[[Writer], None]

_KEEP_OLD = "keep-old"  # a file in the partial folder: what is replaced is moved aside


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

    A build that runs out of time makes nothing, and the result says so.

    Raises:
        UserError: the output is something else, is being written by another run, or was made with
            another config and ``mode`` does not say to make it again.
    """
    _check_name(spec.out)
    with _output_errors(spec.out):
        _recover(spec.out)
        old = _existing(spec.out, spec.stage, force=mode.force)
    prints = fingerprint(spec)
    plan, why = _decide(spec, prints, old, mode, done)
    if plan == "keep" and old:
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
    clock = time.monotonic()
    with _output_errors(spec.out):
        try:
            return _make(spec, build, mode, prints, aside=spec.keep_old and plan == "replace")
        except OutOfTimeError as e:
            return Result(
                stage=spec.stage,
                out=spec.out,
                rows=0,
                dropped={},
                seconds=time.monotonic() - clock,
                up_to_date=False,
                figures=e.figures,
                complete=False,
            )


def _make(spec: Spec, build: Build, mode: Mode, prints: dict[str, Any], *, aside: bool) -> Result:
    partial = _partial(spec.out)
    try:
        partial.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise UserError(
            f"can't write {spec.out}: {e.strerror}", "choose an -o that you can write"
        ) from None
    new = partial / "new"
    with fs.locked(partial / "lock", str(spec.out)):
        _clear(partial)
        new.mkdir()
        started, clock = now(), time.monotonic()
        writer = Writer(spec, new, partial, mode.progress)
        try:
            with log_to(partial / RUN_LOG):
                log.debug("%s %s", spec.stage, json.dumps(prints["config"], ensure_ascii=False))
                build(writer)
                seconds = time.monotonic() - clock
                _say(spec, writer, seconds)
        except BaseException as e:
            writer.abandon()
            shutil.rmtree(new)
            begun = {f.name for f in partial.iterdir()} - {"lock", RUN_LOG}
            if isinstance(e, UserError | OutOfTimeError | KeyboardInterrupt) and not begun:
                shutil.rmtree(partial)
            raise
        writer.attention = writer.attention or _empty(spec, writer)
        writer.figures["seconds"] = round(seconds, 3)
        shutil.copyfile(partial / RUN_LOG, new / RUN_LOG)
        if aside:
            (partial / _KEEP_OLD).touch()
        manifest = _finish(spec, writer, new, prints, mode.command, started)
        _swap(spec.out, partial)
    return _result(Artifact(spec.out, manifest), seconds=seconds, up_to_date=False)


def _clear(partial: Path) -> None:
    """Take away what a killed run left there, but what a stage goes on from.

    `_recover` has ended a swap, if one was cut short: the old artifact and the mark that are still
    here were on their way out when the run was killed.
    """
    for leftover in (partial / "new", partial / "old"):
        if leftover.exists():
            shutil.rmtree(leftover)
    (partial / _KEEP_OLD).unlink(missing_ok=True)


def _finish(
    spec: Spec,
    writer: Writer,
    folder: Path,
    prints: Mapping[str, Any],
    command: Sequence[str],
    started: str,
) -> Manifest:
    """Close the writer's files and those of the artifacts inside it, and write their manifests."""
    files = writer.close()
    for name, inner in writer.inner.items():
        inputs = {
            role: {**entry, "path": Path("..", entry["path"]).as_posix()}
            for role, entry in prints["inputs"].items()
        }
        below = {**prints, "inputs": inputs, "cwd": Path("..", prints["cwd"]).as_posix()}
        _finish(spec, inner, folder / name, below, command, started)
        files += sorted(f for f in (folder / name).rglob("*") if f.is_file())
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
            f.relative_to(folder).as_posix(): {"sha256": fs.sha256(f), "bytes": f.stat().st_size}
            for f in files
        },
        counts={
            "read": writer.read,
            "kept": writer.kept,
            "dropped": dict(writer.dropped.most_common()),
        },
        figures=writer.figures,
        versions=versions([*spec.libraries, *spec.pinned]),
        command=redact(command),
        cwd=prints["cwd"],
        git_commit=git_commit(),
        started=started,
        ended=now(),
        attention=writer.attention,
        details=writer.details,
    )
    # A power cut must not leave a manifest of files that never reached the disk.
    for file in files:
        fs.sync(file)
    for parent in {f.parent for f in files}:
        fs.sync_folder(parent)
    manifest.write(folder)
    return manifest


def _partial(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


def check_out(out: Path, stage: str, *, force: bool) -> None:
    """Refuse an output that ``stage`` can't make in the end, before hours go into what it needs.

    Raises:
        UserError: as `execute` does of the output.
    """
    _check_name(out)
    with _output_errors(out):
        _existing(out, stage, force=force)


def _check_name(out: Path) -> None:
    if not 0 < len(os.fsencode(out.name)) <= _LONGEST_NAME:
        raise UserError(f"-o {out} is no folder that can be made", "-o runs/NAME")


def _existing(out: Path, stage: str, *, force: bool) -> Artifact | None:
    """The artifact at the output, if any. Anything else there is not ours to replace."""
    if not out.exists():
        if out.is_symlink():
            raise UserError(f"{out} is a link to nothing", "choose another -o")
        return None
    if (out / MANIFEST).is_file():
        try:
            old = Artifact(out, Manifest.read(out))
        except UserError:
            if force:
                return None
            raise
        if old.manifest.stage != stage:
            raise UserError(
                f"{out} was made by {old.manifest.stage}, not by {stage}",
                "choose another -o",
            )
        return old
    if out.is_dir() and all(_ours(c) for c in out.iterdir()):
        return None  # empty, or holding only artifacts of other stages (an eval's rollouts)
    raise UserError(f"{out} exists and was not made by llmpipe", "choose another -o")


def _ours(path: Path) -> bool:
    """Whether a path inside an output is an artifact, one under way, or what was kept aside."""
    if ".old-" in path.name:
        return True
    return (path / MANIFEST).is_file() or (path.name.endswith(".partial") and path.is_dir())


def _decide(
    spec: Spec,
    prints: dict[str, Any],
    old: Artifact | None,
    mode: Mode,
    done: Callable[[Artifact], bool],
) -> tuple[Literal["keep", "grow", "replace"], str | None]:
    if old is None:
        return "replace", None
    if mode.force:
        return "replace", "making it again (--force)"
    damage = old.damage()
    if damage:
        return "replace", f"{damage}: making it again"
    m = old.manifest
    if m.fingerprint == prints["fingerprint"]:
        return ("keep", None) if done(old) else ("grow", "going on with it")
    changed = changes(counted(spec.config, m.config), counted(spec.config, prints["config"]))
    if changed and mode.remake:
        return "replace", f"other settings ({'; '.join(changed)}): making it again"
    if changed:
        raise UserError(
            f"{spec.out} was made with other settings: {'; '.join(changed)}",
            "choose another -o, or --force to make it again (in a script: llmpipe --remake ...)",
        )
    digests = {k: v["digest"] for k, v in m.inputs.items()}
    news = [k for k, v in prints["inputs"].items() if digests.get(k) != v["digest"]]
    if news or digests.keys() != prints["inputs"].keys():
        return (
            "replace",
            f"its input has changed ({', '.join(news) or 'fewer inputs'}): making it again",
        )
    return "replace", "llmpipe's own code for it has changed: making it again"


def _swap(out: Path, partial: Path) -> None:
    """Put the new artifact where it belongs. `_recover` ends it if we die in between."""
    new = partial / "new"
    if out.exists():
        _carry(out, new)
        if (partial / _KEEP_OLD).exists():
            kept = out.with_name(f"{out.name}.old-{stamp()}")
            log.info("the old one is kept at %s", kept)
            out.rename(kept)
        else:
            out.rename(partial / "old")
    new.rename(out)
    fs.sync_folder(out.parent)  # before what it was made from goes
    shutil.rmtree(partial)


def _carry(old: Path, new: Path) -> None:
    """What others put inside the old artifact moves along: an eval's rollouts, a user's notes.

    Only what its manifest lists goes with it.
    """
    own = {MANIFEST, RUN_LOG, REJECTS}
    with contextlib.suppress(UserError, FileNotFoundError):  # without one, nothing is listed
        own |= set(Manifest.read(old).files)
    files = [p for p in old.rglob("*") if not p.is_dir() or p.is_symlink()]
    for path in files:
        name = path.relative_to(old)
        ours = name.as_posix() in own or name.parts[0] == "data"
        if not ours and not (new / name).exists():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            path.rename(new / name)


def _recover(out: Path) -> None:
    """End a swap that was cut short: the new artifact is whole once its manifest is there."""
    partial = _partial(out)
    if not (partial / "new" / MANIFEST).is_file():
        return
    with fs.locked(partial / "lock", str(out)):
        _swap(out, partial)


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
