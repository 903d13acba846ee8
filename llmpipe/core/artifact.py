"""Artifacts: folders of Parquet with a manifest, which is written last.

``data/train-00000-of-0000N.parquet`` holds the rows, ``rejects.parquet`` the dropped ones,
``run.log`` what the stage said, ``manifest.json`` where all of it came from. A folder without a
manifest is no artifact.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from llmpipe.core import fs
from llmpipe.core.errors import UserError
from llmpipe.core.records import RECORDS, Record
from llmpipe.core.tables import read_batches

FORMAT = 1
MANIFEST = "manifest.json"
REJECTS = "rejects.parquet"
RUN_LOG = "run.log"
REJECT_SCHEMA = pa.schema([("id", pa.string()), ("reason", pa.string()), ("detail", pa.string())])

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Where an artifact came from, and what is in it.

    ``files`` maps each file's name to its ``sha256`` and ``bytes``. ``inputs`` maps a role to its
    ``path`` (relative to the artifact), ``digest``, and ``stage`` where it is an artifact.
    ``counts`` has ``read``, ``kept`` and ``dropped`` (reason to count). ``attention`` is one line
    where the stage finished but its result wants a look (exit code 3). ``cwd`` is the folder that
    ``command`` was run in, relative to the artifact; those of an older llmpipe don't say it.
    """

    format: int = FORMAT
    stage: str
    record: str
    rows: int
    fingerprint: str
    config: Mapping[str, Any]
    inputs: Mapping[str, Mapping[str, str]]
    plugins: Mapping[str, str]
    files: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    figures: Mapping[str, Any]
    versions: Mapping[str, str]
    command: Sequence[str]
    git_commit: str | None
    started: str
    ended: str
    attention: str | None = None
    cwd: str | None = None
    stage_version: int = 1
    details: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        fs.write_json(folder / MANIFEST, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in ``folder``.

        Raises:
            UserError: it is damaged, or of another format.
        """
        path = folder / MANIFEST
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            known = {f.name for f in fields(cls)}
            if raw.get("format") != FORMAT:
                raise UserError(
                    f"{path} has format {raw.get('format')!r}, not {FORMAT}",
                    "it was made by another llmpipe: make the artifact again",
                )
            manifest = cls(**{k: v for k, v in raw.items() if k in known})
            for name in ("config", "inputs", "files", "counts", "figures", "details"):
                if not isinstance(getattr(manifest, name), dict):
                    raise TypeError(f"its {name} is no object")
            return manifest
        except (ValueError, TypeError, AttributeError) as e:
            raise UserError(
                f"{path} is damaged: {e}", "make the artifact again with --force"
            ) from None


@dataclass(frozen=True)
class Artifact:
    """A finished artifact, opened for reading."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path, *records: type[Record]) -> Artifact:
        """The artifact at ``path``, which must hold one of the given records (any by default).

        Raises:
            UserError: there is none, it is unfinished or damaged, or it holds another record.
        """
        if not path.exists():
            partial = path.with_name(path.name + ".partial")
            if partial.exists():
                raise UserError(
                    f"{path} is unfinished", "run the command that makes it again: it goes on"
                )
            raise UserError(f"{path} does not exist", "check the path, or make it first")
        if not (path / MANIFEST).is_file():
            kind = "a file" if path.is_file() else "a folder without a manifest"
            raise UserError(
                f"{path} is {kind}, not an llmpipe artifact",
                f"llmpipe prepare {path} -o OUT makes one from a file or folder of rows",
            )
        artifact = cls(path, Manifest.read(path))
        wanted = [r.__name__ for r in records]
        if wanted and artifact.manifest.record not in wanted:
            raise UserError(
                f"{path} holds {artifact.manifest.record} rows (made by "
                f"{artifact.manifest.stage}), but {' or '.join(wanted)} rows are needed",
                f"llmpipe show {path}",
            )
        return artifact

    @property
    def rows(self) -> int:
        return self.manifest.rows

    @property
    def digest(self) -> str:
        """A hash of the data files' hashes: equal data, equal digest."""
        data = {n: f["sha256"] for n, f in self.manifest.files.items() if n.startswith("data/")}
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

    def data_files(self) -> list[Path]:
        return [self.path / n for n in sorted(self.manifest.files) if n.startswith("data/")]

    def damage(self) -> str | None:
        """The first listed file that is missing or of another size; None where all are there."""
        for name, entry in self.manifest.files.items():
            file = self.path / name
            if not file.is_file():
                return f"{name} is missing"
            if file.stat().st_size != entry["bytes"]:
                return f"{name} has another size"
        return None

    def batches(
        self, columns: Sequence[str] | None = None, batch_size: int = 1024
    ) -> Iterator[pa.RecordBatch]:
        """The rows, as Arrow batches of the given columns."""
        yield from read_batches(self.data_files(), columns, batch_size)

    def iter_rows(self, record: type[R]) -> Iterator[R]:
        """The rows, one at a time, as records."""
        for batch in self.batches(record.SCHEMA.names):
            for row in batch.to_pylist():
                yield record.from_row(row)

    def upstream(self, record: type[Record], override: Path | None = None) -> Artifact:
        """The nearest artifact this one was made from that holds ``record``.

        ``override`` is used instead where it is given: folders get moved.

        Raises:
            UserError: the lineage doesn't lead there, or has changed since.
        """
        flag = f"--{record.__name__.lower()}s DIR"
        if override is not None:
            return Artifact.open(override, record)
        seen: list[tuple[Artifact, Mapping[str, str]]] = [
            (self, entry) for entry in self.manifest.inputs.values() if entry.get("stage")
        ]
        while seen:
            parent, entry = seen.pop(0)
            path = Path(parent.path, entry["path"]).resolve()
            if not (path / MANIFEST).is_file():
                raise UserError(
                    f"{parent.path} was made from {path}, which is gone",
                    f"say where it is now: {flag}",
                )
            found = Artifact(path, Manifest.read(path))
            if found.manifest.record == record.__name__:
                if found.digest != entry["digest"]:
                    raise UserError(
                        f"{path} has changed since {parent.path} was made from it",
                        f"run {parent.manifest.stage} again",
                    )
                return found
            seen += [(found, e) for e in found.manifest.inputs.values() if e.get("stage")]
        raise UserError(
            f"{self.path} does not say which {record.__name__} rows it was made from",
            f"say it: {flag}",
        )


def record_of(artifact: Artifact) -> type[Record]:
    """The record class of an artifact's rows."""
    return RECORDS[artifact.manifest.record]
