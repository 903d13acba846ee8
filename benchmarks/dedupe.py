"""`llmpipe dedupe` beside datasketch, rensa and open-r1's 8-gram rule, on planted corpora.

Each method runs in a process of its own. A row that a method drops is right if one that says the
same is kept; recall is of all rows that could go. CPU seconds are those of the process and its
children; 2 idle cores give about half of it as wall time for ours, the peers use one.

    python benchmarks/dedupe.py [--rows 200000] [--seed 1] [--only exact near datasketch rensa ...]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import planted
import pyarrow.parquet as pq

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Problem
from llmpipe.core.run import Mode, Spec, Writer, execute
from llmpipe.stages.dedupe import HITS, Config, run

T = TypeVar("T")

WORD = re.compile(r"\S+")
SHINGLE, PERMUTATIONS, SIMILAR = 3, 128, 0.8


@dataclass(frozen=True)
class Made:
    """The config of a made artifact."""

    rows: int


def artifact(texts: Sequence[str], out: Path) -> Path:
    """The texts as problems, each with its number as the subject."""

    def build(writer: Writer) -> None:
        for i, text in enumerate(texts):
            writer.read += 1
            writer.add(
                Problem.make(task="math", source="s", prompt=text, answer="1", subject=str(i))
            )

    spec = Spec(stage="made", record=Problem, config=Made(len(texts)), inputs={}, out=out)
    execute(spec, build, Mode(force=True))
    return out


def cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def timed(call: Callable[[], T]) -> tuple[T, float, float]:
    """What a call returns, its wall seconds, and its CPU seconds with its children's."""
    clock, used = time.monotonic(), cpu()
    made = call()
    return made, time.monotonic() - clock, cpu() - used


def kept_in(out: Path) -> set[int]:
    rows = Artifact.open(out, Problem).batches(["subject"])
    return {int(s) for batch in rows for s in batch["subject"].to_pylist()}


def shingles(text: str) -> list[str]:
    words = WORD.findall(text.lower())
    return [" ".join(words[i : i + SHINGLE]) for i in range(max(1, len(words) - SHINGLE + 1))]


def datasketch_kept(texts: Sequence[str]) -> set[int]:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=SIMILAR, num_perm=PERMUTATIONS)
    kept = set()
    for i, text in enumerate(texts):
        sketch = MinHash(num_perm=PERMUTATIONS)
        sketch.update_batch([s.encode() for s in shingles(text)])
        if not index.query(sketch):
            index.insert(i, sketch)
            kept.add(i)
    return kept


def rensa_kept(texts: Sequence[str]) -> set[int]:
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=SIMILAR, num_perm=PERMUTATIONS, num_bands=16)
    kept = set()
    for i, text in enumerate(texts):
        sketch = RMinHash(num_perm=PERMUTATIONS, seed=1)
        sketch.update(shingles(text))
        if not index.query(sketch):
            index.insert(i, sketch)
            kept.add(i)
    return kept


def judged(rows: Sequence[planted.Row], kept: set[int]) -> dict[str, Any]:
    left = Counter(rows[i].truth for i in kept)
    wrong = Counter(r.kind for i, r in enumerate(rows) if i not in kept and not left[r.truth])
    copies = len(rows) - len({r.truth for r in rows})
    dropped = len(rows) - len(kept)
    found = copies - sum(n - 1 for n in left.values())
    return {
        "dropped": dropped,
        "precision": round(1 - wrong.total() / max(1, dropped), 5),
        "recall": round(found / copies, 4),
        "wrong": dict(wrong),
        "found": _by_kind(rows, kept),
    }


def _by_kind(rows: Sequence[planted.Row], kept: set[int]) -> dict[str, float]:
    """Of each kind of copies, how many are no longer there beside another row of their problem."""
    beside: dict[int, list[int]] = defaultdict(list)
    for i in kept:
        beside[rows[i].truth].append(i)
    total = Counter(r.kind for r in rows if r.kind in planted.COPIES)
    twice = Counter(rows[i].kind for some in beside.values() if len(some) > 1 for i in some)
    return {kind: round(1 - twice[kind] / total[kind], 4) for kind in planted.COPIES}


def embedded(text: str, draw: random.Random) -> str:
    """The text inside of a longer one."""
    other, note = planted.diverse(draw), draw.choice(planted.NOTES)
    return draw.choice([
        f"Question 12. {text}\n\n{note}", f"{other}\n\n{planted.reformatted(text, draw)}",
        f"{text} {planted.templated(draw)}", f'Consider this exercise (5 points): "{text}"',
    ])  # fmt: skip


def contaminated(count: int, seed: int) -> tuple[list[str], list[planted.Row]]:
    """Held-out problems, and rows of which some have them; ``truth`` is -1 for clean ones."""
    draw = random.Random(seed)
    held = [planted.templated(draw) if i % 2 else planted.diverse(draw) for i in range(1800)]
    taken = set(held)
    rows = []
    makers: dict[str, Callable[[str, random.Random], str | None]] = {
        **planted.COPIES, "embedded": embedded, **planted.TRAPS,
    }  # fmt: skip
    for kind, make in makers.items():
        for number in draw.sample(range(len(held)), 500):
            text = make(held[number], draw)
            if text is not None and (text not in taken or kind == "verbatim"):
                rows.append(planted.Row(text, number, kind, number % 2 == 1))
    while len(rows) < count:
        half = len(rows) % 2 == 0
        text = planted.templated(draw) if half else planted.diverse(draw)
        if text not in taken:
            kind = "clean templated" if half else "clean diverse"
            rows.append(planted.Row(text, -1, kind, half))
    draw.shuffle(rows)
    return held, rows


def eight_grams(held: Sequence[str], rows: Sequence[planted.Row], folder: Path) -> list[bool]:
    """open-r1's rule: any eight words in a row, lower case, that a held-out problem has too."""

    def grams(text: str) -> set[str]:
        words = text.lower().split()
        return {" ".join(words[i : i + 8]) for i in range(len(words) - 7)}

    known = set().union(*map(grams, held))
    return [not known.isdisjoint(grams(row.text)) for row in rows]


def against(held: Sequence[str], rows: Sequence[planted.Row], folder: Path) -> list[bool]:
    sources = artifact([r.text for r in rows], folder / "rows"), artifact(held, folder / "held")
    run(Config(), [sources[0]], folder / "out", Mode(force=True), against=[sources[1]])
    hits = pq.read_table(folder / "out" / HITS).to_pylist()
    found = {h["prompt"] for h in hits if h["tier"] != "template"}
    return [row.text in found for row in rows]


def flagged(rows: Sequence[planted.Row], hits: Sequence[bool]) -> dict[str, Any]:
    total = Counter(r.kind for r in rows)
    found = Counter(r.kind for r, hit in zip(rows, hits, strict=True) if hit)
    return {"flagged": {kind: round(found[kind] / n, 5) for kind, n in total.items()}}


METHODS = ("exact", "near", "datasketch", "rensa", "against", "eight_grams")


def measure(method: str, count: int, seed: int) -> dict[str, Any]:
    """One method in this process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gc.collect()
        if method in ("against", "eight_grams"):
            held, rows = contaminated(count // 5, seed)
            find = against if method == "against" else eight_grams
            hits, wall, spent = timed(lambda: find(held, rows, folder))
            result = flagged(rows, hits)
        else:
            rows = planted.corpus(count, seed)
            texts = [row.text for row in rows]
            if method in ("exact", "near"):
                source, config = artifact(texts, folder / "in"), Config(near=method == "near")
                out = folder / "out"
                gc.freeze()  # the corpus is this script's, not the command's, to look through
                _, wall, spent = timed(lambda: run(config, [source], out, Mode(force=True)))
                kept = kept_in(out)
            else:
                find_kept = datasketch_kept if method == "datasketch" else rensa_kept
                kept, wall, spent = timed(lambda: find_kept(texts))
            result = judged(rows, kept)
    peak = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "method": method, "rows": len(rows), "rows/s": round(len(rows) / wall),
        "rows/CPU s": round(len(rows) / spent), "peak MB": peak >> 10, **result,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--here", action="store_true", help="Measure in this process.")
    options = parser.parse_args()
    for method in options.only:
        if options.here:
            print(json.dumps(measure(method, options.rows, options.seed)), flush=True)
            continue
        command = [sys.executable, __file__, "--here", "--only", method]
        numbers = ["--rows", str(options.rows), "--seed", str(options.seed)]
        subprocess.run([*command, *numbers], check=True)


if __name__ == "__main__":
    main()
