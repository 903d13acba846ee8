"""What a row is compared by: the part of finding duplicates that worker processes do.

All functions take and return what can be pickled, and read row groups of Parquet files themselves,
so that texts need not be sent about.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from llmpipe.algo.gaps import Gram, masked
from llmpipe.algo.held_out import TIERS, HeldOut
from llmpipe.algo.near import Pair, comparable, pairs
from llmpipe.algo.normal import normal_form
from llmpipe.algo.view import View, view
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Task
from llmpipe.core.records import Problem

ROW = np.dtype(
    [
        ("low", "<u8"),
        ("high", "<u8"),
        ("near", "<u8"),
        ("answer", "<u8"),
        ("rank", "i1"),
        ("tier", "i1"),
        ("held", "<i4"),
        ("source", "<i4"),
    ]
)
"""A row of a fingerprint table: a 128-bit hash of the problem, hashes of what a near duplicate has
in common with it (0 where there are none) and of its answer; how well it stands for others (0 is
best: an answer and a solution); the held-out tier (0 for none) and problem; its source's number."""

_BARE = ("task", "source", "prompt", "answer", "solution")


@functools.cache
def task_of(name: str) -> Task:
    task: Task = load("tasks", name)
    return task


def call(name: str, arguments: Sequence[Any]) -> Any:
    """Call a function of this module by its name: one pool of workers for all of them."""
    return globals()[name](*arguments)


def fingerprints(file: str, group: int, near: bool, index: str) -> tuple[bytes, list[str]]:
    """The `ROW` of each row of a row group, and the sources that ``source`` numbers.

    ``index`` is the file of a pickled `HeldOut`, or "" for none.
    """
    table = _read(file, group, _BARE)
    sources = table["source"].combine_chunks().dictionary_encode()
    rows = np.zeros(len(table), ROW)
    rows["source"] = sources.indices.to_numpy(zero_copy_only=False)
    tasks = table["task"].to_pylist()
    prompts = table["prompt"].to_pylist()
    prose_of = {name: task_of(name).prose for name in set(tasks)}
    payloads = (
        [""] * len(tasks)
        if all(prose_of.values())
        else _read(file, group, ("payload",))["payload"].to_pylist()
    )
    held_out = _index(index) if index else None
    keys = bytearray()
    nears, answers = [0] * len(tasks), [0] * len(tasks)
    found: list[tuple[int, int, int]] = []
    texts = table["answer"].to_pylist()
    for i, (task, prompt, answer) in enumerate(zip(tasks, prompts, texts, strict=True)):
        prose = prose_of[task]
        form = normal_form(prompt) if prose else form_of(task, prompt, answer, payloads[i])
        keys += hashlib.blake2b(f"{task}\0{form}".encode(), digest_size=16).digest()
        answers[i] = answer_key(answer)
        if prose and (near or held_out):
            seen = view(form)
            nears[i] = near_key(task, seen)
            hit = held_out.find(prompt, form, seen) if held_out else None
        else:
            hit = held_out.find_whole(form) if held_out else None
        if hit:
            found.append((i, TIERS.index(hit.tier) + 1, hit.problem))
    halves = np.frombuffer(bytes(keys), "<u8")
    rows["low"], rows["high"] = halves[::2], halves[1::2]
    rows["near"], rows["answer"] = nears, answers
    solved = np.array([bool(s) for s in table["solution"].to_pylist()], bool)
    rows["rank"] = 2 * (rows["answer"] == _NO_ANSWER) + ~solved
    for i, tier, number in found:
        rows["tier"][i], rows["held"][i] = tier, number
    return rows.tobytes(), sources.dictionary.to_pylist()


def form_of(task: str, prompt: str, answer: str, payload: str) -> str:
    """The normal form of a problem."""
    if task_of(task).prose:
        return normal_form(prompt)
    problem = Problem(id="", task=task, source="", prompt=prompt, answer=answer, payload=payload)
    return task_of(task).normal_form(problem)


def near_key(task: str, seen: View) -> int:
    """64 bits that two problems share if they may be near duplicates; `SKIPPED` for no text that
    can be compared."""
    return max(SKIPPED + 1, _hash(f"{task}\0{seen.key}")) if comparable(seen) else SKIPPED


SKIPPED = 1


@functools.lru_cache(maxsize=1 << 16)
def answer_key(answer: str) -> int:
    """64 bits for an answer's normal form."""
    return _hash(normal_form(answer))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


_NO_ANSWER = answer_key("")


def find_pairs(blocks: Sequence[Sequence[str]], threshold: float) -> list[tuple[list[Pair], int]]:
    """For each block of prompts the pairs that say the same, and how many were not looked at."""
    return [pairs(block, threshold) for block in blocks]


def count_grams(file: str, group: int, wanted: bytes, grams: str) -> Counter[Gram]:
    """In how many rows of a row group each of some runs of tokens occurs.

    ``wanted`` has a byte a row, 0 for rows that don't count; ``grams`` is a file with the pickled
    runs, by their length.
    """
    by_length = _grams(grams)
    counts: Counter[Gram] = Counter()
    mask = pa.array(np.frombuffer(wanted, np.bool_))
    for prompt in _read(file, group, ("prompt",))["prompt"].filter(mask).to_pylist():
        tokens = ["", *map(masked, view(normal_form(prompt)).tokens), ""]
        for length, some in by_length.items():
            runs = zip(*(tokens[i:] for i in range(length)), strict=False)
            counts.update(some.intersection(runs))
    return counts


@functools.lru_cache(maxsize=1)
def _grams(path: str) -> dict[int, frozenset[Gram]]:
    return cast("dict[int, frozenset[Gram]]", pickle.loads(Path(path).read_bytes()))


@functools.lru_cache(maxsize=1)
def _index(path: str) -> HeldOut:
    return cast(HeldOut, pickle.loads(Path(path).read_bytes()))


def _read(file: str, group: int, columns: Sequence[str]) -> pa.Table:
    with pq.ParquetFile(file) as parquet:
        return parquet.read_row_group(group, columns=list(columns), use_threads=False)
