"""Seeds that depend on what is drawn, not on when or where."""

from __future__ import annotations

import hashlib


def sample_seed(run_seed: int, problem_id: str, sample: int) -> int:
    """The seed of one sample: 63 bits of a hash of run seed, problem and sample number.

    Samples are independent of each other and of the batch, and n can grow later without drawing the
    first ones again.
    """
    key = f"{run_seed}\0{problem_id}\0{sample}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> 1
