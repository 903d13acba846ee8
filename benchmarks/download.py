"""Time, CPU and memory of ``llmpipe download`` against ``hf download``, from a hub on the loopback.

Both bring the same data set, of random bytes: a few large files, dozens of medium ones and
hundreds of small ones. Each run is a process of its own that writes to a fresh folder; the two
alternate, with the same number of workers, and neither uses Xet or shows progress. llmpipe checks
every file against its hash in that time; hf does not. A run at half the size shows whether memory
grows with it. The hub (tests/hub.py) is a process of its own, and its time isn't counted as CPU.

    python benchmarks/download.py [--size-mib M] [--rounds R] [--workers W] [--folder F]
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HUB = Path(__file__).parents[1] / "tests/hub.py"
# Of each kind of file: a pattern of its name, how many there are, their share of all bytes.
_KINDS = (
    ("data/train-{:05}.parquet", 3, 0.70),
    ("images/{:05}.tar", 48, 0.28),
    ("labels/{:02}/{:05}.json", 300, 0.02),
)
_PIECE = 2**20


@dataclass(frozen=True)
class Run:
    """What a process took: seconds, CPU seconds of it and its threads, and its peak MiB."""

    wall: float
    cpu: float
    rss: float

    def __str__(self) -> str:
        return f"{self.wall:6.2f} s, {self.cpu:6.2f} CPU s, peak {self.rss:5.0f} MiB"


def make(folder: Path, total: int) -> int:
    """Fill a folder with about ``total`` bytes; the size from which on files are in LFS."""
    draw = random.Random(total)
    medium = 0
    for pattern, count, share in _KINDS:
        size = int(total * share / count)
        medium = size if pattern.endswith(".tar") else medium
        for i in range(count):
            path = folder / pattern.format(*([i % 20, i] if "{:02}" in pattern else [i]))
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                for start in range(0, size, _PIECE):
                    stream.write(draw.randbytes(min(_PIECE, size - start)))
    return medium


@contextlib.contextmanager
def serving(folders: dict[str, Path], lfs_from: int) -> Iterator[str]:
    repos = [f"datasets/{repo}={folder}" for repo, folder in folders.items()]
    command = [sys.executable, _HUB, *repos, "--lfs-from", str(lfs_from)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as hub:
        try:
            yield hub.stdout.readline().strip()
        finally:
            hub.kill()


def commands(repo: str, url: str, out: Path, workers: int) -> dict[str, list[str]]:
    common = ["download", repo, "--repo-type", "dataset"]
    common += ["--local-dir", str(out), "--max-workers", str(workers)]
    return {
        "hf": [str(Path(sys.executable).with_name("hf")), *common],
        "llmpipe": [sys.executable, "-m", "llmpipe", *common, "--endpoint", url],
    }


def measure(command: list[str], url: str, home: Path) -> Run:
    """Run a command to its end.

    Raises:
        SystemExit: it failed.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "LLMPIPE_"))}
    env |= {"HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    env |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    os.sync()  # or this run waits for the writes of the one before
    with tempfile.TemporaryFile() as said:
        start = time.monotonic()
        process = subprocess.Popen(command, env=env, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(f"{' '.join(command)}:\n{said.read().decode()}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def check(got: Path, served: Path) -> None:
    """Every byte came.

    Raises:
        SystemExit: not so.
    """
    for file in (p for p in served.rglob("*") if p.is_file()):
        if digest(file) != digest(got / file.relative_to(served)):
            sys.exit(f"{file.relative_to(served)} is not what was served")


def digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size-mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--folder", type=Path, help="where to write; a new one in $TMPDIR")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="download-") as folder:
        compare(Path(folder), options.size_mib, options.rounds, options.workers)


def compare(folder: Path, mib: int, rounds: int, workers: int) -> None:
    served = {"bench/whole": folder / "whole", "bench/half": folder / "half"}
    make(served["bench/half"], mib * _PIECE // 2)
    lfs_from = make(served["bench/whole"], mib * _PIECE)
    files = [p for p in served["bench/whole"].rglob("*") if p.is_file()]
    start = time.process_time()
    for file in files:
        digest(file)
    hashing = time.process_time() - start
    print(f"{mib} MiB in {len(files)} files, {workers} workers; hashing alone: {hashing:.2f} CPU s")

    runs: dict[tuple[str, str], list[Run]] = {}
    with serving(served, lfs_from) as url:

        def once(side: str, repo: str) -> Run:
            out = folder / "got"
            run = measure(commands(repo, url, out, workers)[side], url, folder / "home")
            check(out, served[repo])
            shutil.rmtree(out)
            return run

        for side in ("hf", "llmpipe"):
            once(side, "bench/half")  # a first run compiles, and fills the page cache
        for number in range(rounds):
            for repo in served:
                for side in sorted(("hf", "llmpipe"), reverse=number % 2 == 1):
                    run = once(side, repo)
                    runs.setdefault((side, repo), []).append(run)
                    print(f"round {number + 1} {repo:11} {side:7} {run}", flush=True)

    medians = {key: median(found) for key, found in runs.items()}
    for (side, repo), run in medians.items():
        print(f"median  {repo:11} {side:7} {run}")
    ours, theirs = medians["llmpipe", "bench/whole"], medians["hf", "bench/whole"]
    print(f"llmpipe / hf in time:   {ours.wall / theirs.wall:.3f}")
    print(f"llmpipe / hf in CPU s:  {ours.cpu / theirs.cpu:.3f}")
    print(f"llmpipe / hf in memory: {ours.rss / theirs.rss:.3f}")
    for side in ("hf", "llmpipe"):
        grown = medians[side, "bench/whole"].rss - medians[side, "bench/half"].rss
        print(f"{side} at twice the size: {grown:+.0f} MiB")


def median(runs: list[Run]) -> Run:
    return Run(*(statistics.median(getattr(r, f) for r in runs) for f in ("wall", "cpu", "rss")))


if __name__ == "__main__":
    main()
