"""Packing against TRL, LLaMA-Factory's way and next fit: how full, how fast, how much memory.

Lengths are drawn (seed 0): reasoning traces (lognormal, mean 2.9k, at most 16384 tokens), mazes (50
to 400, mean 182), and a mix of 70 % mazes, 25 % traces and 5 % of 12k to 16k. What is over the
capacity is cut to it first, for all alike. Rows are scored by how many they are over the Martello
and Toth bound, which no packing can be under.

First bare lengths are planned. TRL's side is its own segment tree, driven as its `bfd` drives it,
over batches of 1000 (its `map` default) and over all; LLaMA-Factory's way is the longest sequence
that fits, by bisection, over batches of 1000. Then tokens are moved: each side in a process of its
own takes token ids and labels to packed rows. llmpipe reads them from its spill files and makes
position ids, too; "written" goes on to Parquet, as `llmpipe pack` does. TRL's `pack_dataset` has
them in memory. Last, llmpipe packs tokens by the hundred million, for its memory.

    pip install numba trl
    python benchmarks/pack.py [--sequences N] [--moved N] [--skip-slow]
"""

from __future__ import annotations

import argparse
import bisect
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from llmpipe.algo.packed_rows import batches, marked
from llmpipe.algo.packing import lower_bound, plan, utilisation
from llmpipe.core.ahead import ahead
from llmpipe.core.records import PackedRow
from llmpipe.core.spill import Spill
from llmpipe.core.tables import ShardWriter

CAPACITIES = 4096, 16384, 32768
WINDOW = 1000
VOCABULARY = 49152

Lengths = np.ndarray[Any, np.dtype[np.int64]]


def drawn(kind: str, count: int) -> Lengths:
    random = np.random.default_rng(0)

    def traces(n: int) -> Lengths:
        return np.clip(random.lognormal(np.log(2180), 0.8, n), 64, 16384).astype(np.int64)

    def mazes(n: int) -> Lengths:
        return np.clip(random.normal(182, 60, n), 50, 400).astype(np.int64)

    if kind == "reasoning":
        return traces(count)
    if kind == "maze":
        return mazes(count)
    many, some = count * 7 // 10, count // 4
    rest = random.integers(12_000, 16_385, count - many - some)
    mixed = np.concatenate([mazes(many), traces(some), rest])
    random.shuffle(mixed)
    return mixed


KINDS = "reasoning", "maze", "skewed"


def windows(lengths: Lengths, size: int) -> Iterator[Lengths]:
    return (lengths[i : i + size] for i in range(0, len(lengths), size))


def ours(lengths: Lengths, capacity: int) -> int:
    return len(plan(lengths, capacity, seed=0))


def next_fit(lengths: Lengths, capacity: int) -> int:
    rows, room = 0, 0
    for length in lengths.tolist():
        if length > room:
            rows, room = rows + 1, capacity
        room -= length
    return rows


def knapsack(lengths: Lengths, capacity: int) -> int:
    left, rows = np.sort(lengths).tolist(), 0
    while left:
        rows, room = rows + 1, capacity
        while (at := bisect.bisect_right(left, room)) > 0:
            room -= left.pop(at - 1)
    return rows


def trl_bfd(lengths: Lengths, capacity: int) -> int:
    from trl.data_utils import _SegmentTree

    tree, bins, open_bins = _SegmentTree(capacity), [], defaultdict(deque)
    tree.add(capacity)
    order = np.argsort(-lengths, kind="stable")
    for number, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        room = tree.search(length)
        if room < capacity:
            members = open_bins[room].popleft()
            if not open_bins[room]:
                tree.remove(room)
        else:
            members = []
            bins.append(members)
        members.append(number)
        if room > length:
            open_bins[room - length].append(members)
            tree.add(room - length)
    return len(bins)


def batched(packer: Callable[[Lengths, int], int]) -> Callable[[Lengths, int], int]:
    return lambda lengths, capacity: sum(packer(w, capacity) for w in windows(lengths, WINDOW))


PLANNERS: dict[str, Callable[[Lengths, int], int]] = {
    "llmpipe": ours,
    "next fit": next_fit,
    "LLaMA-Factory's way, batches": batched(knapsack),
    "TRL bfd, batches": batched(trl_bfd),
    "TRL bfd, one batch": trl_bfd,
}


def plans(count: int, sides: list[str]) -> None:
    ours(np.full(100_000, 3), 10)  # loads the kernels
    for kind in KINDS:
        for capacity in CAPACITIES:
            lengths = np.minimum(drawn(kind, count), capacity)
            least, tokens = lower_bound(lengths, capacity), int(lengths.sum())
            best = utilisation(tokens, least, capacity)
            print(f"{kind} at {capacity}: {count:,} sequences, at most {best:.4%} used")
            for name in sides:
                cpu = time.process_time()
                rows = PLANNERS[name](lengths, capacity)
                cpu = time.process_time() - cpu
                used, over = utilisation(tokens, rows, capacity), rows / least - 1
                print(
                    f"  {name:28} {used:9.4%} used  {over:9.4%} over  {cpu:7.2f} CPU s", flush=True
                )


def spilled(folder: Path, lengths: Lengths) -> Spill:
    spill = Spill(folder, {"tokens": np.int32})
    random = np.random.default_rng(1)
    for length in lengths.tolist():
        # Words are drawn as words are, a few of them often.
        ids = (VOCABULARY * random.random(length, np.float32) ** 4).astype(np.int32)
        spill.add(tokens=marked(ids, np.arange(length) * 4 > length))
    return spill


def move_ours(lengths: Lengths, capacity: int, written: bool) -> Iterator[int]:
    """Yields once before what is measured, and then how many rows there are."""
    ours(np.full(100_000, 3), 10)  # loads the kernels
    with tempfile.TemporaryDirectory() as folder, spilled(Path(folder), np.full(9, 9)) as spill:
        next(batches(plan(spill.lengths, 99), spill, multiple=1, pad=0, most=99))  # loads Arrow
    with tempfile.TemporaryDirectory() as folder, spilled(Path(folder), lengths) as spill:
        yield 0
        made = plan(spill.lengths, capacity, seed=0)
        writer = ShardWriter(Path(folder, "data"), PackedRow.SCHEMA)
        moved = batches(made, spill, multiple=1, pad=0, most=1 << 20)
        for batch in ahead(moved) if written else moved:
            if written:
                writer.write(batch)
        writer.close()
        yield len(made)


def move_trl(lengths: Lengths, capacity: int, batch_size: int) -> Iterator[int]:
    import datasets
    import pyarrow as pa
    from trl import pack_dataset

    datasets.disable_progress_bars()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    ids = np.random.default_rng(1).integers(0, VOCABULARY, int(lengths.sum()), np.int32)
    column = pa.ListArray.from_arrays(offsets, pa.array(ids))
    rows = datasets.Dataset(pa.table({"input_ids": column, "labels": column}))
    yield 0
    yield len(pack_dataset(rows, capacity, "bfd", map_kwargs={"batch_size": batch_size}))


MOVERS: dict[str, Callable[[Lengths, int], Iterator[int]]] = {
    "llmpipe": lambda lengths, capacity: move_ours(lengths, capacity, written=False),
    "llmpipe, written": lambda lengths, capacity: move_ours(lengths, capacity, written=True),
    "TRL bfd, batches": lambda lengths, capacity: move_trl(lengths, capacity, WINDOW),
    "TRL bfd, one batch": lambda lengths, capacity: move_trl(lengths, capacity, len(lengths)),
}


def peak() -> float:
    """The most memory of this process so far, in MiB. `resource` counts its parent's, too."""
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    return int(line.split()[1]) / 1024


def one(name: str, kind: str, count: int, capacity: int) -> None:
    """Move tokens in this process, and print how that went as JSON."""
    lengths = drawn(kind, count)
    mover = MOVERS[name](lengths, capacity)
    next(mover)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, wall, cpu = peak(), time.monotonic(), time.process_time()
    rows = next(mover)
    figures = {
        "tokens": int(lengths.sum()),
        "rows": rows,
        "seconds": time.monotonic() - wall,
        "cpu": time.process_time() - cpu,
        "mib": peak(),
        "grew": peak() - before,
    }
    print(json.dumps(figures))


def moves(kind: str, count: int, capacity: int, sides: list[str]) -> None:
    print(f"{kind}: {count:,} sequences moved to rows of {capacity}")
    for name in sides:
        options = ["--one", name, "--kind", kind, "--moved", str(count), "--at", str(capacity)]
        done = subprocess.run(
            [sys.executable, __file__, *options], capture_output=True, text=True, check=True
        )
        got = json.loads(done.stdout.splitlines()[-1])
        used = utilisation(got["tokens"], got["rows"], capacity)
        millions = got["tokens"] / 1e6
        print(
            f"  {name:28} {millions:6.1f} M tokens  {used:8.3%} used  "
            f"{millions / got['seconds']:6.1f} M/s  {millions / got['cpu']:6.1f} M/CPU s  "
            f"peak {got['mib']:5.0f} MiB, {got['grew']:5.0f} more than before",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--sequences", type=int, default=1_000_000, help="to plan")
    parser.add_argument("--moved", type=int, default=30_000, help="sequences to move")
    parser.add_argument("--skip-slow", action="store_true", help="leave out the others")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--at", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.kind, options.moved, options.at)
        return
    mine = [name for name in MOVERS if name.startswith("llmpipe")]
    plans(options.sequences, ["llmpipe"] if options.skip_slow else list(PLANNERS))
    for kind in "reasoning", "maze":
        moves(kind, options.moved, 16384, mine if options.skip_slow else list(MOVERS))
    moves("maze", 1_000_000, 16384, mine)
    for count in 3_500, 35_000:  # 10 and 100 million tokens
        moves("reasoning", count, 16384, ["llmpipe, written"])


if __name__ == "__main__":
    main()
