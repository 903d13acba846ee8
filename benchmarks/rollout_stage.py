"""The rollout stage around a scripted engine: samples a second and peak memory, by size.

Each run is a process of its own: requests and seeds are made, each sample is journalled, and the
final table is written. "goes on" is a run after one that broke before its last sample: it reads the
journal, draws one sample, and writes the table. Samples a second are of wall time; the floor is
what the process takes before its first sample (imports and problems of the smallest size).

    python benchmarks/rollout_stage.py [--sizes 10000 100000 1000000] [-n 8]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Problem
from llmpipe.core.run import Mode, Spec, Writer, execute
from llmpipe.stages import rollout


@dataclass(frozen=True)
class Made:
    """The config of a made artifact."""

    rows: int


def problems(count: int, out: Path) -> Path:
    """Sums, each another one."""

    def build(writer: Writer) -> None:
        for i in range(count):
            writer.read += 1
            prompt = (
                f"A shop sold {i} pens on Monday and twice as many on Tuesday. How many in all?"
            )
            writer.add(Problem.make(task="math", source="b", prompt=prompt, answer=str(3 * i)))

    spec = Spec(stage="made", record=Problem, config=Made(count), inputs={}, out=out)
    execute(spec, build, Mode(force=True))
    return out


def child(source: Path, out: Path, n: int, fail_after: int) -> dict[str, float]:
    plan = rollout.plan(
        engine="scripted",
        model="none",
        n=n,
        engine_args={"fail_after": str(fail_after)} if fail_after else {},
    )
    clock, cpu = time.monotonic(), time.process_time()
    try:
        result = rollout.run(plan, source, out, Mode())
    except RuntimeError:
        if not fail_after:
            raise
        return {}
    return {
        "rows": result.rows,
        "seconds": time.monotonic() - clock,
        "cpu": time.process_time() - cpu,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "mb": sum(f["bytes"] for f in Artifact.open(out).manifest.files.values()) / 1e6,
    }


def run(source: Path, out: Path, n: int, fail_after: int = 0) -> dict[str, Any]:
    command = [sys.executable, __file__, "-n", str(n), "--child", str(source), str(out)]
    done = subprocess.run(
        [*command, "--fail-after", str(fail_after)], stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("-n", type=int, default=8)
    parser.add_argument("--child", type=Path, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--fail-after", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(*options.child, options.n, options.fail_after)))
        return
    print("  samples  run       samples/s   CPU s   peak MiB   table MB   journal MB")
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            source = problems(size // options.n, Path(folder, "problems"))
            samples = size // options.n * options.n
            whole = run(source, Path(folder, "whole"), options.n)
            run(source, Path(folder, "again"), options.n, fail_after=samples - 1)
            journal = Path(folder, "again.partial/journal.jsonl").stat().st_size / 1e6
            again = run(source, Path(folder, "again"), options.n)
            for name, found in (("whole", whole), ("goes on", again)):
                assert found["rows"] == samples
                print(
                    f"{samples:9}  {name:8} {samples / found['seconds']:10.0f} {found['cpu']:7.1f}"
                    f" {found['mib']:10.0f} {found['mb']:10.1f} {journal:12.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
