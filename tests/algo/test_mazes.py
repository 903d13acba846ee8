from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo import mazes
from llmpipe.algo.mazes import Maze

MAZE = mazes.parse("S.*\n..E\n***")


def _walk(maze: Maze, path: str) -> tuple[int, int]:
    cell = maze.start
    for move in path:
        cell = maze.step(cell, move)
        assert maze.open(cell)
    return cell


def _shortest_by_relaxing(maze: Maze) -> int | None:
    """Bellman-Ford on all pairs of neighbours: another way to the same number."""
    cells = [(r, c) for r, c in itertools.product(*map(range, _shape(maze))) if maze.open((r, c))]
    best = {maze.start: 0}
    for _ in cells:
        for a, b in itertools.product(cells, cells):
            if a in best and abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1:
                best[b] = min(best.get(b, maze.cells), best[a] + 1)
    return best.get(maze.end)


def _shape(maze: Maze) -> tuple[int, int]:
    return len(maze.rows), len(maze.rows[0])


def _turned(maze: Maze) -> Maze:
    return mazes.parse("\n".join("".join(column) for column in zip(*maze.rows[::-1], strict=True)))


def _mirrored(maze: Maze) -> Maze:
    return mazes.parse("\n".join(row[::-1] for row in maze.rows))


@st.composite
def grids(draw: st.DrawFn) -> Maze:
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(2, 5))
    cells = draw(st.lists(st.sampled_from("..*"), min_size=rows * columns, max_size=rows * columns))
    start, end = draw(st.permutations(range(rows * columns)))[:2]
    cells[start], cells[end] = "S", "E"
    text = "".join(cells)
    return mazes.parse("\n".join(text[i : i + columns] for i in range(0, len(text), columns)))


def test_parse() -> None:
    maze = mazes.parse("\r\nS.*  \r\n..E\r\n")
    assert maze == Maze(("S.*", "..E"), start=(0, 0), end=(1, 2))
    assert str(maze) == "S.*\n..E"
    assert maze.cells == 6


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("S.E\n..", "different lengths"),
        ("S?E", "'\\?'"),
        ("s.E", "'s'"),
        ("..E", "0 S"),
        ("S..", "0 E"),
        ("SSE", "2 S"),
        ("ESE", "2 E"),
        ("S.\n\n.E", "different lengths"),
    ],
)
def test_a_malformed_maze_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        mazes.parse(text)


def test_shortest_path() -> None:
    assert mazes.shortest_path(MAZE) == "DRR"
    assert mazes.shortest_path(mazes.parse("S*E")) is None
    assert mazes.solve("S.*\n..E\n***") == (MAZE, 3)
    with pytest.raises(ValueError, match="no path"):
        mazes.solve("S*E")


@given(grids())
def test_shortest_path_is_one(maze: Maze) -> None:
    path = mazes.shortest_path(maze)
    assert (None if path is None else len(path)) == _shortest_by_relaxing(maze)
    if path is not None:
        assert _walk(maze, path) == maze.end


@given(grids())
def test_the_eight_symmetries_share_a_key(maze: Maze) -> None:
    form, keys = maze, set()
    for _ in range(4):
        keys |= {mazes.canonical_key(form), mazes.canonical_key(_mirrored(form))}
        form = _turned(form)
    assert form == maze
    assert len(keys) == 1


def test_other_mazes_have_other_keys() -> None:
    texts = [
        "S.E\n...",
        "SE.\n...",
        "S..\n..E",
        "E.S\n.*.",
        "S.\n.E\n..",
        "S....E",
        "S.E...",
        "S.E\n*..",
    ]
    assert len({mazes.canonical_key(mazes.parse(t)) for t in texts}) == len(texts)
    assert mazes.canonical_key(mazes.parse("S.E")) == mazes.canonical_key(mazes.parse("E\n.\nS"))


@pytest.mark.parametrize("size", [3, 5, 9, 14, 21])
def test_drawn_mazes_are_solvable_long_enough_and_distinct(size: int) -> None:
    drawn = list(itertools.islice(mazes.draw_distinct(size, 7, set()), 60))
    assert len({mazes.canonical_key(m) for m in drawn}) == 60
    walls = [str(m).count("*") / m.cells for m in drawn]
    assert max(walls) - min(walls) > 0.2
    for maze in drawn:
        assert _shape(maze) == (size, size)
        assert mazes.parse(str(maze)) == maze
        path = mazes.shortest_path(maze)
        assert path is not None
        assert len(path) >= mazes.minimum_length(size)
        assert _walk(maze, path) == maze.end


def test_a_maze_depends_on_size_seed_and_index_alone() -> None:
    def some(size: int, seed: int) -> list[Maze | None]:
        return [mazes.draw(size, seed, i) for i in range(20)]

    assert some(9, 1) == some(9, 1)
    assert not set(filter(None, some(9, 1))) & set(filter(None, some(9, 2)))
    assert mazes.draw(9, 1, 19) == some(9, 1)[19]


def test_seeds_mean_the_same_in_every_process() -> None:
    code = "from llmpipe.algo.mazes import draw; print(*(draw(7, 3, i) for i in range(5)))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {" ".join(str(mazes.draw(7, 3, i)) for i in range(5)) + "\n"}


def _all_3x3() -> Iterator[Maze]:
    for start, end in itertools.permutations(range(9), 2):
        for walls in itertools.product(".*", repeat=7):
            cells = list(walls)
            for place, mark in sorted([(start, "S"), (end, "E")]):
                cells.insert(place, mark)
            text = "".join(cells)
            yield mazes.parse("\n".join((text[:3], text[3:6], text[6:])))


def test_a_small_size_is_drawn_until_it_is_used_up() -> None:
    """All 3x3 mazes with a path of 3 steps or more, by counting them out and by drawing them."""
    counted = {mazes.canonical_key(m) for m in _all_3x3() if len(mazes.shortest_path(m) or "") >= 3}
    drawn: set[str] = set()
    assert sum(1 for _ in mazes.draw_distinct(3, 0, drawn)) == len(counted) == 179
    assert drawn == counted


def test_taken_mazes_are_not_drawn_again() -> None:
    first = list(itertools.islice(mazes.draw_distinct(5, 0, set()), 10))
    taken = {mazes.canonical_key(_turned(m)) for m in first}
    second = list(itertools.islice(mazes.draw_distinct(5, 0, taken), 10))
    assert not {mazes.canonical_key(m) for m in first} & {mazes.canonical_key(m) for m in second}


def test_difficulty_rises_with_the_path() -> None:
    assert [mazes.difficulty(n, 9) for n in (3, 9, 18, 36)] == [0.0, 0.0, 0.5, 0.75]
