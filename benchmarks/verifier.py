"""Verdicts and speed of the math verifier, beside math-verify alone and plain string comparison.

The labelled data are public (other verifiers' own tests, inputs of bug reports, whole model
responses); rows whose label is contested are counted apart. math-verify is called as its page says,
without its time limits, which need a main thread. All three run in killable workers with the same
CPU limit, and what is killed counts as not right. Speeds are CPU seconds of one process, the sides
taking turns: whole responses as eight rollouts of each problem, and the hard cases. With --load two
processes keep the cores busy while everything is judged again, and no verdict may change.

    python benchmarks/verifier.py [--data DIR] [--show] [--load] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmpipe.core.pool import Failure, WorkerPool

DATA = Path(__file__).resolve().parents[2] / "shared/data/verifier"
CPU_SECONDS = 5.0
ROLLOUTS = 8


@dataclass(frozen=True)
class Row:
    id: str
    gold: str
    response: str
    right: bool
    kind: str
    contested: bool


def ours(gold: str, response: str) -> str:
    from llmpipe.verifiers.math import verify_math

    return verify_math(gold, response).status


def math_verify(gold: str, response: str) -> str:
    from math_verify import grader, parse, parser, verify

    parser.TIMEOUT_WARNING_SHOWN = grader.TIMEOUT_WARNING_SHOWN = True
    wrapped = gold if "$" in gold or "boxed" in gold else f"${gold}$"
    x, y = (parse(t, parsing_timeout=None) for t in (wrapped, response))
    return "correct" if verify(x, y, timeout_seconds=None) else "wrong"


def strings(gold: str, response: str) -> str:
    from llmpipe.algo.extract import final_answer

    return "correct" if final_answer(response).text == gold.strip().strip("$") else "wrong"


SIDES: dict[str, Callable[[str, str], str]] = {
    "llmpipe": ours,
    "math-verify": math_verify,
    "strings": strings,
}


def rows(path: Path) -> Iterator[Row]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        label = row.get("expected", row["label"])
        if label is None:
            continue
        whole = "output" in row
        response = row["output"] if whole else row["pred"]
        if row.get("form", "answer") == "answer" and not whole:
            response = f"\\boxed{{{response}}}"
        kind = row.get("klass") or row.get("kind") or row["source"].partition("/")[2]
        contested = bool(row.get("contested") or row.get("label_suspect"))
        yield Row(row["id"], row["gold"], response, bool(label), kind, contested)


def judged(side: str, data: list[Row], workers: int | None = None) -> list[str]:
    """A status a row; what a worker died of is its status."""
    target = f"{Path(__file__).stem}:{side}"
    warm_up = [("x", r"\boxed{y}"), (r"\sum_{k=1}^3 k", r"$\boxed{\int_0^1 x dx}$")]
    with WorkerPool(target, cpu_seconds=CPU_SECONDS, warm_up=warm_up, workers=workers) as pool:
        results = pool.map((r.gold, r.response) for r in data)
        return [r.kind if isinstance(r, Failure) else r for r in results]


def table(name: str, data: list[Row], verdicts: dict[str, list[str]]) -> None:
    kinds: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(data):
        kinds[f"{row.kind} (contested)" if row.contested else row.kind].append(number)
    plain = [n for n, row in enumerate(data) if not row.contested]
    print(f"\n{name}: {len(plain)} rows, {len(data) - len(plain)} contested ones apart")
    print(f"{'':34}{'rows':>6}" + "".join(f"{s:>26}" for s in verdicts))
    print(f"{'':40}" + f"{'right   fn      fp':>26}" * len(verdicts))
    groups = [(k, kinds[k]) for k in sorted(kinds, key=lambda k: ("(contested)" in k, k))]
    contested = [n for n, row in enumerate(data) if row.contested]
    for kind, numbers in [*groups, ("contested", contested), ("ALL, uncontested", plain)]:
        if not numbers:
            continue
        line = f"{kind[:33]:34}{len(numbers):6}"
        for statuses in verdicts.values():
            counts = Counter((data[n].right, statuses[n] == "correct") for n in numbers)
            good = counts[True, True] + counts[False, False]
            true = counts[True, True] + counts[True, False]
            missed = f"{counts[True, False]}/{true}"
            taken = f"{counts[False, True]}/{len(numbers) - true}"
            line += f"{100 * good / len(numbers):9.1f}%{missed:>9}{taken:>7}"
        print(line)


def differing(data: list[Row], statuses: list[str]) -> None:
    for row, status in zip(data, statuses, strict=True):
        if (status == "correct") != row.right and not row.contested:
            want = "same" if row.right else "different"
            print(f"  {row.id} {row.kind}: {want}, {status}")
            print(f"    {row.gold[-100:]!r} against {row.response[-100:]!r}")


def timed(side: str, data: list[Row], repeat: int) -> float:
    """CPU seconds of a process of its own for all rows, each ``repeat`` times in a row."""
    calls = json.dumps([(r.gold, r.response) for r in data for _ in range(repeat)])
    code = (
        "import json, sys, time\n"
        f"from {Path(__file__).stem} import {side} as judge\n"
        "calls = json.load(sys.stdin)\n"
        "judge('x', '$x+y$'); judge('\\\\sum_k x', '\\\\boxed{\\\\int x}')\n"
        "start = time.process_time()\n"
        "for gold, response in calls: judge(gold, response)\n"
        "print(time.process_time() - start)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTHONHASHSEED": "0"}
    out = subprocess.run(
        [sys.executable, "-c", code], input=calls, capture_output=True, text=True, check=True,
        env=environment,
    )  # fmt: skip
    return float(out.stdout)


def speeds(name: str, data: list[Row], repeat: int, rounds: int) -> None:
    seconds: dict[str, list[float]] = {"ours": [], "math_verify": []}
    for number in range(rounds):
        for side in sorted(seconds, reverse=bool(number % 2)):
            seconds[side].append(timed(side, data, repeat))
    rates = {s: len(data) * repeat / statistics.median(t) for s, t in seconds.items()}
    ratio = rates["ours"] / rates["math_verify"]
    print(
        f"{name}: llmpipe {rates['ours']:,.0f} rollouts/s a core, math-verify "
        f"{rates['math_verify']:,.0f}, {ratio:.1f} times (medians of {rounds}, CPU seconds)"
    )


@contextmanager
def busy(processes: int) -> Iterator[None]:
    running = [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--show", action="store_true", help="the rows that we judge otherwise")
    parser.add_argument("--load", action="store_true", help="judge again beside two busy processes")
    parser.add_argument("--rounds", type=int, default=3, help="of timing; 0 leaves it out")
    options = parser.parse_args()
    files = {n: options.data / f"{n}.jsonl" for n in ("cases", "issue_cases", "real_outputs")}
    if missing := [str(p) for p in files.values() if not p.exists()]:
        sys.exit(f"skipped: {', '.join(missing)} not found (--data DIR names their folder)")
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # workers import this file
    data = {name: list(rows(path)) for name, path in files.items()}
    for name, found in data.items():
        start = time.time()
        verdicts = {s: judged(f.__name__, found) for s, f in SIDES.items()}
        table(name, found, verdicts)
        for side in ("llmpipe", "math-verify"):
            print(f"  {side}: {dict(Counter(verdicts[side]))}")
        print(f"  {time.time() - start:.0f} s")
        if options.show:
            differing(found, verdicts["llmpipe"])
        if options.load:
            with busy(2):
                again = judged("ours", found)
            changed = sum(x != y for x, y in zip(verdicts["llmpipe"], again, strict=True))
            print(f"  under load {changed} of {len(found)} verdicts changed")
    if options.rounds:
        real = data["real_outputs"]
        speeds("real_outputs, n=8", real, ROLLOUTS, options.rounds)
        # What kills math-verify's process can't be timed beside it.
        hard = [r for r in data["cases"] if not r.contested]
        speeds("cases, each once", hard, 1, options.rounds)
    print("not right: a timeout, an error, or no answer, whatever the label says")


if __name__ == "__main__":
    main()
