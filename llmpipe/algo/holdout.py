"""Which problems to hold out: a choice that doesn't depend on their order."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable


def hold_out(keys: Iterable[bytes], count: int, seed: int) -> set[bytes]:
    """The ``count`` distinct keys that rank lowest by a hash with ``seed`` (fewer if there are).

    Memory grows with ``count``, not with the keys; more keys change the choice only by those that
    rank lower than one in it.
    """
    lowest: list[tuple[int, bytes]] = []  # a heap: the highest rank comes out first
    held: set[bytes] = set()
    for key in keys:
        if key in held:
            continue
        digest = hashlib.blake2b(b"%d\0%s" % (seed, key), digest_size=8).digest()
        entry = (-int.from_bytes(digest, "big"), key)
        if len(held) < count:
            heapq.heappush(lowest, entry)
            held.add(key)
        elif lowest and entry > lowest[0]:
            held.remove(heapq.heapreplace(lowest, entry)[1])
            held.add(key)
    return held
