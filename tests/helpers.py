"""Small artifacts for tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from llmpipe.core.artifact import REJECTS, Artifact
from llmpipe.core.records import Record
from llmpipe.core.run import Mode, Spec, Writer, execute

needs_vllm = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None, reason="vLLM can't be installed on this machine"
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The config of a made artifact: whatever a test wants to find in its manifest."""

    values: Mapping[str, Any]


def make_artifact(
    out: Path,
    rows: Sequence[Record],
    *,
    record: type[Record] | None = None,
    stage: str = "made",
    inputs: Mapping[str, Path] | None = None,
    details: Mapping[str, Any] | None = None,
    config: Any = None,
) -> Path:
    """Write rows as the artifact of ``stage``; whatever was at ``out`` is replaced.

    ``record`` is needed only where there are no rows.
    """

    def build(writer: Writer) -> None:
        writer.details |= details or {}
        for row in rows:
            writer.read += 1
            writer.add(row)

    spec = Spec(
        stage=stage,
        record=record or type(rows[0]),
        config=config or Settings(values={}),
        inputs={role: Artifact.open(path) for role, path in (inputs or {}).items()},
        out=out,
    )
    execute(spec, build, Mode(force=True))
    return out


def rejects(artifact: Path) -> list[tuple[str, str, str]]:
    """The dropped rows of an artifact: id, reason, detail."""
    file = artifact / REJECTS
    if not file.exists():
        return []
    return [(r["id"], r["reason"], r["detail"]) for r in pq.read_table(file).to_pylist()]
