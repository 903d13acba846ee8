r"""Is a response's final answer the gold answer?

The decisions:

- The answer is looked for after the thinking, in the order that `llmpipe.algo.extract` gives. Of
  several boxes the last counts; boxes with only "and", a comma or a label between them are one
  answer. A sentence stands for what it says the answer is, in a gold answer too.
- The same text, wrappers and idle spaces apart, is the same answer, read or not.
- Integers and fractions are compared exactly, however large. Thousands may be set apart by commas,
  `\,` or spaces. Where a comma may as well part a list, either reading will do. In brackets it
  parts a list: (2,345) is a pair. It is of thousands there if the next number would begin with a 0,
  as in (1,000), and may be where other commas have a space: \{1,500, 2,500\}.
- A decimal is equal to a number, or to a longer decimal, if it is that correctly rounded to four
  significant digits or more, zeros at the end not counted: 0.3333 is 1/3, 0.33 is not, and 10.00
  is not 10.004. An integer is never a rounding. What has 15 digits is a floating point number, good
  to 1e-12: 0.30000000000000004 is 0.3.
- 28% is 28 and 0.28. 90 degrees are 90 and pi/2. Repeating decimals are their fraction;
  2\frac{1}{2} is 5/2. 1011_2 is 1011, its base left out, and not 11; but 11_{10} is 1011_2.
- A unit may go without saying: 5 cm is 5. Of two known units (`answers.unit_table`) one is
  converted, and those of two dimensions differ: 36 km/h is 10 m/s, 5 cm^2 is not 5 cm^3. Money has
  a dimension for each currency, and a price may leave out what it is for: $5 per hour is $5. A year
  is 12 months and 365 days; a month is no number of days. A name with several meanings (oz, ton,
  cent, C) is any of them; "square units" are any area. "2 hours 30 minutes" is 150 minutes, and
  without a unit 2.5 or 150. Words that are no known unit ("apples") say nothing, two different
  ones too. A single letter is a unit only in `\text{}` or `\mathrm{}`, beside a unit or in a
  quotient after a space ("10 m/s"): 5m is no 5.
- Words that scale a value count: 5 dozen is 60, 5万 is 50000, 5 squared is 25, 5 tenths are 1/2,
  \$5k is 5000. A number in words is that number: "five", "two and a half", 三分之二; "negative 5"
  is -5, "half of 5" is 5/2.
- Words that bound or deny make an inequality: "at least 5" and 至少5 are x >= 5, "not 5" is
  x \ne 5, of any variable; none of them is 5. Ends are left open in "between 3 and 5". Words that
  say which way a value goes may go without saying, but opposite ones differ: profit and loss,
  increase and decrease, maximum and minimum, north and south (`answers.prose`).
- Times of day are no ratios if they have am or pm, or a 0 that no ratio has: 8:00 is not 4:00,
  5:30 pm is 17:30 and 5:30. Dates are dates: 2023-05-06 is May 6, 2023. Of 5/6/2023 the first is
  the month.
- `\log` is natural or of base ten, whichever makes the two equal. i is the imaginary unit, e is
  Euler's number. `\sqrt[3]{-8}` is -2, (-8)^{1/3} is complex. `x!!` is the double factorial.
- Formulas are equal if their values are, at fixed points; at negative ones only where both are
  real. C and c are one constant. `\sqrt23` is 3\sqrt{2}, as TeX has it; sqrt(23), √23 and
  `\sqrt 23` are \sqrt{23}. Of what dots leave out nothing is known.
- A letter before a bracket is a function, and y(0) an unknown value, if the bracket holds one
  number, one other letter, a list or a statement: P(1), y'(0), I(0), y(t), u(x, y), P(X = 2), P(A).
  It is a factor before a sum or product, x(x+1) and a(b+c); and before a number if it counts: k,
  m, n, j, l, as in k(360°). After a prime, and of f and g, every bracket is an argument. A(1, 2) is
  the point (1, 2).
- "x = 5" is 5, "f(x) = x" is x and f(z) = z, "Area: 5" is 5; but "x = 5" is not "y = 5", nor "Area:
  5" "Perimeter: 5", nor "f(1) = 2" "f(3) = 2". Words that only say more are the same label, and in
  a list a word may be a letter's that begins it: "width = 3" is "w = 3". Of a chain "a = b = c" the
  ends count, unless its numbers contradict each other ("x = 4 = 5"). What follows an "approximately
  equal" is left out if it is within 1 % or a unit of its last place; so are "for all x", "k \in
  \mathbb{Z}", and "t > 0" after a formula in t. Of several cases ("5 if n is even, 3 if n is odd")
  none can be left out, and each keeps its condition. A variable said to be any integer or constant,
  or the k of k\pi, may have another name.
- Equations are equal if one is a multiple of the other or both have the same roots. An equation is
  a formula if, solved for the variable that the formula lacks, it gives it: "xy = 6" is 6/x;
  but "y = 2x + 1" is no formula for x. An equation of one variable is a list of two numbers or more
  if these are all its roots, complex ones too. "2 + 3 = 5" is 5.
- A bare list is a list with repetitions, in any order; braces make a set; brackets a tuple, in
  order. A bare list may stand for a set or a tuple, a set never for a tuple. A list of tuples is a
  set of solutions. "\pm" is two answers, each sign by itself: (\pm1, \pm2) is four points; but with
  a "\mp" all go together. "(x, y) = (1, 2)" is "x = 1, y = 2", and (1, 2) and "1, 2" in the order
  of the alphabet or of the indices, "y = 2, x = 1" too. Where the names have no such order (w and
  d, others not in a row) the order of writing counts; of words it doesn't, against a bare list.
- Intervals, inequalities of one variable, set builders and unions are sets of numbers, equal if no
  number tells them apart: x < 3 is (-\infty, 3), and x \ne 2 is two rays; |2x - 1| < 3 is
  (-1, 2). Two inequalities must be of the same variable, and those of two variables in one answer
  are a list. "a < b < c" is also the list a, b, c.
- Formulas of logic are equal by their table of truth; between inequalities "\land" is "and".
- Ratios are equal up to scale, 2:1 is 2, and "4 to 3" is 4:3. Column vectors are tuples; matrix
  brackets are alike.
- Words are words: case and articles don't count, letters are no product ("Dawn" is not "Wand"). An
  answer of capital letters alone, or of a short word in `\text{}`, is a product but for another
  such, which must have the same order: AB is A \cdot B, SOS is not OSS. \overline{abc} is 100a +
  10b + c, \overline{z} is not z. "No solution", "none", \emptyset and \{\} are one answer. Choices
  go by their letter; "(B) 12" is also 12, "(A) and (C)" is a list.
- What the grammar lacks (sums, integrals, limits) goes to math-verify, asked both ways round.
- What is too large to be computed, or longer than `read.LONGEST`, is an error: it can't be decided.
  So are two different texts that can't be read, and a text cut off in the middle of its braces.
  What can't be read is no value: it differs from all that can be. Whether a gold answer can be read
  is a question of its own: `unreadable`.

Which of two answers is the gold one makes no difference to the verdict. No text is run as code: the
grammar of `llmpipe.algo.answers.parser` reads plain text and LaTeX, and math-verify is given LaTeX
only, since its other parser evaluates what it reads. math-verify may still be busy for hours, and
nothing in this file stops it: stages call it through `llmpipe.core.pool.WorkerPool`, which does, by
CPU time.
"""

from __future__ import annotations

import re
from functools import lru_cache

from llmpipe.algo.answers import equal as trees
from llmpipe.algo.answers.figures import equal_numbers
from llmpipe.algo.answers.prose import opposed
from llmpipe.algo.answers.read import Answer, read
from llmpipe.algo.answers.tree import TooLargeError, UnreadableError
from llmpipe.algo.extract import final_answer, sentence_of
from llmpipe.core.records import FinishReason, Score
from llmpipe.verifiers import _math_verify


def verify_math(
    gold: str, response: str, *, extract: str = "auto", finish_reason: FinishReason = "stop"
) -> Score:
    """Judge a response against a gold answer (bare, or with ``$..$`` or ``\\boxed{}`` around it).

    ``extract`` is "auto" or "boxed" (see `llmpipe.algo.extract`). A response that was cut off
    (``finish_reason`` length) before it closed its answer is truncated, whatever number it ends on.
    What can't be decided is an error, never a wrong answer. Runs in this process and has no time
    limit.

    Raises:
        ValueError: ``extract`` is something else.
    """
    found = final_answer(response, extract)
    if finish_reason == "length" and not found.closed:
        return Score(status="truncated", extracted=None, detail="cut off before its answer")
    if found.text is None:
        return Score(status="no_answer", extracted=None, detail=found.why_not)
    if not read(gold).text:
        why = "the gold answer can't be read: it is empty"
        return Score(status="error", extracted=found.text, detail=why)
    if not found.closed and opposed(read(gold).text, sentence_of(response, found.text)):
        return Score(status="wrong", extracted=found.text, detail="opposites, by its sentence")
    equal, detail = same_answer(gold, found.text)
    if equal is None and _is_cut(read(found.text).text) and not unreadable(gold):
        equal = False  # a slip of the model's: as an error it would be left out of its figures
    if equal is None:
        return Score(status="error", extracted=found.text, detail=detail)
    return Score(status="correct" if equal else "wrong", extracted=found.text, detail=detail)


def unreadable(answer: str) -> str | None:
    """Why a gold answer can't be compared with others than itself; None where it can.

    That is another question than whether two answers are equal: a text is itself, read or not.
    """
    gold = read(answer)
    if not gold.text:
        return "the gold answer is empty"
    if gold.too_large:
        return gold.too_large
    try:
        readable = _is_readable(gold)
    except TooLargeError as e:
        return str(e)
    return None if readable else f"the gold answer can't be read: {_short(gold.text)}"


@lru_cache(maxsize=8192)  # a problem's rollouts come together, and many of them agree
def same_answer(gold: str, answer: str) -> tuple[bool | None, str]:
    """Whether two answers are equal, None if that can't be decided; and what decided it."""
    try:
        left, right = read(gold), read(answer)
        # In one order, whichever is the gold one: so is the verdict, where it can't be decided too.
        equal, how = _compare(*sorted((left, right), key=lambda a: (a.text, a.plain)))
    except (TooLargeError, RecursionError) as e:
        return None, f"can't be decided: {e}"
    if how == "same text":
        return equal, f"{how}: {_short(left.text)}"
    return equal, f"{how}: {_short(right.text)} against {_short(left.text)}"


def _is_readable(answer: Answer) -> bool:
    if answer.number or answer.trees or answer.words or answer.choice:
        return True
    return bool(answer.text) and _math_verify.readable(answer.text)


def _compare(left: Answer, right: Answer) -> tuple[bool | None, str]:
    if left.number and right.number:
        return equal_numbers(left.number, right.number), "numbers"
    if left.plain == right.plain:
        return (True, "same text") if left.text else (None, "no text")
    if left.too_large or right.too_large:
        raise TooLargeError(left.too_large or right.too_large)
    if left.choice and right.choice:
        return left.choice[0] == right.choice[0], "choices"
    for one, other in ((left, right), (right, left)):
        if one.choice and one.choice[1] and not other.choice:  # "(B) 12" is 12
            return _compare(read(one.choice[1]), other)
    if left.words or right.words:
        return False, "words"
    if left.trees and right.trees and opposed(left.text, right.text):
        return False, "opposites"
    if _joined_otherwise(left, right):
        return False, "and, or"
    if left.trees and right.trees:
        return _same_trees(left, right), "values"
    return _unlike(left, right)


_JOINTS = re.compile(r"\b(?:and|or)\b|且|或")


def _joined_otherwise(left: Answer, right: Answer) -> bool:
    """x > 0 and y > 0, against x > 0 or y > 0; of one variable both words make a list."""
    joints = [set(_JOINTS.findall(answer.plain)) for answer in (left, right)]
    if not all(joints) or any(len(found) > 1 for found in joints):
        return False
    (one,), (other,) = joints
    if _IS_OR[one] == _IS_OR[other]:
        return False
    trees = (tree for answer in (left, right) for tree in answer.trees)
    return any(
        len(tree.symbols()) > 1 and any(n.op == "rel" for n in tree.walk()) for tree in trees
    )


_IS_OR = {"and": False, "且": False, "or": True, "或": True}


def _unlike(left: Answer, right: Answer) -> tuple[bool | None, str]:
    """Answers that the grammar doesn't have, one or both."""
    if _is_cut(left.text) or _is_cut(right.text):
        return None, "can't be read, its braces don't match"
    known = [_is_readable(left), _is_readable(right)]
    if all(known):
        return _math_verify.equal(left.text, right.text), "math-verify"
    # What can be read isn't what can't; whether two unreadable texts say the same, nobody knows.
    return (False, "can't be read, one of them") if any(known) else (None, "can't be read")


def _is_cut(text: str) -> bool:
    return text.count("{") - text.count("\\{") != text.count("}") - text.count("\\}")


def _same_trees(left: Answer, right: Answer) -> bool:
    too_large: TooLargeError | None = None
    for x in left.trees:
        for y in right.trees:
            try:
                if trees.equal(x, y, free=left.free or right.free):
                    return True
            except UnreadableError:
                continue
            except TooLargeError as e:
                too_large = e
    if too_large:
        raise too_large
    return False


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
