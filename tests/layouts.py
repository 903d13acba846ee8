"""Data sets laid out on disk as on the hub, and what `prepare` makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from helpers import rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.plugins import load
from llmpipe.core.records import Problem
from llmpipe.core.run import Mode
from llmpipe.stages.prepare import Config, run

Rows = Sequence[Any]

# verl's columns, as Parquet holds them.
VERL = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("content", pa.string()), ("role", pa.string())]))),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("ground_truth", pa.string()), ("style", pa.string())])),
        ("extra_info", pa.struct([("index", pa.string())])),
    ]
)


def verl(prompt: str, truth: str | None, index: Any = "0", **extra: Any) -> dict[str, Any]:
    return {
        "data_source": "somewhere",
        "prompt": [{"content": prompt, "role": "user"}],
        "ability": "math",
        "reward_model": {"ground_truth": truth, "style": "rule"},
        "extra_info": {"index": index, **extra},
    }


def lay_out(
    root: Path,
    repo: str,
    files: Mapping[str, Rows],
    schema: pa.Schema | None = None,
    card: str = "",
) -> Path:
    """``root/datasets/REPO`` with the files, and a card with the given YAML in front."""
    folder = root / "datasets" / repo
    for name, rows in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), file)
        elif file.suffix == ".json":
            file.write_text(json.dumps(list(rows)), encoding="utf-8")
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "README.md").write_text(f"---\nlicense: mit\n{card}---\n# A set\n")
    return folder


def configs(**data_files: Mapping[str, str]) -> str:
    """A card's YAML for several configs, each from split to files."""
    lines = ["configs:"]
    for config, splits in data_files.items():
        lines += [f"- config_name: {config}", "  data_files:"]
        for split, path in splits.items():
            lines += [f"  - split: '{split}'", f"    path: '{path}'"]
    return "\n".join(lines) + "\n"


def prepared(
    root: Path, source: str, **settings: Any
) -> tuple[list[Problem], list[tuple[str, str, str]]]:
    """The problems that ``source`` makes of the sets under ``root``, and the rejects."""
    out = root / f"out-{len(list(root.glob('out-*')))}"
    run(Config(source=source, **settings), out, Mode(), root=root)
    return list(Artifact.open(out, Problem).iter_rows(Problem)), rejects(out)


def reasons(dropped: Sequence[tuple[str, str, str]]) -> list[tuple[str, str]]:
    return [(row, reason) for row, reason, _ in dropped]


def convert(name: str, row: Mapping[str, Any]) -> Any:
    """What a recipe makes of one row; columns that aren't given are null."""
    recipe = load("recipes", name)
    return recipe.convert({**dict.fromkeys(recipe.columns), **row})
