"""The rule on problems that ask for several things."""

from __future__ import annotations

import re

from llmpipe.algo.rules.answers import is_value, split_answer
from llmpipe.algo.rules.prose import PROVE, TELL
from llmpipe.algo.rules.statement import ORDER, QUESTION, Statement, asks, excerpt

_LINE = r"(?:^|\n)[\s*#-]{0,20}"
_ITEMS = tuple(
    re.compile(pattern)
    for pattern in (
        r"[(（]\s*([a-h])\s*[)）]",
        r"[(（]\s*([1-9])\s*[)）]",
        r"[(（]\s*(i{1,3}|iv|v|[ⅰⅱⅲⅳ])\s*[)）]",
        rf"{_LINE}([a-h])[.)、．]\s*",
        rf"{_LINE}([1-9])[.)、．](?!\d)\s*",
        rf"{_LINE}(i{{1,3}}|iv|v)[.)、．]\s*",
        r"([①②③④⑤])",
        r"(?:^|[\n.?]\s*)(?:part|question|task) \(?([a-d1-4])\)?[:.)]?\s",
        r"(?:^|(?<=[\s.?;:]))([a-h])\)\s",
        r"(?:^|(?<=[\s.?;:]))([1-9])\)\s",
        r"(?:^|(?<=[.?;:]\s))([a-h])\.\s",
        r"[(（]\s*([一二三四五])\s*[)）]",
        r"第([一二三四五1-5])(?:小?[问题])\s*[:：,，)）]",
    )
)
# What the second item of a list has: a cheap look before nine expensive ones.
_SECOND = (
    "b)", "2)", "ii)", "ⅱ)", "b）", "2）", "ii）", "ⅱ）", "②", "part b", "part 2", "part (",
    "b )", "2 )", "ii )", "ⅱ )", "b ）", "2 ）", "ii ）", "ⅱ ）",
    "question 2", "question b", "task 2", "task b", "? b. ", ". b. ", "; b. ",
    "二）", "二)", "第二", "第2",
)  # fmt: skip
_SECOND_LINE = ("b.", "2.", "ii.", "b、", "2、", "2．")
_RANKS = {
    **{letter: i for i, letter in enumerate("abcdefgh", 1)},
    **{digit: i for i, digit in enumerate("123456789", 1)},
    **{digit: i for i, digit in enumerate("一二三四五", 1)},
    **{digit: i for i, digit in enumerate("①②③④⑤", 1)},
    **{digit: i for i, digit in enumerate("ⅰⅱⅲⅳ", 1)},
    **{digit: i for i, digit in enumerate(("i", "ii", "iii", "iv", "v"), 1)},
}
_BULLET = re.compile(r"\\item\b(?:\s*\[[^\]]*\])?")
_TASK = re.compile(f"{QUESTION}|{ORDER}|{PROVE}|{TELL}|讨论|指出|比较|估计(?![值量])")
_EACH = re.compile(
    r"\b(?:each|the following|these|below)\b[^.?]{0,40}[.:]?\s*$"
    r"|^\s*\w+(?: \w+)?:\s*$|(?:下列|以下|各)[^。？]{0,15}[:：。]?\s*$"
)
# "Find (a) the mean and (b) the median", but not "find (1) + (2)".
_ORDERED = re.compile(
    r"(?:^|[\s,，])(?:find|determine|compute|calculate|evaluate|state|求|计算)\s*[:：]?\s*$"
)
_NAMED = re.compile(r"^\s*(?:the|its|their|how|an?) [a-z]{2,}|^\s*[\u4e00-\u9fff]{2,}")
_NOT_EACH = re.compile(
    r"satisf|condition|propert|such that|\bhold|\btrue|\bif\b|\bwhere\b|\bwith\b|system|\brule|step"
    r"|operation|\bmove|given|方程组|条件|满足|命题|结论|说法"
)
# What players and machines are told to do is no task of the reader's.
_TOLD = re.compile(
    r"\b(?:operations?|moves?|rules?|procedures?|actions?)\b[^.?]{0,40}[.:]?\s*$"
    r"|(?:操作|规则)[^。？]{0,15}[:：。]?\s*$"
)
_OWN_QUESTION = re.compile(
    r"(?:what (?:is|are|was|were)"
    r"(?! (?:(?:the|your) )?(?:final )?(?:answer|total|result|value|it)\?)"
    r"|how (?:many|much|long|far|old|tall|wide|fast|big|heavy))\b"
    r"[^?？]*\?"
)
_ALSO = re.compile(
    r"\b(?:also|additionally|furthermore|in addition|moreover),? (?:also )?"
    r"(?:find|determine|compute|calculate|evaluate|state|what|how many)\b"
    r"|并(?:求|计算|写出|指出)(?!证)|再求"
)
_ALSO_WORDS = ("also", "additionally", "furthermore", "in addition", "moreover", "并", "再求")


def multi_question(statement: Statement) -> str | None:
    """It has several questions with an answer each, so that one gold can't judge them.

    The items of a list count where two of them ask or order something: conditions, intervals and
    "(a) and (b)" don't.
    """
    words = statement.words
    if statement.mentions(_SECOND) or ("\n" in words and statement.mentions(_SECOND_LINE)):
        for items in _ITEMS:
            if found := _several(*_list(words, list(items.finditer(words)))):
                return found
    if "\\item" in words:
        bullets = list(_BULLET.finditer(words))
        if len(bullets) > 1 and (found := _several(*_cut(words, bullets))):
            return found
    if statement.mentions(_ALSO_WORDS):
        also = _ALSO.search(words)
        if also and asks(words[: also.start()]):
            return excerpt(words, also)
    if words.count("?") + words.count("？") > 1:
        questions = sum(s.rstrip().endswith(("?", "？")) for s in statement.sentences)
        if questions > 1 and len(split_answer(statement.answer)) == questions:
            return f"{questions} questions, {questions} answers"
        last = [s for s in statement.sentences[-2:] if _OWN_QUESTION.fullmatch(s.strip())]
        if len(last) == 2 and is_value(statement.answer):
            return "2 questions in a row"
    return None


def _list(words: str, matches: list[re.Match[str]]) -> tuple[str, list[str]]:
    """The text before the first run of items a, b, ... and the items' own texts."""
    run: list[re.Match[str]] = []
    for match in matches:
        rank = _RANKS[match[1]]
        if rank == 1 and len(run) < 2:
            run = [match]
        elif run and rank == len(run) + 1:
            run.append(match)
    return _cut(words, run) if len(run) > 1 else ("", [])


def _cut(words: str, items: list[re.Match[str]]) -> tuple[str, list[str]]:
    ends = [m.start() for m in items[1:]] + [len(words)]
    texts = [words[m.end() : end] for m, end in zip(items, ends, strict=True)]
    return words[: items[0].start()], texts


def _several(stem: str, texts: list[str]) -> str | None:
    last = re.split(r"[.?!;\n。？！；]\s+", stem.strip())[-1]
    tasks = sum(bool(_TASK.search(t)) for t in texts)
    if tasks > 1 and (not _TOLD.search(last) or sum("?" in t for t in texts) > 1):
        return f"{tasks} sub-questions"
    if texts and not tasks and asks(last) and _EACH.search(last) and not _NOT_EACH.search(last):
        return f"{len(texts)} parts of one question"
    if len(texts) > 1 and _ORDERED.search(last) and all(_NAMED.search(t) for t in texts):
        return f"{len(texts)} things to find"
    return None
