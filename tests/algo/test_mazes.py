from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo import mazes
from llmpipe.algo.mazes import Maze, Solved

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
def grids(draw: st.DrawFn, rows: int = 0, columns: int = 0) -> Maze:
    rows, columns = rows or draw(st.integers(1, 5)), columns or draw(st.integers(2, 5))
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


def test_solve() -> None:
    assert mazes.solve("S.*\n..E\n***") == Solved(MAZE, path="RDR", turns=2, dead_ends=0, ways=2)
    with pytest.raises(ValueError, match="no path"):
        mazes.solve("S*E")


def _solve(maze: Maze) -> Solved | None:
    try:
        return mazes.solve(str(maze))
    except ValueError:
        return None


@given(grids())
def test_the_path_is_a_shortest_one(maze: Maze) -> None:
    solved = _solve(maze)
    assert (solved and len(solved.path)) == _shortest_by_relaxing(maze)
    if solved:
        assert solved.maze == maze
        assert _walk(maze, solved.path) == maze.end


def _shortest_paths(maze: Maze, length: int) -> list[str]:
    """All paths of a length, by trying all moves at each cell."""
    found, paths = [], [("", maze.start)]
    while paths:
        path, cell = paths.pop()
        if len(path) == length:
            found += [path] if cell == maze.end else []
            continue
        paths += [(path + m, to) for m in "UDLR" if maze.open(to := maze.step(cell, m))]
    return found


@given(grids(rows=3, columns=4))
def test_measures_are_as_counted_by_hand(maze: Maze) -> None:
    solved = _solve(maze)
    if solved is None or len(solved.path) > 9:
        return
    paths = _shortest_paths(maze, len(solved.path))
    assert solved.ways == len(paths)
    assert solved.path == min(paths, key=lambda p: ["DURL".index(m) for m in p[::-1]])
    assert solved.turns == sum(a != b for a, b in itertools.pairwise(solved.path))
    reached = {maze.start}
    for _ in range(maze.cells):
        reached |= {to for c in reached for m in "UDLR" if maze.open(to := maze.step(c, m))}
    blind = [
        cell
        for cell in reached - {maze.start, maze.end}
        if sum(maze.open(maze.step(cell, m)) for m in "UDLR") == 1
    ]
    assert solved.dead_ends == len(blind)


def test_ways_are_counted_up_to_a_million() -> None:
    n = 16  # C(30, 15) = 155 million ways from corner to corner
    rows = ["S" + "." * (n - 1), *["." * n] * (n - 2), "." * (n - 1) + "E"]
    assert mazes.solve("\n".join(rows)).ways == 1_000_000


def test_difficulty_rises_with_what_makes_a_maze_hard() -> None:
    assert mazes.difficulty(8, 0, 0, 1) == 0.0769
    plain = mazes.difficulty(20, 5, 3, 4)
    assert 0 < plain < 1
    assert mazes.difficulty(21, 5, 3, 4) > plain
    assert mazes.difficulty(20, 6, 3, 4) > plain
    assert mazes.difficulty(20, 5, 4, 4) > plain
    assert mazes.difficulty(20, 5, 3, 3) > plain


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
