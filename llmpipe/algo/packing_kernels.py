"""Plans for packing sequences into rows.

Numba compiles every function here for arrays, and Python runs it as it is on lists, with the same
results: see `jit`.

Sequences of one length are alike, so a plan is made of lengths: ``counts[n]`` sequences of n tokens
are to be placed, and they are ``order[begins[n]:begins[n] + counts[n]]``. Their rows are written
into ``row_of``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def longest(shorter: Any, length: int) -> int:
    """The longest length up to ``length`` of which a sequence is left; 0 where none is.

    ``shorter[n]`` is n where one is left, else some length below it from which to go on: a forest
    whose paths are halved as they are walked (Tarjan and van Leeuwen 1984).
    """
    while shorter[length] != length:
        shorter[length] = shorter[shorter[length]]
        length = shorter[length]
    return length


def choose(room: int, width: int, counts: Any, shorter: Any) -> int:
    """The longer of the two sequences that together fill ``room`` best; 0 where none fits.

    The longest that fits is often followed by a gap. So up to ``width`` lengths are tried, from the
    longest on, each with the best second one.
    """
    length = longest(shorter, min(room, len(counts) - 1))
    if length == 0 or length == room:
        return length
    chosen, most = length, -1
    for _ in range(width):
        second = longest(shorter, min(room - length, length))
        if second == length and counts[length] == 1:
            second = longest(shorter, length - 1)
        if length + second > most:
            chosen, most = length, length + second
            if most == room:
                break
        length = longest(shorter, length - 1)
        if 2 * length <= most:  # no pair from here on fills more
            break
    return chosen


def look_ahead(
    capacity: int,
    width: int,
    counts: Any,
    begins: Any,
    order: Any,
    row_of: Any,
    shorter: Any,
    used: Any,
    row: Any,
) -> int:
    """Fill row after row, the longest sequence that is left first, and then as `choose` says.

    What one row is made of is made again for as long as its lengths last: the next row would come
    out the same. Returns how many rows there are.

    Args:
        counts, begins: used up.
        shorter: room for a number for each length; see `longest`.
        used: zeros, one for each length.
        row: room for the lengths in a row.
    """
    for length in range(len(counts)):
        shorter[length] = length if counts[length] else max(length - 1, 0)
    rows = 0
    first = longest(shorter, len(counts) - 1)
    while first:
        room, size, length = capacity, 0, first
        while length:
            row[size] = length
            size += 1
            room -= length
            used[length] += 1
            counts[length] -= 1
            if counts[length] == 0:
                shorter[length] = length - 1
            length = choose(room, width, counts, shorter)
        more = len(order)
        for k in range(size):
            more = min(more, counts[row[k]] // used[row[k]])
        for i in range(rows, rows + more + 1):
            for k in range(size):
                length = row[k]
                row_of[order[begins[length]]] = i
                begins[length] += 1
        for k in range(size):
            length = row[k]
            counts[length] -= more * used[length]
            used[length] = 0
            if counts[length] == 0:
                shorter[length] = length - 1
        rows += more + 1
        first = longest(shorter, len(counts) - 1)
    return rows


def next_open(top: Any, blocks: Any, side: int, least: int) -> int:
    """The smallest room of ``least`` or more that a row has left; 0 where none has."""
    room = least
    while room < len(top) and room // side == least // side:
        if top[room] >= 0:
            return room
        room += 1
    block = least // side + 1
    while block < len(blocks) and blocks[block] == 0:
        block += 1
    if block >= len(blocks):
        return 0
    room = block * side
    while top[room] < 0:
        room += 1
    return room


def best_fit(
    capacity: int,
    side: int,
    counts: Any,
    begins: Any,
    order: Any,
    row_of: Any,
    top: Any,
    under: Any,
    blocks: Any,
) -> int:
    """The longest sequences first, each into the open row that it fills best; how many rows.

    A row that a sequence fills best is also best for the next one of its length, if that fits.

    Args:
        top: for each room up to the capacity, the last of the rows that have it left: -1, none.
        under: room for a number for each row: the one before it with as much room.
        blocks: zeros, one for each ``side`` rooms: how many rows have one of these left.
    """
    rows = 0
    for length in range(len(counts) - 1, 0, -1):
        left, at = counts[length], begins[length]
        room, none_open = 0, False
        while left:
            if not none_open and (room == 0 or top[room] < 0):
                room = next_open(top, blocks, side, length)
                none_open = room == 0
            if none_open:
                row, free = rows, capacity
                rows += 1
            else:
                row, free = top[room], room
                top[room] = under[row]
                blocks[room // side] -= 1
            fitting = min(left, free // length)
            for i in range(at, at + fitting):
                row_of[order[i]] = row
            at += fitting
            left -= fitting
            free -= fitting * length
            if free:
                under[row] = top[free]
                top[free] = row
                blocks[free // side] += 1
    return rows


KERNELS: list[Callable[..., Any]] = [longest, choose, look_ahead, next_open, best_fit]
