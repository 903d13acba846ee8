"""Which of a problem's right answers to keep, and how problems are balanced."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from llmpipe.algo.diversity import Near, Sketch, spread
from llmpipe.core.protocols import Drop

PREFER = ("shortest", "longest", "random", "diverse", "reward")
REWARDS = ("outcome", "format", "length", "action")

_BINS = 10  # of the pass rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What is known of an answer that may be kept. ``tokens`` is 0 where nobody counted them.

    ``row`` is its number among the rollouts.
    """

    sample: int
    tokens: int
    characters: int
    row: int = 0
    reward: float = 0.0
    sketch: Sketch | None = None


def lengths(candidates: Iterable[Candidate]) -> dict[int, int]:
    """The length of each sample: in tokens, or in characters for all where one has no count."""
    candidates = list(candidates)
    counted = all(c.tokens or not c.characters for c in candidates)
    return {c.sample: c.tokens if counted else c.characters for c in candidates}


def ranked(
    problem: str, candidates: Sequence[Candidate], prefer: str, seed: int
) -> list[Candidate]:
    """A problem's answers, what is preferred first.

    The shorter is preferred among equal rewards, and the lower sample number at last. For diverse
    this is the order in which answers are considered: by reward, which is all the same where none
    was asked for.
    """
    length = lengths(candidates)
    match prefer:
        case "random":
            return sorted(candidates, key=lambda c: draw(seed, problem, c.sample))
        case "shortest":
            return sorted(candidates, key=lambda c: (length[c.sample], c.sample))
        case "longest":
            return sorted(candidates, key=lambda c: (-length[c.sample], c.sample))
    return sorted(candidates, key=lambda c: (-c.reward, length[c.sample], c.sample))


def draw(seed: int, *names: object) -> int:
    """64 bits that depend on the seed and on what is named."""
    key = "\0".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")


def weigh(rewards: Mapping[str, float | None], weights: Mapping[str, float] | None) -> float | None:
    """The weighted sum of rewards, or without weights the sum of all that were computed.

    None where one that has a weight, or any at all, was not computed: that is not 0.
    """
    if weights is None:
        known = [value for value in rewards.values() if value is not None]
        return sum(known) if known else None
    total = 0.0
    for name, weight in weights.items():
        value = rewards.get(name)
        if value is None:
            return None
        total += weight * value
    return total


def choose(
    order: Sequence[Candidate], most: int | None, threshold: float | None
) -> tuple[list[Candidate], dict[int, Drop]]:
    """The answers to keep of a problem, at most so many, and why not the others, by sample.

    ``order`` is what `ranked` gives. With a ``threshold`` the choice is diverse
    (`llmpipe.algo.diversity.spread`), and all need a sketch.
    """
    near: dict[int, Near] = {}
    if threshold is None:
        chosen = list(range(len(order)))[:most]
    else:
        chosen, near = spread([c.sketch for c in order if c.sketch is not None], most, threshold)
    drops = {}
    for place in sorted(set(range(len(order))).difference(chosen)):
        drops[order[place].sample] = Drop(reason="over_per_problem")
        if place in near:
            detail = f"{near[place].likeness:.0%} like sample {order[near[place].other].sample}"
            drops[order[place].sample] = Drop(reason="near_identical", detail=detail)
    return [order[place] for place in chosen], drops


def bin_name(correct: int, judged: int) -> str:
    """The tenth that a pass rate over 0 is in, its upper end included: "0.0-0.1" to "0.9-1.0"."""
    number = -(-_BINS * correct // judged)
    return f"{(number - 1) / _BINS:.1f}-{number / _BINS:.1f}"
