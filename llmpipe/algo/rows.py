r"""What rows of public data sets hold, read without trusting their types.

A row may hold anything: null, a number as text, a list for a string. What a function can't use is
None to it (or an empty list), never an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from llmpipe.algo.extract import find_boxes
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Problem

# Sentences that training sets put after a problem; the task says where the answer goes.
_INSTRUCTION = re.compile(
    r"\s*(?:Let's think step by step and output the final answer within|"
    r"Please reason step by step, and put your final answer within) \\boxed\{\}\.?\s*$"
)
_MATH = re.compile(
    r"\$\$([^$]+)\$\$\.?|\$([^$]+)\$\.?|\\\(((?:(?!\\[()]).)+)\\\)\.?|\\\[((?:(?!\\[\[\]]).)+)\\\]\.?",
    re.DOTALL,
)
# MATH writes some boxes without braces: "\boxed 5" and "\fbox 5".
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s+([^\s{}$.,]+)")


def text(value: Any) -> str | None:
    """Text and finite numbers, stripped; a float that is whole is written as the integer."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = int(value) if value.is_integer() else value
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value).strip() or None
    return None


def texts(value: Any) -> list[str]:
    """The texts in a list, empty ones left out; of a single text, that."""
    values = value if isinstance(value, list | tuple) else [value]
    return [t for v in values if (t := text(v))]


def number(value: Any) -> float | None:
    """A finite number, or text that is one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def share(value: Any, of: float = 1.0) -> float | None:
    """``value / of`` where that is in [0, 1]."""
    found = number(value)
    return found / of if found is not None and 0 <= found <= of else None


def inside(value: Any, *keys: str) -> Any:
    """What is under the keys, one in the other."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def asked(prompt: Any) -> str | None:
    """What the user says in a chat prompt, a list of messages; None unless it is one turn."""
    messages = prompt if isinstance(prompt, list | tuple) else []
    turns = [text(inside(m, "content")) for m in messages if inside(m, "role") == "user"]
    return turns[0] if len(turns) == 1 else None


def bare(answer: Any) -> str | None:
    """An answer without the dollars, the brackets or the box around the whole of it."""
    found = text(answer)
    if found and (math_mode := _MATH.fullmatch(found)):
        found = next(g for g in math_mode.groups() if g is not None).strip()
    if found and found.startswith("\\boxed{") and found.endswith("}"):
        boxes = find_boxes(found)
        if boxes.closed == 1 and boxes.last == found[len("\\boxed{") : -1].strip():
            found = boxes.last
    return found or None


def boxed(solution: Any) -> str | None:
    """The answer in the last boxes of a solution."""
    found = text(solution) or ""
    answer = find_boxes(found).answer
    if answer is None and (unbraced := _BARE_BOX.findall(found)):
        answer = str(unbraced[-1])
    return answer


def domains(value: Any) -> str | None:
    """Paths such as "Mathematics -> Algebra -> Equations" as one subject, the root left out."""
    paths = [t.removeprefix("Mathematics -> ") for t in texts(value)]
    return "; ".join(dict.fromkeys(paths)) or None


def math_level(value: Any) -> tuple[str | None, float | None]:
    """MATH's "Level 1" to "Level 5" (or 1 to 5) and its difficulty ``(level - 1) / 4``."""
    level = (text(value) or "").removeprefix("Level ")
    return (level, (int(level) - 1) / 4) if level in tuple("12345") else (None, None)


def of_set(name: str, source: Any) -> str:
    """The source of a problem that ``name`` took from another set: "name/source"."""
    inner = text(source)
    return f"{name}/{inner}" if inner else name


def math_problem(
    *,
    source: str,
    prompt: Any,
    answer: Any,
    solution: Any = None,
    level: Any = None,
    subject: Any = None,
    difficulty: float | None = None,
    pass_rate: float | None = None,
) -> Problem | Drop:
    """A math problem of a row's values, or that its prompt or its answer is missing.

    Dollars or a box around the answer, and a sentence that says where to put it, are taken off.
    """
    question = _INSTRUCTION.sub("", text(prompt) or "").strip()
    if not question:
        return Drop(reason="empty_prompt", detail=f"{prompt!r:.200}")
    gold = bare(answer)
    if gold is None:
        return Drop(reason="no_answer", detail=f"{answer!r:.200}")
    return Problem.make(
        task="math",
        source=source,
        prompt=question,
        answer=gold,
        solution=text(solution),
        level=text(level),
        subject=text(subject),
        difficulty=difficulty,
        pass_rate=pass_rate,
    )


def math_row(source: str, row: Mapping[str, Any]) -> Problem | Drop:
    """A row of MATH (Hendrycks et al. 2021, arXiv:2103.03874): the answer is the solution's box."""
    answer = boxed(row["solution"])
    if answer is None:
        return Drop(reason="no_final_answer", detail=f"{row['solution']!r}"[-80:])
    level, difficulty = math_level(row["level"])
    return math_problem(
        source=source,
        prompt=row["problem"],
        answer=answer,
        solution=row["solution"],
        level=level,
        subject=row["type"],
        difficulty=difficulty,
    )


def one_answer(answers: Any) -> str | Drop:
    """The only answer in a list of them; several are not said to be all asked for, or any of."""
    found: Sequence[str] = list(dict.fromkeys(texts(answers)))
    if not found:
        return Drop(reason="no_answer", detail=f"{answers!r:.200}")
    if len(found) > 1:
        return Drop(reason="several_answers", detail="; ".join(found)[:200])
    return found[0]
