"""Generated problems: right, worded by us, distinct, balanced, and the same for the same seed."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

import pytest

from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Draw
from llmpipe.core.records import Problem
from llmpipe.recipes.reasoning_gym import FAMILIES, _solved

pytest.importorskip("reasoning_gym")

RECIPE = load("recipes", "reasoning-gym")


def draw(limit: int, seed: int = 0, **args: str) -> list[Problem]:
    made = RECIPE.draw(Draw(limit=limit, seed=seed, args=args))
    return [m for m in made if isinstance(m, Problem)]


@pytest.fixture(scope="module")
def many() -> list[Problem]:
    return draw(1100)


def of(problems: list[Problem], family: str) -> list[Problem]:
    found = [p for p in problems if p.subject == family]
    assert found
    return found


def numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def test_a_draw_is_distinct_and_balanced_over_families_and_levels(many: list[Problem]) -> None:
    assert len(many) == 1100
    assert len({p.id for p in many}) == 1100
    cells = Counter((p.subject, p.level) for p in many)
    assert len(cells) == sum(len(f.levels) for f in FAMILIES.values())
    assert max(cells.values()) - min(cells.values()) <= 1


def test_fields_say_where_a_problem_comes_from_and_how_hard_it_is(many: list[Problem]) -> None:
    for p in many:
        assert p.task == "math"
        assert p.source == f"reasoning-gym/{p.subject}"
        assert p.difficulty == (int(p.level or 0) - 1) / 4


def test_every_solution_ends_in_the_boxed_answer(many: list[Problem]) -> None:
    for p in many:
        assert p.solution
        assert p.solution.endswith(f"The answer is \\boxed{{{p.answer}}}.")


def test_no_prompt_demands_a_form_of_answer(many: list[Problem]) -> None:
    demand = re.compile(r"final answer|give only|boxed|do not include|state the", re.IGNORECASE)
    assert [p.prompt for p in many if demand.search(p.prompt)] == []


@pytest.mark.parametrize("family", ["chain_sum", "products"])
def test_sums_and_products_are_right(many: list[Problem], family: str) -> None:
    for p in of(many, family):
        first, *rest = p.prompt.removeprefix("What is ").removesuffix("?").split()
        total = int(first)
        for sign, n in zip(rest[::2], rest[1::2], strict=True):
            total = {"+": total + int(n), "-": total - int(n), "*": total * int(n)}[sign]
        assert p.answer == str(total)


@pytest.mark.parametrize(("family", "rule"), [("gcd", math.gcd), ("lcm", math.lcm)])
def test_divisors_and_multiples_are_right(many: list[Problem], family: str, rule) -> None:  # type: ignore[no-untyped-def]
    for p in of(many, family):
        assert p.answer == str(rule(*numbers(p.prompt)))


def test_equations_hold_at_the_answer(many: list[Problem]) -> None:
    for p in of(many, "simple_equations"):
        name, equation = p.prompt.removeprefix("Solve for ").split(": ")
        left, right = equation.split(" = ")
        value = re.sub(rf"\b{name}\b", f"({p.answer})", left)
        assert eval(value) == int(right), p.prompt


def test_fractions_ask_for_a_number_that_only_lowest_terms_give(many: list[Problem]) -> None:
    for p in of(many, "fraction_simplification"):
        top, bottom = numbers(p.prompt)[:2]
        common = math.gcd(top, bottom)
        assert common > 1
        assert p.answer == str((top + bottom) // common)


def equalities(text: str) -> list[tuple[str, str]]:
    """Pairs of plain expressions with = between them."""
    sides = re.split(r"(?<=[\d) ])=(?=[ -]*[\d(])", re.sub(r"[^\d+*/=. -]", "|", text))
    return [
        (a.rpartition("|")[2].strip(" ."), b.partition("|")[0].strip(" ."))
        for a, b in itertools.pairwise(sides)
    ]


@pytest.mark.parametrize("family", ["chain_sum", "products", "gcd", "lcm", "leg_counting"])
def test_every_step_of_the_working_is_true(many: list[Problem], family: str) -> None:
    checked = 0
    for p in of(many, family):
        for left, right in equalities(p.solution or ""):
            if re.fullmatch(r"[\d+*/ -]+", left) and re.fullmatch(r"[\d+*/ -]+", right):
                assert eval(left) == eval(right), p.solution
                checked += 1
    assert checked > 50


@pytest.mark.parametrize(
    ("equation", "value", "steps"),
    [
        ("2*x + 3 = 11", 4, "2*x + 3 = 11, so 2*x = 11 - 3 = 8, so x = 8 / 2 = 4."),
        ("3 - x = 1", 2, "3 - x = 1, so -1*x = 1 - 3 = -2, so x = -2 / -1 = 2."),
        ("x - 3 = 1", 4, "x - 3 = 1, so x = 1 + 3 = 4."),
        ("-2*x - 3 = -11", 4, "-2*x - 3 = -11, so -2*x = -11 + 3 = -8, so x = -8 / -2 = 4."),
        ("7*x = 21", 3, "7*x = 21, so x = 21 / 7 = 3."),
        ("2*x + 3 = 11", 5, None),
        ("x**2 = 4", 2, None),
    ],
)
def test_an_equation_is_solved_step_by_step_or_not_at_all(
    equation: str, value: int, steps: str | None
) -> None:
    assert _solved(equation, "x", value) == steps


def test_a_draw_depends_on_its_seed_only_and_neighbouring_seeds_share_little() -> None:
    settings = {"families": "gcd,simple_equations,gsm_symbolic", "levels": "4"}
    first, again = draw(120, seed=5, **settings), draw(120, seed=5, **settings)
    assert first == again
    other = {p.id for p in draw(120, seed=6, **settings)}
    assert len(other & {p.id for p in first}) <= 2


def test_a_smaller_draw_is_the_beginning_of_a_larger_one() -> None:
    assert draw(40) == draw(80)[:40]


def test_families_and_levels_can_be_chosen() -> None:
    made = draw(60, families="chain_sum, gcd", levels="1:2")
    assert {(p.subject, p.level) for p in made} == {
        (f, level) for f in ("chain_sum", "gcd") for level in "12"
    }
    assert {p.level for p in draw(10, families="lcm", levels="1,5")} == {"1", "5"}


def test_small_families_run_dry_and_others_go_on() -> None:
    assert len(draw(5000, families="products", levels="1")) == 100
    made = draw(300, families="products,chain_sum", levels="1")
    assert len(made) == 300
    assert Counter(p.subject for p in made) == {"products": 100, "chain_sum": 200}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"family": "gcd"}, "families="),
        ({"families": "gdc"}, "gcd"),
        ({"levels": "0:3"}, "levels="),
        ({"levels": "6"}, "levels="),
        ({"levels": "easy"}, "levels="),
        ({"levels": "3:1"}, "levels="),
        ({"families": "gsm_symbolic", "levels": "1"}, "gsm_symbolic: 4"),
    ],
)
def test_unknown_arguments_are_errors_that_list_the_known(args: dict[str, str], said: str) -> None:
    with pytest.raises(UserError) as caught:
        draw(3, **args)
    assert said in (caught.value.hint or "")
