"""Seeds that depend on what is drawn, not on when or where."""

from __future__ import annotations

import hashlib


def sample_seed(run_seed: int, problem_id: str, sample: int, turn: int = 0) -> int:
    """The seed of one answer: 63 bits of a hash of run seed, problem, sample number and turn.

    Samples are independent of each other and of the batch, and n can grow later without drawing the
    first ones again.
    """
    key = f"{run_seed}\0{problem_id}\0{sample}" + (f"\0{turn}" if turn else "")
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") >> 1
