"""The public labelled answers (see benchmarks/verifier.py): how many are right, and both ways."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from llmpipe.core.pool import Failure, WorkerPool

DATA = Path(__file__).parents[2].parent / "shared/data/verifier"
pytestmark = pytest.mark.skipif(
    not DATA.exists(), reason="needs the labelled answers in shared/data/verifier"
)


def labelled(name: str) -> list[dict[str, Any]]:
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [r for r in rows if not r.get("contested") and not r.get("label_suspect")]


def in_pool(target: str, calls: list[tuple[str, str]]) -> list[Any]:
    warm_up = [("x", r"\boxed{\sum_{k=1}^3 k}")]
    with WorkerPool(f"llmpipe.verifiers.math:{target}", cpu_seconds=5, warm_up=warm_up) as pool:
        return list(pool.map(calls))


def call(row: dict[str, Any]) -> tuple[str, str]:
    if "output" in row:
        return row["gold"], row["output"]
    boxed = row.get("form", "answer") == "answer"
    return row["gold"], f"\\boxed{{{row['pred']}}}" if boxed else row["pred"]


@pytest.mark.parametrize(
    ("name", "least", "missed", "taken"),
    [
        ("cases", 0.97, 0.04, 0.003),
        ("issue_cases", 0.95, 0.05, 0.0),
        ("real_outputs", 0.998, 0.003, 0.0),
    ],
)
def test_shares(name: str, least: float, missed: float, taken: float) -> None:
    rows = labelled(name)
    results = in_pool("verify_math", [call(r) for r in rows])
    counts = Counter(
        (r.get("expected", r["label"]), not isinstance(v, Failure) and v.status == "correct")
        for r, v in zip(rows, results, strict=True)
    )
    right = counts[True, True] + counts[False, False]
    assert right >= least * len(rows)
    assert counts[True, False] <= missed * (counts[True, True] + counts[True, False])
    assert counts[False, True] <= taken * (counts[False, True] + counts[False, False])


def test_all_pairs_both_ways_round() -> None:
    rows = [r for name in ("cases", "issue_cases") for r in labelled(name)]
    pairs = [(r["gold"], r["pred"]) for r in rows if len(r["gold"]) + len(r["pred"]) < 500]
    assert len(pairs) > 500
    forth = in_pool("same_answer", pairs)
    back = in_pool("same_answer", [(b, a) for a, b in pairs])
    unequal = [
        pair
        for pair, x, y in zip(pairs, forth, back, strict=True)
        if (not isinstance(x, Failure) and x[0] is True)
        != (not isinstance(y, Failure) and y[0] is True)
    ]
    assert not unequal
