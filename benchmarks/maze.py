"""Mazes drawn, solved and told apart, against reasoning-gym, mazelib and maze-dataset.

Each side runs in a process of its own, on one core, and makes mazes of 9, 11, ... 21 cells a side,
as many of each. llmpipe draws, solves with four measures, and lets no two be alike under turning
and mirroring; reasoning-gym draws and solves; mazelib and maze-dataset carve perfect mazes and are
asked for their solution, on lattices of half the size, whose walls are cells of their own. What is
loaded and compiled before the first maze is not counted. The `maze` command's own rate, with
worked solutions and Parquet written, comes last.

    pip install numba reasoning-gym mazelib maze-dataset 'muutils<0.9'
    python benchmarks/maze.py [--mazes N] [--peer-mazes N] [--many N]
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SIZES = range(9, 22, 2)


def ours(each: int) -> Iterator[Any]:
    from llmpipe.algo.maze_drawing import Seen, draw, kernels_for

    kernels = kernels_for(10**9)
    yield from draw(9, 2, 1, Seen(kernels), kernels)  # loads all kernels
    yield None
    seen = Seen(kernels)
    for size in SIZES:
        yield from draw(size, each, 0, seen, kernels)


def reasoning_gym(each: int) -> Iterator[Any]:
    import reasoning_gym

    def made(size: int, count: int) -> Any:
        return reasoning_gym.create_dataset(
            "maze", min_grid_size=size, max_grid_size=size, size=count, seed=0
        )

    yield from made(9, 2)
    yield None
    for size in SIZES:
        yield from made(size, each)


def mazelib(each: int) -> Iterator[Any]:
    from mazelib import Maze
    from mazelib.generate.BacktrackingGenerator import BacktrackingGenerator
    from mazelib.solve.ShortestPath import ShortestPath

    def made(size: int) -> Any:
        maze = Maze()
        maze.generator, maze.solver = BacktrackingGenerator(size // 2, size // 2), ShortestPath()
        maze.generate()
        maze.generate_entrances()
        maze.solve()
        return maze

    yield made(9)
    yield None
    yield from (made(size) for size in SIZES for _ in range(each))


def maze_dataset(each: int) -> Iterator[Any]:
    from maze_dataset.generation import LatticeMazeGenerators

    def made(size: int) -> Any:
        side = (size + 1) // 2
        maze = LatticeMazeGenerators.gen_dfs((side, side))
        return maze.find_shortest_path((0, 0), (side - 1, side - 1))

    yield made(9)
    yield None
    yield from (made(size) for size in SIZES for _ in range(each))


SIDES: dict[str, Callable[[int], Iterator[Any]]] = {
    "llmpipe": ours,
    "reasoning-gym": reasoning_gym,
    "mazelib": mazelib,
    "maze-dataset": maze_dataset,
}


def one(name: str, each: int) -> None:
    """Make mazes in this process, and print how that went as JSON."""
    mazes = SIDES[name](each)
    before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while next(mazes) is not None:
        pass
    loaded = time.monotonic() - before[0]
    wall, cpu, count = time.monotonic(), time.process_time(), 0
    for _ in mazes:
        count += 1
    figures = {
        "mazes": count,
        "seconds": time.monotonic() - wall,
        "cpu": time.process_time() - cpu,
        "loaded": loaded,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(figures))


def run(name: str, mazes: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", name, "--mazes", str(mazes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    rate = figures["mazes"] / figures["cpu"]
    print(
        f"{name:14} {figures['mazes']:>9,} mazes  {figures['seconds']:7.2f} s  "
        f"{figures['cpu']:7.2f} CPU s  {rate:>9,.0f} a CPU s  {figures['mib']:4.0f} MiB  "
        f"(loaded in {figures['loaded']:.1f} s)"
    )
    return {**figures, "rate": rate}


def command(mazes: int) -> None:
    """The whole command: problems with solutions, verified, in Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        sizes = [word for size in SIZES for word in ("--size", str(size))]
        line = ["maze", "-o", str(Path(folder, "out")), "--count", str(mazes // len(SIZES)), *sizes]
        start = time.monotonic()
        subprocess.run([sys.executable, "-m", "llmpipe", *line], check=True, capture_output=True)
        seconds = time.monotonic() - start
    print(f"llmpipe maze   {mazes:>9,} mazes  {seconds:7.2f} s, start and files included")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--mazes", type=int, default=40_000)
    parser.add_argument("--peer-mazes", type=int, default=1_400)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one, -(-options.mazes // len(SIZES)))
        return
    print(f"sizes {', '.join(map(str, SIZES))}; compiled kernels, one core")
    mine = run("llmpipe", options.mazes)
    for name in list(SIDES)[1:]:
        try:
            importlib.import_module(name.replace("-", "_"))
        except ImportError:
            print(f"{name:14} is not installed")
            continue
        peer = run(name, options.peer_mazes)
        print(f"{'':14} llmpipe / {name}: {mine['rate'] / peer['rate']:.0f}")
    run("llmpipe", options.many)
    command(options.mazes)


if __name__ == "__main__":
    main()
