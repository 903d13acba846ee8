from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from llmpipe.algo import maze_kernels, mazes
from llmpipe.algo.maze_drawing import Seen, draw, kernels_for, minimum_length
from llmpipe.algo.mazes import Maze, Solved

needs_numba = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="numba is not installed"
)


def some(size: int, count: int, seed: int = 0, seen: Seen | None = None) -> list[Solved]:
    seen = seen or Seen(maze_kernels)
    return list(draw(size, count, seed, seen, maze_kernels))


def turned(maze: Maze) -> Maze:
    return mazes.parse("\n".join("".join(column) for column in zip(*maze.rows[::-1], strict=True)))


def mirrored(maze: Maze) -> Maze:
    return mazes.parse("\n".join(row[::-1] for row in maze.rows))


@pytest.mark.parametrize("size", [3, 4, 5, 9, 14, 21])
def test_drawn_mazes_are_solved_long_enough_and_distinct(size: int) -> None:
    drawn = some(size, 50, seed=7)
    assert len({mazes.canonical_key(d.maze) for d in drawn}) == 50
    walls = [str(d.maze).count("*") / d.maze.cells for d in drawn]
    assert max(walls) - min(walls) > 0.2
    for d in drawn:
        assert len(d.maze.rows) == len(d.maze.rows[0]) == size
        assert mazes.solve(str(d.maze)) == d  # reads it anew, and solves it by itself
        assert len(d.path) >= minimum_length(size)


def test_both_open_ground_and_corridors_are_drawn() -> None:
    ways = [d.ways for d in some(15, 200)]
    assert sum(w == 1 for w in ways) > 20
    assert sum(w > 100 for w in ways) > 20
    lengths = sorted(len(d.path) for d in some(15, 200))
    assert lengths[-20] > 2 * lengths[20]


@needs_numba
@pytest.mark.parametrize("size", [3, 6, 9, 16, 21])
def test_compiled_and_interpreted_draw_the_same(size: int) -> None:
    compiled = kernels_for(10**9)
    assert compiled is not maze_kernels
    by_numba = list(draw(size, 60, 5, Seen(compiled), compiled))
    assert by_numba == some(size, 60, seed=5)


def test_small_jobs_don_t_wait_for_numba() -> None:
    assert kernels_for(50 * 81) is maze_kernels


def test_a_seed_is_all_that_matters_and_more_go_on() -> None:
    assert some(9, 20, seed=1) == some(9, 40, seed=1)[:20]
    assert not {str(d.maze) for d in some(9, 40, 1)} & {str(d.maze) for d in some(9, 40, 2)}
    assert some(9, 3, seed=-1) != some(9, 3, seed=1)
    assert some(9, 3, seed=10**30) != some(9, 3, seed=0)


def test_seeds_mean_the_same_in_every_process_and_release() -> None:
    code = (
        "from llmpipe.algo import maze_kernels as k; from llmpipe.algo.maze_drawing import *; "
        "print(*(str(d.maze) for d in draw(7, 3, 3, Seen(k), k)), sep='\\n\\n')"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    # Written down here: another sequence would be other mazes for the same command.
    assert printed == {FIRST}


FIRST = """.*.....
.*.*.**
..S*...
******.
.......
******.
...E...

*......
***..*.
*....S.
...**.*
.*.....
E*...*.
.*....*

..S*.E*
...*.*.
*....*.
*.*.**.
**....*
.**.**.
*.***.."""


def all_3x3() -> Iterator[Maze]:
    for start, end in itertools.permutations(range(9), 2):
        for walls in itertools.product(".*", repeat=7):
            cells = list(walls)
            for place, mark in sorted([(start, "S"), (end, "E")]):
                cells.insert(place, mark)
            text = "".join(cells)
            yield mazes.parse("\n".join((text[:3], text[3:6], text[6:])))


def length(maze: Maze) -> int:
    try:
        return len(mazes.solve(str(maze)).path)
    except ValueError:
        return 0


def test_a_small_size_is_drawn_until_it_is_used_up() -> None:
    """All 3x3 mazes with a path of 3 steps or more, by counting them out and by drawing them."""
    counted = {mazes.canonical_key(m) for m in all_3x3() if length(m) >= 3}
    drawn = [mazes.canonical_key(d.maze) for d in some(3, 1000)]
    assert len(drawn) == len(counted) == 179
    assert set(drawn) == counted


def test_the_eight_forms_of_a_maze_have_one_key() -> None:
    for d in some(6, 30):
        form, keys = d.maze, set()
        for _ in range(4):
            keys |= {maze_kernels.key(f.codes, 6) for f in (form, mirrored(form))}
            form = turned(form)
        assert len(keys) == 1
        assert len({f.codes.tobytes() for f in (d.maze, turned(d.maze), mirrored(d.maze))}) > 1


def test_mazes_that_were_seen_are_not_drawn_again() -> None:
    first, seen = some(5, 30), Seen(maze_kernels)
    for d in first:
        assert seen.add(turned(d.maze))
        assert not seen.add(mirrored(d.maze))
    assert seen.add(mazes.parse("S.E"))  # no square: like none
    second = some(5, 30, seen=seen)
    keys = [{mazes.canonical_key(d.maze) for d in part} for part in (first, second)]
    assert not keys[0] & keys[1]


def test_the_table_of_keys_grows_and_forgets_nothing() -> None:
    seen = Seen(maze_kernels)
    keys = [maze_kernels.mix(i) << 20 for i in range(1, 10_001)]
    for key in keys:
        seen.make_room(1)
        assert maze_kernels.insert(seen.table, key)
    assert not any(maze_kernels.insert(seen.table, key) for key in keys)
    assert np.count_nonzero(seen.table != maze_kernels.EMPTY) == 10_000 <= len(seen.table) / 2


def test_numbers_below_are_even_and_of_the_published_generator() -> None:
    state = np.array([1, 2], np.int64)
    drawn = [maze_kernels.below(state, 2**32) for _ in range(4)]
    assert drawn == xoroshiro64star(1, 2, 4)
    state = np.array([5, 6], np.int64)
    counts = np.bincount([maze_kernels.below(state, 7) for _ in range(7000)], minlength=7)
    assert counts.min() > 850


def xoroshiro64star(s0: int, s1: int, count: int) -> list[int]:
    """As its authors define it (prng.di.unimi.it/xoroshiro64star.c), in Python's own integers."""

    def rotl(x: int, k: int) -> int:
        return (x << k | x >> (32 - k)) % 2**32

    out = []
    for _ in range(count):
        out.append(s0 * 0x9E3779BB % 2**32)
        s1 ^= s0
        s0, s1 = rotl(s0, 26) ^ s1 ^ (s1 << 9) % 2**32, rotl(s1, 13)
    return out
