"""reasoning-gym: generated arithmetic, algebra and grade-school problems at five levels.

Items come from the package of the same name (open-thought/reasoning-gym); what they hold beside
the question is worded anew here, so that no item asks for an answer format of its own. The tables
below say what each level of a family means.

Recipe arguments: ``families`` (names with commas between) and ``levels`` (``2``, ``1,3``, ``1:3``).
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Draw, Drop, Recipe
from llmpipe.core.records import Problem

log = logging.getLogger(__name__)

_LEVELS = range(1, 6)
_BLOCK = 1024  # items drawn under one seed
_REPEATS = 300  # so many repeats in a row, and a cell counts as run dry


@dataclass(frozen=True, kw_only=True)
class Worded:
    """An item in our words. ``steps`` lead to the answer; None where they can't be told."""

    prompt: str
    answer: str
    steps: str | None


@dataclass(frozen=True, kw_only=True)
class Family:
    """``levels`` maps a level to the generator's parameters; ``word`` puts an item in words."""

    word: Callable[[Mapping[str, Any]], Worded | Drop]
    levels: Mapping[int, Mapping[str, Any]]


def _range(name: str, low: int, high: int) -> dict[str, int]:
    return {f"min_{name}": low, f"max_{name}": high}


def _chain(item: Mapping[str, Any]) -> Worded:
    """A sum or a product, worked from left to right."""
    expression: str = item["metadata"]["expression"]
    first, *rest = expression.split(" ")
    total, steps = int(first), []
    for sign, number in zip(rest[::2], rest[1::2], strict=True):
        term = int(number)
        result = {"+": total + term, "-": total - term, "*": total * term}[sign]
        steps.append(f"{total} {sign} {term} = {result}")
        total = result
    return Worded(
        prompt=f"What is {expression}?", answer=item["answer"], steps=", ".join(steps) + "."
    )


def _gcd(item: Mapping[str, Any]) -> Worded:
    numbers: list[int] = item["metadata"]["numbers"]
    common, steps = numbers[0], []
    for number in numbers[1:]:
        small, common = sorted((common, number))
        while small:
            steps.append(f"{common} = {common // small} * {small} + {common % small}")
            common, small = small, common % small
    return Worded(
        prompt=f"What is the greatest common divisor of {_list(numbers)}?",
        answer=item["answer"],
        steps=f"{', '.join(steps)}. The greatest common divisor is {common}.",
    )


def _lcm(item: Mapping[str, Any]) -> Worded:
    numbers: list[int] = item["metadata"]["numbers"]
    multiple, steps = numbers[0], []
    for number in numbers[1:]:
        common, result = math.gcd(multiple, number), math.lcm(multiple, number)
        steps.append(
            f"The greatest common divisor of {multiple} and {number} is {common}, so their least "
            f"common multiple is {multiple} * {number} / {common} = {result}."
        )
        multiple = result
    return Worded(
        prompt=f"What is the least common multiple of {_list(numbers)}?",
        answer=item["answer"],
        steps=" ".join(steps),
    )


def _list(numbers: Sequence[int]) -> str:
    *head, last = map(str, numbers)
    return f"{', '.join(head)} and {last}"


_LINEAR = re.compile(
    r"(?:(?P<before>-?\d+) (?=[+-] ))?(?P<sign>-|[+-] )?(?:(?P<factor>\d+)\*)?[a-z]"
    r"(?: (?P<after>[+-] \d+))? = (?P<right>-?\d+)"
)


def _equation(item: Mapping[str, Any]) -> Worded:
    equation, name = item["metadata"]["equation"], item["metadata"]["variable"]
    return Worded(
        prompt=f"Solve for {name}: {equation}",
        answer=item["answer"],
        steps=_solved(equation, name, int(item["answer"])),
    )


def _solved(equation: str, name: str, value: int) -> str | None:
    """The steps from a*x + b = c to x = ``value``, where the equation is of that form."""
    parts = _LINEAR.fullmatch(equation)
    if not parts:
        return None
    factor = int(parts["factor"] or 1) * (-1 if (parts["sign"] or "+").strip() == "-" else 1)
    constant = int((parts["after"] or parts["before"] or "0").replace(" ", ""))
    right = int(parts["right"])
    if factor * value + constant != right:
        return None
    rest = right - constant
    steps = [equation]
    if constant:
        term = name if factor == 1 else f"{factor}*{name}"
        moved = f"{right} {'-' if constant > 0 else '+'} {abs(constant)}"
        steps.append(f"{term} = {moved} = {rest}")
    if factor != 1:
        steps.append(f"{name} = {rest} / {factor} = {value}")
    return ", so ".join(steps) + "."


def _legs(item: Mapping[str, Any]) -> Worded:
    from reasoning_gym.arithmetic.leg_counting import ANIMALS

    animals: dict[str, int] = item["metadata"]["animals"]
    listed = ", ".join(f"{animal} ({count})" for animal, count in animals.items())
    each = [f"{a}: {n} * {ANIMALS[a]} = {n * ANIMALS[a]}" for a, n in animals.items()]
    total = " + ".join(str(n * ANIMALS[a]) for a, n in animals.items())
    return Worded(
        prompt=f"How many legs do these animals have in all? {listed}",
        answer=item["answer"],
        steps=f"{', '.join(each)}. In all {total} = {item['answer']}.",
    )


def _fraction(item: Mapping[str, Any]) -> Worded:
    """Asks for a sum, as a verifier takes a fraction that isn't in lowest terms for equal."""
    top, bottom = item["metadata"]["numerator"], item["metadata"]["denominator"]
    common = math.gcd(top, bottom)
    a, b = top // common, bottom // common
    return Worded(
        prompt=f"In lowest terms, {top}/{bottom} is a/b. What is a + b?",
        answer=str(a + b),
        steps=f"{top} and {bottom} have the greatest common divisor {common}, so {top}/{bottom} = "
        f"{a}/{b} and a + b = {a} + {b} = {a + b}.",
    )


_FORMAT_DEMAND = " Give the result as your final answer. Do not include units."


def _grade_school(item: Mapping[str, Any]) -> Worded | Drop:
    """The item's own wording without its format demand.

    Some items name amounts of money that come out as floats ("4125.0") in the working.
    """
    worked, _, final = item["metadata"]["answer_cot"].rpartition("####")
    question, answer = item["question"].removesuffix(_FORMAT_DEMAND), item["answer"]
    if question == item["question"] or float(final) != float(answer):
        return Drop(reason="inconsistent_item", detail=f"{final.strip()} against {answer}")
    return Worded(prompt=question, answer=answer, steps=worked.strip())


def _terms(terms: tuple[int, int], digits: tuple[int, int]) -> dict[str, int]:
    return _range("terms", *terms) | _range("digits", *digits)


def _linear(terms: int, value: int) -> dict[str, int]:
    return _range("terms", terms, terms) | _range("value", 1, value)


def _numbers(numbers: tuple[int, int], value: tuple[int, int]) -> dict[str, int]:
    return _range("numbers", *numbers) | _range("value", *value)


FAMILIES: Mapping[str, Family] = {
    "chain_sum": Family(
        word=_chain,
        levels={
            1: _terms((2, 2), (1, 1)),
            2: _terms((3, 3), (1, 1)),
            3: _terms((2, 3), (2, 2)),
            4: _terms((3, 5), (3, 3)),
            5: _terms((5, 8), (4, 4)),
        },
    ),
    "products": Family(
        word=_chain,
        levels={
            1: _terms((2, 2), (1, 1)),
            2: _terms((3, 3), (1, 1)),
            3: _terms((2, 2), (2, 2)),
            4: _terms((2, 2), (3, 3)),
            5: _terms((3, 3), (3, 3)),
        },
    ),
    "gcd": Family(
        word=_gcd,
        levels={
            1: _numbers((2, 2), (1, 30)),
            2: _numbers((2, 2), (31, 100)),
            3: _numbers((2, 2), (101, 1000)),
            4: _numbers((3, 3), (101, 1000)),
            5: _numbers((3, 4), (1001, 10_000)),
        },
    ),
    "lcm": Family(
        word=_lcm,
        levels={
            1: _numbers((2, 2), (1, 12)),
            2: _numbers((2, 2), (13, 30)),
            3: _numbers((2, 2), (31, 100)),
            4: _numbers((3, 3), (5, 40)),
            5: _numbers((3, 4), (41, 100)),
        },
    ),
    "simple_equations": Family(
        word=_equation,
        levels={
            1: _linear(2, 10),
            2: _linear(2, 30),
            3: _linear(3, 30),
            4: _linear(4, 60),
            5: _linear(5, 100),
        },
    ),
    "leg_counting": Family(
        word=_legs,
        levels={
            1: _range("animals", 1, 2) | _range("instances", 1, 3),
            2: _range("animals", 3, 3) | _range("instances", 1, 6),
            3: _range("animals", 4, 5) | _range("instances", 1, 10),
            4: _range("animals", 6, 8) | _range("instances", 1, 15),
            5: _range("animals", 9, 12) | _range("instances", 5, 30),
        },
    ),
    "fraction_simplification": Family(
        word=_fraction,
        levels={
            1: _range("value", 1, 10) | _range("factor", 2, 5),
            2: _range("value", 5, 20) | _range("factor", 2, 10),
            3: _range("value", 10, 60) | _range("factor", 3, 15),
            4: _range("value", 50, 200) | _range("factor", 5, 40),
            5: _range("value", 100, 1000) | _range("factor", 10, 100),
        },
    ),
    # The package has one difficulty of these.
    "gsm_symbolic": Family(word=_grade_school, levels={4: {}}),
}


def _draw(asked: Draw) -> Iterator[Problem | Drop]:
    """``asked.limit`` problems, families and levels in turn, no prompt twice.

    Small families run dry (there are 200 one-digit sums): the others go on without them.

    Raises:
        UserError: an argument, family or level that isn't known, or the package is missing.
    """
    unknown = asked.args.keys() - {"families", "levels"}
    if unknown:
        raise UserError(
            f"reasoning-gym has no argument {', '.join(sorted(unknown))}",
            "--recipe-arg families=chain_sum,gcd --recipe-arg levels=1:2",
        )
    families = _chosen_families(asked.args.get("families"))
    levels = _chosen_levels(asked.args.get("levels"))
    cells = [(f, level) for level in levels for f in families if level in FAMILIES[f].levels]
    if not cells:
        known = "; ".join(f"{f}: {', '.join(map(str, FAMILIES[f].levels))}" for f in families)
        raise UserError(f"no level of {asked.args['levels']} is there", f"the levels are {known}")
    try:
        import reasoning_gym
    except ImportError:
        raise UserError("reasoning-gym is not installed", "pip install reasoning-gym") from None
    seen: set[str] = set()
    sources = {cell: _cell(reasoning_gym, *cell, asked.seed, seen) for cell in cells}
    return _rounds(sources, asked.limit)


def _chosen_families(text: str | None) -> list[str]:
    names = [n.strip().replace("-", "_") for n in (text or ",".join(FAMILIES)).split(",")]
    for name in names:
        if name not in FAMILIES:
            raise UserError(
                f"reasoning-gym has no family {name!r} here", f"one of: {', '.join(FAMILIES)}"
            )
    return list(dict.fromkeys(names))


def _chosen_levels(text: str | None) -> list[int]:
    """The levels of ``1,3`` or ``1:3`` (both ends in)."""
    levels: set[int] = set()
    for part in (text or "1:5").split(","):
        low, colon, high = part.partition(":")
        try:
            levels |= set(range(int(low), int(high if colon else low) + 1))
        except ValueError:
            levels.add(0)
    if not levels or not levels <= set(_LEVELS):
        raise UserError(f"levels={text} is not a choice of levels 1 to 5", "levels=1:3")
    return sorted(levels)


def _rounds(
    sources: dict[tuple[str, int], Iterator[Problem | Drop]], limit: int
) -> Iterator[Problem | Drop]:
    """A problem of each source in turn, until there are ``limit`` or all have run dry."""
    made = 0
    while sources and made < limit:
        for cell in list(sources):
            for result in sources[cell]:
                yield result
                if isinstance(result, Problem):
                    made += 1
                    break
            else:
                log.info("%s at level %d has no further problems", *cell)
                del sources[cell]
            if made == limit:
                return


def _cell(gym: Any, name: str, level: int, seed: int, seen: set[str]) -> Iterator[Problem | Drop]:
    """Problems of one family at one level that aren't in ``seen``, until nothing new comes."""
    family, stale = FAMILIES[name], 0
    for block in itertools.count():
        items = gym.create_dataset(
            name, size=_BLOCK, seed=_block_seed(seed, name, level, block), **family.levels[level]
        )
        for index in range(_BLOCK):
            worded = family.word(items[index])
            result = worded if isinstance(worded, Drop) else _problem(name, level, worded)
            if isinstance(result, Problem) and result.id not in seen:
                seen.add(result.id)
                stale = 0
                yield result
                continue
            stale += 1
            if stale > _REPEATS:
                return
            if isinstance(result, Drop):
                yield result


def _block_seed(seed: int, family: str, level: int, block: int) -> int:
    """Far from every other: the package draws item i from its seed + i."""
    key = f"{seed}\0{family}\0{level}\0{block}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> 1


def _problem(family: str, level: int, worded: Worded) -> Problem:
    boxed = f"The answer is \\boxed{{{worded.answer}}}."
    return Problem.make(
        task="math",
        source=f"reasoning-gym/{family}",
        prompt=worded.prompt,
        answer=worded.answer,
        solution=f"{worded.steps}\n{boxed}" if worded.steps else None,
        level=str(level),
        subject=family,
        difficulty=(level - 1) / (len(_LEVELS) - 1),
    )


RECIPE = Recipe(
    task="math",
    source="reasoning-gym",
    draw=_draw,
    libraries=("reasoning-gym",),
)
