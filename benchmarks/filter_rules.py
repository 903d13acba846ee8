"""Precision and recall of filter's text rules on labelled problems, and rows a second on one core.

Files are JSON Lines with ``prompt`` (or ``problem``, ``question``), ``answer``, and ``labels``: the
rules that a row should be dropped by (``label`` may hold one; other labels are ignored). Either of
the two multiple-choice rules is right where either is wanted. A row is dropped by the first rule
that hits, as in the stage; the rule's own recall, asked alone, stands beside it. The benchmarks in
``../shared/data/benchmarks``, where they are there, have no labels: what hits is printed.

    python benchmarks/filter_rules.py [FILE.jsonl ...] [--show RULE]
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmpipe.algo.extract import find_boxes
from llmpipe.algo.rules import RULES, Statement

BENCHMARKS = Path(__file__).parents[1].parent / "shared/data/benchmarks"
CHOICE = {"multiple_choice", "multiple_choice_value"}
ANSWERS = re.compile(r"####\s*(.*)")


@dataclass(frozen=True)
class Row:
    prompt: str
    answer: str
    labels: frozenset[str]


def rows_of(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            prompt = row.get("prompt") or row.get("problem") or row["question"]
            labels = {*(row.get("labels") or ()), row.get("label")} & RULES.keys()
            yield Row(prompt, answer_of(row), frozenset(labels))


def answer_of(row: Mapping[str, Any]) -> str:
    answer = row.get("answer")
    if answer is None:
        return find_boxes(row.get("solution") or "").answer or ""
    final = ANSWERS.search(str(answer))
    return final[1] if final else str(answer)


def first_hit(row: Row) -> str | None:
    statement = Statement(row.prompt, row.answer)
    return next((name for name, rule in RULES.items() if rule(statement) is not None), None)


def family(name: str) -> set[str]:
    return CHOICE if name in CHOICE else {name}


def measure(rows: Sequence[Row], hits: Sequence[str | None]) -> None:
    """A line a label: what the first hit gives, and what the rule alone does."""
    print(f"{'rule':<24}{'rows':>6}{'precision':>11}{'recall':>9}{'alone':>9}")
    for label in sorted(set().union(*(row.labels for row in rows))):
        names = family(label)
        wanted = [bool(names & row.labels) for row in rows]
        dropped = [hit in names for hit in hits]
        right = sum(w and d for w, d in zip(wanted, dropped, strict=True))
        alone = sum(
            any(RULES[n](Statement(row.prompt, row.answer)) is not None for n in names)
            for row, w in zip(rows, wanted, strict=True)
            if w
        )
        precision = f"{right / sum(dropped):.4f}" if any(dropped) else "-"
        recall = f"{right / sum(wanted):.4f}"
        alone_share = f"{alone / sum(wanted):.4f}"
        print(f"{label:<24}{sum(wanted):>6}{precision:>11}{recall:>9}{alone_share:>9}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--show", help="print the rows that this rule drops")
    args = parser.parse_args()
    public = sorted(BENCHMARKS.glob("*.jsonl")) if BENCHMARKS.is_dir() else []
    total, seconds = 0, 0.0
    for file in [*args.files, *(f for f in public if "model_solutions" not in f.name)]:
        rows = list(rows_of(file))
        began = time.process_time()
        hits = [first_hit(row) for row in rows]
        took = time.process_time() - began
        total, seconds = total + len(rows), seconds + took
        by_rule = collections.Counter(filter(None, hits))
        said = ", ".join(f"{n} {c} ({c / len(rows):.2%})" for n, c in by_rule.most_common())
        print(f"\n{file.name}: {len(rows)} rows, {len(rows) / took:,.0f} rows/s; hits: {said or 0}")
        if any(row.labels for row in rows):
            measure(rows, hits)
        for row, hit in zip(rows, hits, strict=True):
            if hit and hit == args.show:
                print(f"  {hit}: {' '.join(row.prompt.split())[:300]} | {row.answer[:80]!r}")
    if total:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"\n{total} rows, {total / seconds:,.0f} rows/s of CPU time, peak {peak:.0f} MiB")


if __name__ == "__main__":
    main()
