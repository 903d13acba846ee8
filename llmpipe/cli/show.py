"""How an artifact, or a folder of them, is printed."""

from __future__ import annotations

import datetime
import itertools
import json
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from llmpipe.cli.pictures import Pictures
from llmpipe.cli.text import escape
from llmpipe.core.artifact import MANIFEST, REJECTS, Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import RECORDS, PackedRow, Problem, Record
from llmpipe.core.tables import read_batches

if TYPE_CHECKING:
    from llmpipe.cli.packed import PackedText

_out = Console(highlight=False, soft_wrap=False)
# What is worth a column in a table of stages: a stage's own best figures, in this order.
_HEADLINES = (
    "pass@",
    "utilisation",
    "coverage",
    "correct",
    "loss_last",
    "eval_loss",
    "tokens_per_second",
    "kept_share",
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to print of an artifact: its first ``rows``, or the one numbered ``row`` (from 0).

    Mazes are drawn in ``svg``, too; packed rows are read by ``tokenizer``, if not by their own.
    """

    rows: int
    row: int | None = None
    svg: Path | None = None
    tokenizer: str | None = None


def show(folder: Path, wanted: Wanted, *, rejects: bool, as_json: bool) -> None:
    """Print what is at ``folder``.

    Raises:
        UserError: there is no artifact in it, or not what is wanted of it.
    """
    if (folder / MANIFEST).is_file():
        artifact = Artifact.open(folder)
        if as_json:
            typer.echo((folder / MANIFEST).read_text(encoding="utf-8").rstrip())
        elif rejects:
            _rejects(artifact, wanted.rows)
        else:
            _artifact(artifact, wanted)
        return
    if (folder / ".llmpipe" / "manifest.json").is_file():
        _download(folder, as_json=as_json)
        return
    artifacts = find(folder)
    if not artifacts:
        Artifact.open(folder)  # says what is wrong with it, if it is no folder of other things
        raise UserError(f"there is no artifact in {folder}", "llmpipe --help lists what makes them")
    if as_json:
        typer.echo(json.dumps([_line(a, folder) for a in artifacts], ensure_ascii=False))
    else:
        _table(artifacts, folder)


def _download(folder: Path, *, as_json: bool) -> None:
    """What a folder of raw files was filled with."""
    from llmpipe.core.fs import size
    from llmpipe.core.local_folder import LocalFolder

    held = LocalFolder(folder).manifest
    if held is None:
        raise UserError(f"the manifest of {folder} can't be read", "llmpipe download makes it anew")
    if as_json:
        typer.echo((folder / ".llmpipe" / "manifest.json").read_text(encoding="utf-8").rstrip())
        return
    facts = Table(box=None, show_header=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    whole = sum(file.size for file in held.files.values())
    facts.add_row(
        escape(str(folder)),
        f"the {held.repo_type} {escape(held.repo)}, {len(held.files)} files, {size(whole)}",
    )
    facts.add_row(
        "commit", f"{held.commit} ({escape(held.asked['revision'])}), {held.about['end']}"
    )
    for name, file in held.files.items():
        facts.add_row(size(file.size), escape(f"{name}  {file.endpoint or 'this machine'}"))
    _out.print(facts)


def find(folder: Path) -> list[Artifact]:
    """The artifacts below ``folder``, in the order they were made."""
    found = []
    for path in folder.rglob(MANIFEST):
        parts = path.relative_to(folder).parts
        if any(p.endswith(".partial") or ".old-" in p or p.startswith(".") for p in parts):
            continue
        try:
            found.append(Artifact.open(path.parent))
        except UserError as e:
            typer.echo(f"left out: {e.message}", err=True)
    return sorted(found, key=lambda a: (a.manifest.started, a.manifest.ended, str(a.path)))


def _line(artifact: Artifact, folder: Path) -> dict[str, Any]:
    m = artifact.manifest
    return {
        "made": artifact.path.relative_to(folder).as_posix(),
        "by": m.stage,
        "read": m.counts["read"],
        "kept": m.rows,
        "dropped": m.counts["dropped"],
        "tokens": m.figures.get("tokens", m.figures.get("completion_tokens")),
        "seconds": m.figures.get("seconds"),
        "figures": _headline(m.figures),
        "attention": m.attention,
    }


def _headline(figures: Mapping[str, Any]) -> dict[str, Any]:
    best: dict[str, Any] = {}
    for start in _HEADLINES:
        best |= {k: v for k, v in figures.items() if k.startswith(start) and v is not None}
    if any(k.startswith("pass@") for k in best):
        best = {k: v for k, v in best.items() if k.startswith("pass@")}
        best |= {k: figures[k] for k in ("problems", "n") if k in figures}
    return best


def _table(artifacts: list[Artifact], folder: Path) -> None:
    table = Table(box=None, header_style="bold")
    for name in ("made", "by", "rows in", "rows out", "tokens", "seconds", "figures"):
        right = name in ("rows in", "rows out", "tokens", "seconds")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for artifact in artifacts:
        line = _line(artifact, folder)
        table.add_row(
            escape(line["made"]),
            line["by"],
            str(line["read"]),
            str(line["kept"]),
            "" if line["tokens"] is None else f"{line['tokens']:,}",
            "" if line["seconds"] is None else f"{line['seconds']:.1f}",
            escape(line["attention"] or _figures(line["figures"])),
        )
    _out.print(table)
    for path in sorted(folder.rglob("*.partial")):
        _out.print(f" {escape(path.relative_to(folder).as_posix())} is unfinished", style="yellow")


def _figures(figures: Mapping[str, Any]) -> str:
    return ", ".join(f"{k.replace('_', ' ')} {_number(v)}" for k, v in figures.items())


def _number(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({_figures(value)})"
    if isinstance(value, float) and 0 < abs(value) < 0.001:  # a learning rate
        return f"{value:.3g}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _artifact(artifact: Artifact, wanted: Wanted) -> None:
    m = artifact.manifest
    facts = Table(box=None, show_header=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row(
        escape(str(artifact.path)), f"{m.rows} {m.record} rows, made by {m.stage}, {m.ended}"
    )
    for role, entry in m.inputs.items():
        facts.add_row(f"from {role}", escape(entry["path"]))
    facts.add_row("config", escape(json.dumps(m.config, ensure_ascii=False)))
    dropped = ", ".join(f"{k} {v}" for k, v in m.counts["dropped"].items()) or "none"
    facts.add_row("dropped", f"{dropped} (of {m.counts['read']} read)")
    facts.add_row("figures", escape(_figures(m.figures)))
    if m.attention:
        facts.add_row("attention", escape(m.attention))
    _out.print(facts)
    _samples(m.details.get("samples") or {}, m.counts["dropped"])
    record = RECORDS.get(m.record)
    if record is None:  # an export: another tool's columns
        _out.print(f"as {escape(str(artifact.path / 'README.md'))} says", style="dim")
        return
    if record is Problem:
        for name in ("difficulty", "pass_rate"):
            _spread(artifact, name)
    shown: list[Any] = _shown(artifact, record, wanted)
    texts = _texts(artifact, wanted) if record is PackedRow else None
    pictures = Pictures(artifact, shown)
    for number, row in enumerate(shown, start=wanted.row or 0):
        if texts:
            texts.print(number, row, _out, whole=wanted.row is not None)
            continue
        _row(row.as_row())
        pictures.draw(row, _out)
        if wanted.svg and (file := pictures.write(row, wanted.svg)):
            _out.print(f"drawn in {escape(str(file))}", style="dim")


def _shown(artifact: Artifact, record: type[Record], wanted: Wanted) -> list[Record]:
    if wanted.row is None:
        return list(itertools.islice(artifact.iter_rows(record), wanted.rows))
    before = wanted.row
    for batch in artifact.batches(record.SCHEMA.names):
        if before < len(batch):
            return [record.from_row(row) for row in batch.slice(before, 1).to_pylist()]
        before -= len(batch)
    raise UserError(
        f"{artifact.path} has {artifact.rows} rows, and the first has number 0",
        f"llmpipe show {artifact.path}",
    )


def _texts(artifact: Artifact, wanted: Wanted) -> PackedText | None:
    """What prints packed rows as text; None, with a word why, where only their numbers are left."""
    from llmpipe.cli.packed import PackedText

    try:
        return PackedText(artifact, wanted.tokenizer)
    except UserError as e:
        if wanted.tokenizer or wanted.row is not None:
            raise
        typer.echo(f"Numbers only: {e.message}. Try: {e.hint}", err=True)
        return None


def _samples(samples: Mapping[str, Any], dropped: Mapping[str, int]) -> None:
    """The first rows dropped for each reason, where the stage kept some to show."""
    for reason, rows in samples.items():
        _out.print(f"\n{escape(reason)}: {dropped.get(reason, 0)} dropped", style="bold")
        for row in rows:
            detail = f" ({row['detail']})" if row["detail"] else ""
            _out.print(Padding(escape(f"{row['id']}{detail}"), (0, 0, 0, 2)), style="dim")
            _out.print(Padding(escape(row["prompt"]), (0, 0, 0, 4)))


def _spread(artifact: Artifact, column: str) -> None:
    """A histogram of a column, where it has numbers."""
    from llmpipe.cli.histogram import histogram

    lines = histogram(batch.column(column) for batch in artifact.batches([column]))
    if lines:
        _out.print(f"\n{column.replace('_', ' ')}", style="bold")
        _out.print("\n".join(f"  {line}" for line in lines), markup=False)


def _row(row: Mapping[str, Any]) -> None:
    _out.rule(style="dim")
    facts = Table(box=None, show_header=False)
    facts.add_column(style="cyan", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in row.items():
        if value is None or value == "{}":
            continue
        if isinstance(value, list) and value and name == "answers":  # votes of an eval
            for each in value:
                right = "right" if each["correct"] else "wrong"
                times = len(each["samples"])
                facts.add_row(name, f"{times} of {row['n']} {right}: {escape(each['answer'])}")
        elif isinstance(value, list) and value and isinstance(value[0], dict):  # a chat
            part = "" if name == "messages" else f"{name}: "
            for message in value:
                loss = " (loss)" if message.get("train") else ""
                facts.add_row(part + message["role"] + loss, escape(message["content"]))
        elif isinstance(value, list):
            facts.add_row(name, _list(value))
        else:
            facts.add_row(name, escape(_number(value)))
    _out.print(facts)


def _list(values: list[Any]) -> str:
    """Long lists are told by their ends: no one reads 8,192 token ids."""
    if len(values) <= 24:
        return escape(str(values))
    head = ", ".join(map(str, values[:12]))
    tail = ", ".join(map(str, values[-4:]))
    return escape(f"[{head}, ... {tail}] ({len(values)})")


def _rejects(artifact: Artifact, rows: int) -> None:
    file = artifact.path / REJECTS
    if not file.exists():
        _out.print("nothing was dropped")
        return
    table = Table(box=None, header_style="bold")
    for name in ("id", "reason", "detail"):
        table.add_column(name, overflow="fold")
    dropped = (row for batch in read_batches([file]) for row in batch.to_pylist())
    for row in itertools.islice(dropped, rows):
        table.add_row(*(escape(row[name]) for name in ("id", "reason", "detail")))
    _out.print(table)
    _out.print(", ".join(f"{k} {v}" for k, v in artifact.manifest.counts["dropped"].items()))


def prune(folder: Path, *, yes: bool) -> None:
    """List what broken and forced runs left behind, and remove it when told so."""
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder", "llmpipe show --prune DIR")
    leftovers = sorted(
        path for path in folder.rglob("*") if path.name.endswith(".partial") or ".old-" in path.name
    )
    leftovers = [p for p in leftovers if not any(q in p.parents for q in leftovers)]
    if not leftovers:
        _out.print(f"nothing is left over in {folder}")
        return
    for path in leftovers:
        age = datetime.datetime.fromtimestamp(path.lstat().st_mtime, datetime.UTC)
        kind = "unfinished, can go on" if path.name.endswith(".partial") else "set aside"
        _out.print(f"{path}  {kind}, {_size(path) / 1e6:.1f} MB, {age:%Y-%m-%d %H:%M}")
    if not yes and not (sys.stdin and sys.stdin.isatty()):
        again = shlex.join(["llmpipe", "show", "--prune", "--yes", str(folder)])
        raise UserError("nothing is removed: there is nobody to ask", again)
    if yes or typer.confirm("Remove them?", err=True):
        for path in leftovers:
            link = path.is_symlink()
            shutil.rmtree(path) if path.is_dir() and not link else path.unlink()


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
