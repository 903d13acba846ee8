"""Mazes by the ten thousand: drawn, solved, measured and told apart, on arrays.

Every function works on numbers and numpy arrays alone, so that Numba can compile it and Python can
run it as it is, with the same results: see `jit`. Numbers stay below 2**62, or are masked
to 32 bits after a product, which gives the same bits in Python's integers and in machine words.

A grid is an array of codes, row by row: 0 open, 1 wall, 2 start, 3 end. What is drawn is square, n
cells a side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

OPEN, WALL, START, END = 0, 1, 2, 3
MOVES = "UDLR"
MOST_WAYS = 1_000_000
"""Shortest paths are counted up to this."""

_M = 0xFFFFFFFF
EMPTY = -1  # a free place in the table of keys


def mix(x: int) -> int:
    """Scatter 32 bits (the finalizer of MurmurHash3, Appleby 2011)."""
    x ^= x >> 16
    x = (x * 0x85EBCA6B) & _M
    x ^= x >> 13
    x = (x * 0xC2B2AE35) & _M
    return x ^ (x >> 16)


def begin(state: Any, a: int, b: int, size: int, index: int) -> None:
    """Put a generator where candidate ``index`` begins: a function of the four numbers alone."""
    state[0] = mix(a ^ mix(index & _M)) | 1
    state[1] = mix(b ^ mix((index >> 32) + size * 0x9E3779B9 & _M))


def below(state: Any, n: int) -> int:
    """The next number of 0 to n - 1 (xoroshiro64*, Blackman and Vigna 2018)."""
    s0, s1 = int(state[0]), int(state[1])
    drawn = (s0 * 0x9E3779BB) & _M
    s1 ^= s0
    state[0] = ((s0 << 26 | s0 >> 6) & _M) ^ s1 ^ (s1 << 9 & _M)
    state[1] = (s1 << 13 | s1 >> 19) & _M
    return (drawn * n) >> 32


def scatter(grid: Any, n: int, state: Any) -> None:
    """Open ground with walls on 10 to 45 % of the cells: near 41 % it falls apart."""
    share = 100 + below(state, 351)
    for cell in range(n * n):
        grid[cell] = WALL if below(state, 1000) < share else OPEN


def carve(grid: Any, n: int, state: Any, stack: Any) -> None:
    """Corridors: a depth-first tree on every second cell, then up to 30 % of the walls opened."""
    for cell in range(n * n):
        grid[cell] = WALL
    nodes = (n + 1) // 2
    cell = 2 * below(state, nodes) * n + 2 * below(state, nodes)
    grid[cell] = OPEN
    stack[0], height = cell, 1
    while height:
        cell = int(stack[height - 1])
        row, column = cell // n, cell % n
        turn, moved = below(state, 4), False
        for k in range(4):
            way = (turn + k) & 3
            to_row = row + (2 if way == 1 else -2 if way == 0 else 0)
            to_column = column + (2 if way == 3 else -2 if way == 2 else 0)
            to = to_row * n + to_column
            if 0 <= to_row < n and 0 <= to_column < n and grid[to] == WALL:
                grid[(cell + to) // 2] = OPEN
                grid[to] = OPEN
                stack[height] = to
                height += 1
                moved = True
                break
        if not moved:
            height -= 1
    share = below(state, 301)
    for cell in range(n * n):
        if grid[cell] == WALL and below(state, 1000) < share:
            grid[cell] = OPEN


def spread(
    grid: Any, height: int, width: int, source: int, distance: Any, queue: Any, ways: Any
) -> int:
    """Steps from ``source`` (-1: none), and how many shortest ways; the cells reached.

    ``queue`` holds them by distance. Ways are counted up to `MOST_WAYS`.
    """
    for cell in range(height * width):
        distance[cell] = -1
        ways[cell] = 0
    distance[source], ways[source], queue[0] = 0, 1, source
    head, tail = 0, 1
    while head < tail:
        cell = int(queue[head])
        head += 1
        row, column = cell // width, cell % width
        for way in range(4):
            if way == 0:
                to, inside = cell - width, row > 0
            elif way == 1:
                to, inside = cell + width, row < height - 1
            elif way == 2:
                to, inside = cell - 1, column > 0
            else:
                to, inside = cell + 1, column < width - 1
            if not inside or grid[to] == WALL:
                continue
            if distance[to] < 0:
                distance[to] = distance[cell] + 1
                queue[tail] = to
                tail += 1
            if distance[to] == distance[cell] + 1:
                ways[to] = min(MOST_WAYS, ways[to] + ways[cell])
    return tail


def dead_ends(grid: Any, height: int, width: int, queue: Any, reached: int) -> int:
    """Of the cells reached, those with one way in and none on, S and E not counted."""
    count = 0
    for k in range(reached):
        cell = int(queue[k])
        if grid[cell] != OPEN:
            continue
        row, column = cell // width, cell % width
        doors = 0
        if row > 0 and grid[cell - width] != WALL:
            doors += 1
        if row < height - 1 and grid[cell + width] != WALL:
            doors += 1
        if column > 0 and grid[cell - 1] != WALL:
            doors += 1
        if column < width - 1 and grid[cell + 1] != WALL:
            doors += 1
        if doors == 1:
            count += 1
    return count


def trace(height: int, width: int, end: int, distance: Any, path: Any) -> int:
    """Write a shortest path from where ``distance`` is 0 to ``end``, and return how often it turns.

    Back from the end, it comes from the first nearer cell in the order up, down, left, right.
    """
    cell, turns, last = end, 0, -1
    for left in range(int(distance[end]) - 1, -1, -1):
        row, column = cell // width, cell % width
        if row > 0 and distance[cell - width] == left:
            way, cell = 1, cell - width
        elif row < height - 1 and distance[cell + width] == left:
            way, cell = 0, cell + width
        elif column > 0 and distance[cell - 1] == left:
            way, cell = 3, cell - 1
        else:
            way, cell = 2, cell + 1
        path[left] = way
        if last >= 0 and way != last:
            turns += 1
        last = way
    return turns


def at(grid: Any, n: int, form: int, row: int, column: int) -> int:
    """The code at a place of one of the eight forms that a square turns and mirrors into."""
    if form & 1:
        row = n - 1 - row
    if form & 2:
        column = n - 1 - column
    return int(grid[column * n + row]) if form & 4 else int(grid[row * n + column])


def key(grid: Any, n: int) -> int:
    """62 bits, the same for all eight forms of a grid: a hash of the first of them in order."""
    best = 0
    for form in range(1, 8):
        for cell in range(n * n):
            here = at(grid, n, form, cell // n, cell % n)
            there = at(grid, n, best, cell // n, cell % n)
            if here != there:
                if here < there:
                    best = form
                break
    h, g = 0x811C9DC5, n
    for cell in range(n * n):
        code = at(grid, n, best, cell // n, cell % n) + 1
        h = ((h ^ code) * 0x01000193) & _M
        g = ((g + code) * 0x2C1B3C6D) & _M
        g ^= g >> 15
    return (mix(h ^ g >> 7) & 0x3FFFFFFF) << 32 | mix(g ^ (h << 5 & _M))


def insert(table: Any, wanted: int) -> bool:
    """Put a key into an open-addressed table with room; False if it was there."""
    place = wanted % len(table)
    while table[place] != EMPTY:
        if table[place] == wanted:
            return False
        place = place + 1 if place + 1 < len(table) else 0
    table[place] = wanted
    return True


def draw(
    n: int,
    state: Any,
    least: int,
    grid: Any,
    distance: Any,
    queue: Any,
    ways: Any,
    path: Any,
    measures: Any,
) -> bool:
    """Draw one candidate and solve it; False if no cell is ``least`` steps from its start.

    The end is drawn among the cells that are, so a maze that comes out has a path. ``measures``
    gets its length, turns, dead ends and number of shortest paths.
    """
    if below(state, 2):
        carve(grid, n, state, queue)
    else:
        scatter(grid, n, state)
    start = below(state, n * n)
    while grid[start] == WALL and below(state, 8):
        start = below(state, n * n)
    grid[start] = START
    reached = spread(grid, n, n, start, distance, queue, ways)
    farthest = int(distance[int(queue[reached - 1])])
    if farthest < least:
        return False
    # Cells at the least distance are the most, so how far it is at least is drawn first.
    least += below(state, farthest - least + 1)
    near = reached
    while distance[int(queue[near - 1])] >= least:
        near -= 1
    end = int(queue[near + below(state, reached - near)])
    grid[end] = END
    measures[0] = distance[end]
    measures[1] = trace(n, n, end, distance, path)
    measures[2] = dead_ends(grid, n, n, queue, reached)
    measures[3] = ways[end]
    return True


def fill(
    n: int,
    a: int,
    b: int,
    index: int,
    least: int,
    patience: int,
    table: Any,
    grids: Any,
    paths: Any,
    measures: Any,
) -> tuple[int, int]:
    """Fill the arrays with new mazes, from candidate ``index`` on.

    ``grids`` and ``paths`` are (mazes, n * n), ``measures`` (mazes, 4). A maze whose key is in
    ``table`` is passed over. Returns how many came, and the next candidate's number; fewer than
    asked for after ``patience`` candidates in a row that gave nothing new.
    """
    cells = n * n
    state = np.zeros(2, np.int64)
    distance, queue = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
    ways = np.zeros(cells, np.int64)
    made, fruitless = 0, 0
    while made < len(grids) and fruitless < patience:
        begin(state, a, b, n, index)
        index += 1
        fruitless += 1
        found = draw(
            n,
            state,
            least,
            grids[made],
            distance,
            queue,
            ways,
            paths[made],
            measures[made],
        )
        if found and insert(table, key(grids[made], n)):
            made += 1
            fruitless = 0
    return made, index


def rehash(old: Any, new: Any) -> None:
    """Move all keys of a table to a larger one."""
    for place in range(len(old)):
        if old[place] != EMPTY:
            insert(new, int(old[place]))


KERNELS: list[Callable[..., Any]] = [
    *(mix, begin, below, scatter, carve, spread, dead_ends, trace),
    *(at, key, insert, draw, fill, rehash),
]
