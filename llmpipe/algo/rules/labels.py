"""Options that only a gold answer naming one of them tells from other lists: ``A 4``, ``甲. 4``."""

from __future__ import annotations

import re

from llmpipe.algo.rules.options import ORDERS, letter_of, needs_options

_LETTERS = "ABCDEFGH"
_ROMANS = ("i", "ii", "iii", "iv", "v", "vi")
_STYLES = (
    (re.compile(r"(?<![A-Z\\])([A-H])[.．、:：)）]"), tuple(_LETTERS), 4),  # A.-1B.0C.1D.2
    (re.compile(r"^[ \t*#-]*([A-H])[ \t]+(?=\S)", re.MULTILINE), tuple(_LETTERS), 3),
    (re.compile(r"(?<![\w}^\\])[{<]\s*([A-H])\s*[}>]"), tuple(_LETTERS), 3),
    (re.compile(r"[(（]?([甲乙丙丁戊])(?:[)）]|[.．])"), tuple("甲乙丙丁戊"), 3),
    (re.compile(r"[(（]\s*([1-6])\s*[)）]"), tuple("123456"), 3),
    (re.compile("([①②③④⑤⑥])"), tuple("①②③④⑤⑥"), 3),
    (re.compile(r"[(（]\s*(iii|ii|iv|vi|v|i)\s*[)）]"), _ROMANS, 3),
)
_BARE = re.compile(
    r"[\s$]*(?:\\text\s*\{)?([(（]?)\s*([a-z]+|\d|[^\W\d_]|[①-⑥])\s*[)）]?[\s$}.。]*"
)
_COUNTS = re.compile(r"how many|number of|几个|个数|多少", re.IGNORECASE)
_LONGEST = 40


def named_label(prompt: str, answer: str) -> str | None:
    """The labels of at least three items in a row, one of which is the answer, as a detail.

    An item or a text behind them that asks something makes it a list of another kind. A bare
    number counts as a label only where the question is about its options and counts nothing.
    """
    if len(answer) > _LONGEST:
        return None
    for pattern, labels, least in _STYLES:
        gold = _gold(answer, labels)
        if not gold:
            continue
        run: list[re.Match[str]] = []
        for match in pattern.finditer(prompt):
            if match[1] == labels[0] and len(run) < least:
                run = [match]
            elif 0 < len(run) < len(labels) and match[1] == labels[len(run)]:
                run.append(match)
        if len(run) < least or not set(gold) <= set(labels[: len(run)]):
            continue
        if ORDERS.search(prompt, run[0].end()) or not all(_texts(prompt, run)):
            continue
        stem = prompt[: run[0].start()]
        if answer.strip(" $.").isdigit() and (
            not needs_options(stem)
            or _COUNTS.search(stem)
            or any(gold[0] == text for text in _texts(prompt, run))
        ):
            continue
        return f"options {run[0][1]} to {run[-1][1]}, the answer is {', '.join(gold)}"
    return None


def _gold(answer: str, labels: tuple[str, ...]) -> tuple[str, ...]:
    if labels[0] == "A":
        return tuple(letter_of(answer, _LETTERS) or "")
    match = _BARE.fullmatch(answer)
    if match is None or match[2] not in labels:
        return ()
    if match[2] in ("i", "v") and not match[1]:  # the imaginary unit, a variable
        return ()
    return (match[2],)


def _texts(prompt: str, run: list[re.Match[str]]) -> list[str]:
    ends = [m.start() for m in run[1:]] + [len(prompt)]
    return [
        prompt[m.end() : end].strip(" \n$,;.，；。、") for m, end in zip(run, ends, strict=True)
    ]
