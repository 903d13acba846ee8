r"""Is a response's final answer the gold answer?

The decisions:

- The answer is looked for after the thinking, in the order that `llmpipe.algo.extract` gives. Of
  several boxes the last counts; boxes with only "and", a comma or a label between them are one
  answer. A sentence stands for what it says the answer is, in a gold answer too.
- The same text, wrappers and idle spaces apart, is the same answer.
- Integers and fractions are compared exactly, however large. Thousands may be set apart by commas,
  `\,` or spaces. Where a comma may as well part a list, either reading will do.
- A decimal is equal to a number, or to a longer decimal, if it is that correctly rounded to four
  significant digits or more: 0.3333 is 1/3, 0.33 is not. An integer is never a rounding. What has
  15 digits is a floating point number, good to 1e-12: 0.30000000000000004 is 0.3.
- 28% is 28 and 0.28. 90 degrees are 90 and pi/2. Repeating decimals are their fraction;
  2\frac{1}{2} is 5/2. 1011_2 is 1011, its base left out, and not 11; but 11_{10} is 1011_2.
- A unit may go without saying. Of two known units of a kind one is converted (5 cm is 50 mm), and
  known units of two kinds differ. A single letter is a unit only in `\text{}` or `\mathrm{}`, or
  beside such a unit: 5m is no 5. Currency signs say nothing.
- `\log` is natural or of base ten, whichever makes the two equal. i is the imaginary unit, e is
  Euler's number. `\sqrt[3]{-8}` is -2, (-8)^{1/3} is complex. `x!!` is the double factorial.
- Formulas are equal if their values are, at fixed points; at negative ones only where both are
  real. C and c are one constant.
- "x = 5" is 5, "f(x) = x" is x and f(z) = z, "Area: 5" is 5; but "x = 5" is not "y = 5". Of a
  chain "a = b = c" the ends count. What follows an "approximately equal" is left out, and so are
  "for all x", "k \in \mathbb{Z}" and "x > 0" after a value. A variable said to be any integer or
  constant, or the k of k\pi, may have another name.
- Equations are equal if one is a multiple of the other or both have the same roots. An equation is
  a formula if, solved for the variable that the formula lacks, it gives it: "xy = 6" is 6/x.
- A bare list is a list with repetitions, in any order; braces make a set; brackets a tuple, in
  order. A bare list may stand for a set or a tuple, a set never for a tuple. A list of tuples is a
  set of solutions. "\pm" is two answers. "(x, y) = (1, 2)" is "x = 1, y = 2", and "1, 2" in that
  order.
- Intervals, inequalities of one variable, set builders and unions are sets of numbers, equal if no
  number tells them apart: x < 3 is (-\infty, 3), and x \ne 2 is two rays. Two inequalities must be
  of the same variable. "a < b < c" is also the list a, b, c.
- Ratios are equal up to scale, and 2:1 is 2. Column vectors are tuples; matrix brackets are alike.
- Words are words: case and articles don't count, letters are no product ("Dawn" is not "Wand").
  "No solution", "none", \emptyset and \{\} are one answer. Choices go by their letter; "(B) 12" is
  also 12.
- What the grammar lacks (sums, integrals, limits) goes to math-verify, asked both ways round.
- What is too large to be computed, or longer than `read.LONGEST`, is an error: it can't be decided.
  So is a gold answer that can't be read. An answer that can't be read is wrong.

Which of two answers is the gold one makes no difference to whether they are equal. No text is run
as code: the grammar of `llmpipe.algo.answers.parser` reads plain text and LaTeX, and math-verify is
given LaTeX only, since its other parser evaluates what it reads. math-verify may still be busy for
hours, and nothing in this file stops it: stages call it through `llmpipe.core.pool.WorkerPool`,
which does, by CPU time.
"""

from __future__ import annotations

from functools import lru_cache

from llmpipe.algo.answers import equal as trees
from llmpipe.algo.answers.figures import equal_numbers
from llmpipe.algo.answers.read import LONGEST, Answer, read
from llmpipe.algo.answers.tree import TooLargeError, UnreadableError
from llmpipe.algo.extract import final_answer
from llmpipe.core.records import FinishReason, Score
from llmpipe.verifiers import _math_verify


def verify_math(
    gold: str, response: str, *, extract: str = "auto", finish_reason: FinishReason = "stop"
) -> Score:
    """Judge a response against a gold answer (bare, or with ``$..$`` or ``\\boxed{}`` around it).

    ``extract`` is "auto" or "boxed" (see `llmpipe.algo.extract`). A response that was cut off
    (``finish_reason`` length) before it closed its answer is truncated, whatever number it ends on.
    A gold that can't be read is an error, never a wrong answer; so is what is too large to be
    computed. Runs in this process and has no time limit.

    Raises:
        ValueError: ``extract`` is something else.
    """
    found = final_answer(response, extract)
    if finish_reason == "length" and not found.closed:
        return Score(status="truncated", extracted=None, detail="cut off before its answer")
    if found.text is None:
        return Score(status="no_answer", extracted=None, detail=found.why_not)
    equal, detail = same_answer(gold, found.text)
    if equal is None:
        return Score(status="error", extracted=found.text, detail=detail)
    return Score(status="correct" if equal else "wrong", extracted=found.text, detail=detail)


@lru_cache(maxsize=8192)  # a problem's rollouts come together, and many of them agree
def same_answer(gold: str, answer: str) -> tuple[bool | None, str]:
    """Whether two answers are equal, None if that can't be decided; and what decided it."""
    try:
        left = read(gold)
        if not _is_readable(left):
            return None, f"the gold answer can't be read: {_short(left.text)}"
        right = read(answer)
        equal, how = _compare(left, right)
    except (TooLargeError, RecursionError) as e:
        return None, f"can't be decided: {e}"
    if how == "same text":
        return equal, f"{how}: {_short(left.text)}"
    return equal, f"{how}: {_short(right.text)} against {_short(left.text)}"


def _is_readable(gold: Answer) -> bool:
    if gold.number or gold.trees or gold.words or gold.choice:
        return True
    return bool(gold.text) and _math_verify.readable(gold.text)


def _compare(left: Answer, right: Answer) -> tuple[bool, str]:
    if left.number and right.number:
        return equal_numbers(left.number, right.number), "numbers"
    if left.plain == right.plain:
        return True, "same text"
    if left.choice and right.choice:
        return _same_choice(left.choice, right.choice), "choices"
    for one, other in ((left, right), (right, left)):
        if one.choice and one.choice[1] and not other.choice:  # "(B) 12" is 12
            return _compare(read(one.choice[1]), other)
    if left.words or right.words:
        return False, "words"
    if left.trees and right.trees:
        return _same_trees(left, right), "values"
    if len(right.text) > LONGEST:
        raise TooLargeError(f"an answer of more than {LONGEST} characters")
    return bool(right.text) and _math_verify.equal(left.text, right.text), "math-verify"


def _same_choice(left: tuple[str, str], right: tuple[str, str]) -> bool:
    return left[0] == right[0]


def _same_trees(left: Answer, right: Answer) -> bool:
    for x in left.trees:
        for y in right.trees:
            try:
                if trees.equal(x, y, free=left.free or right.free):
                    return True
            except UnreadableError:
                continue
    return False


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
