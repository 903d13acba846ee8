"""A problem as its near duplicates are looked for: signs and words, sentence by sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from llmpipe.algo.vocabulary import ASKED, CHINESE_NUMBERS, INSTRUCTION, NUMBERS, STOP, STRONG

_TOLD = 8  # words of an instruction among which one may be a strange one


@dataclass(frozen=True)
class View:
    """Sentences of words and signs. A sign starts with a space, which no word does.

    ``signs`` are those of all sentences in a row. Instructions ("show your work") are left out.
    """

    sentences: tuple[tuple[str, ...], ...]

    @cached_property
    def signs(self) -> str:
        return "".join(t for sentence in self.sentences for t in sentence if t[0] == " ")

    @cached_property
    def key(self) -> str:
        """The signs without case, and without those that are words in small letters."""
        return self.signs if self.signs.islower() else _NAMES.sub("", self.signs).casefold()

    @cached_property
    def tokens(self) -> list[str]:
        return [token for sentence in self.sentences for token in sentence]

    @cached_property
    def content(self) -> frozenset[str]:
        """The words that say something of their own."""
        return frozenset(t for t in self.tokens if t not in STOP and not is_sign(t))

    def folded(self) -> View:
        """The same in small letters, where names such as AB are words."""
        return View(
            tuple(
                tuple(t.strip() if _NAMES.fullmatch(t) else t for t in map(str.casefold, s))
                for s in self.sentences
            )
        )


_NAMES = re.compile(r" [A-Za-z]{2,3}(?= |$)")


def is_sign(token: str) -> bool:
    return token[0] == " "


_FRACTION = re.compile(r"\\frac ([^ {]+|\{ [^{}]* \}) ([^ {]+|\{ [^{}]* \})(?= |$)")
_SUFFIX = re.compile(r"(?<=[a-z]{2}) ' (s|t|re|ve|ll|d|m)(?= |$)")
_HYPHEN = re.compile(
    r"(?<=[a-z]{2}) - (?=[a-zA-Z])"
    r"|(?<=[\w)}]) - (?=[a-z]{3})(?!sin|cos|tan|log|sqrt|exp|abs|max|min|mod)"
)
_BOX = re.compile(r"\\boxed(?: \{ (?:\.\.\. )?\})?")
_SIGNS = {
    r"\times": "*", r"\cdot": "*", r"\div": "/", "percent": "%", "plus": "+", "minus": "-",
    "{": "(", "}": ")", "equals": "=", "degrees": "°", "degree": "°", r"\circ": "°",
    "sqrt": r"\sqrt", "half": "1/2",
}  # fmt: skip
_MARKS = frozenset('"`#&@“”„、·《》「」')
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


class _Kinds(dict[str, str]):
    """What each token is, whatever stands around it: "?" where that matters.

    Else a word as it is, a sign with a space before it, "" for what says nothing, "." for the end
    of a sentence. Emptied when it is full.
    """

    def __missing__(self, token: str) -> str:
        if len(self) > 200_000:
            self.clear()
        self[token] = kind = _kind(token)
        return kind


def _kind(token: str) -> str:
    if token in _SIGNS:
        kind = _SIGNS[token]
        return "?" if kind in ("(", ")") else f" {kind}"
    if token in NUMBERS or token in CHINESE_NUMBERS or token in ("多", "(", ")", "a", "I"):
        return "?"
    if token in (".", "?", ";"):
        return "."
    if token in ("!", ":", "'"):
        return "?"
    if token == "," or token in _MARKS:
        return ""
    if _CJK.match(token) or (len(token) > 1 and token[0].isalpha() and not token.isupper()):
        return token
    return f" {token}"


_KINDS = _Kinds()


def view(form: str) -> View:
    """The view of a problem, from its normal form."""
    if "\\" in form:
        form = _FRACTION.sub(r"\1 / \2", form) if "\\frac" in form else form
        form = _BOX.sub("", form) if "\\boxed" in form else form
        form = form.replace(r"^ { \circ }", r"\circ").replace(r"^ \circ", r"\circ")
    if " ' " in form:
        form = _SUFFIX.sub(r"'\1", form)
    if " - " in form:
        form = _HYPHEN.sub(" ", form)
    tokens = form.split()
    kinds = list(map(_KINDS.__getitem__, tokens))
    if "?" in kinds:
        _resolve(tokens, kinds)
    sentences: list[tuple[str, ...]] = []
    start = 0
    for i, kind in enumerate(kinds):
        if kind == ".":
            sentences.append(tuple(filter(None, kinds[start:i])))
            start = i + 1
    sentences.append(tuple(filter(None, kinds[start:])))
    said = tuple(s for s in map(_without_told_end, sentences) if s and not _told(s))
    return View(said or tuple(filter(None, sentences)))


def _without_told_end(sentence: tuple[str, ...]) -> tuple[str, ...]:
    """A formula often ends a sentence without a full stop, and an instruction follows it."""
    end = len(sentence)
    while end and not is_sign(sentence[end - 1]):
        end -= 1
    return sentence[:end] if 0 < end <= len(sentence) - 3 and _told(sentence[end:]) else sentence


_TURNS = frozenset(STRONG) - INSTRUCTION


def _told(sentence: tuple[str, ...]) -> bool:
    """Whether a sentence tells how to answer, and nothing of the problem."""
    if ASKED.isdisjoint(sentence) or any(map(is_sign, sentence)):
        return False
    strange = sum(word not in INSTRUCTION for word in sentence)
    return strange <= len(sentence) // _TOLD and _TURNS.isdisjoint(sentence)


def _resolve(tokens: list[str], kinds: list[str]) -> None:
    """Put a kind in the place of each "?"."""
    end = len(tokens)
    opened: list[tuple[int, int]] = []  # open brackets: place, signs before
    signs = 0
    i = -1
    while (i := i + 1) < end:
        if kinds[i] == "?":
            token = tokens[i]
            before = kinds[i - 1] if i else "."
            after = tokens[i + 1] if i + 1 < end else "."
            if token in NUMBERS:
                i = _number_word(tokens, kinds, i)
            elif token in CHINESE_NUMBERS:
                i = _chinese_number(tokens, kinds, i)
            elif token in ("(", "{"):
                kinds[i] = " ("
                opened.append((i, signs))
            elif token in (")", "}"):
                kinds[i] = " )"
                place, then = opened.pop() if opened else (i, -1)
                if then + 1 == signs:  # only prose in them
                    kinds[i] = kinds[place] = ""
                    signs -= 2
            elif token in ("a", "I"):
                word = len(after) > 1 and after[0].isalpha()
                kinds[i] = "a" if word or after[0].isdigit() else f" {token}"
            elif token == "!":
                kinds[i] = " !" if before[:1] == " " else "."
            elif token == ":":
                ratio = before[1:2].isdigit() and after[0].isdigit()
                kinds[i] = " :" if ratio else "."
            elif token == "多":
                kinds[i], skip = ("多少", 1) if after == "少" else ("多", 0)
                if skip:
                    kinds[i + 1] = ""
            else:  # an apostrophe: f' is a derivative
                kinds[i] = " '" if before[:1] == " " and not before[1:2].isdigit() else ""
        signs += kinds[i][:1] == " "


_NOT_A_NUMBER = frozenset(
    [
        "no",
        "any",
        "each",
        "every",
        "some",
        "this",
        "that",
        "which",
        "other",
        "another",
        "the",
        "only",
    ]
)


_NUMERAL = 40  # words of one number: more make digits that Python won't write


def _number_word(tokens: list[str], kinds: list[str], start: int) -> int:
    """Write a number said in words as its digits; the place of its last word."""
    if tokens[start] == "one":
        before = tokens[start - 1] if start else ""
        after = tokens[start + 1] if start + 1 < len(tokens) else ""
        if before in _NOT_A_NUMBER or after in ("of", "another", "'"):
            kinds[start] = "one"
            return start
    total = part = 0
    stop = start
    i = start
    while i < min(len(tokens), start + _NUMERAL):
        word = tokens[i]
        if word == "and" and i > start and tokens[i - 1] in ("hundred", "thousand"):
            i += 1
            continue
        if word not in NUMBERS or not _goes_on(tokens, start, i):
            break
        value = NUMBERS[word]
        if value == 100:
            part = max(part, 1) * 100
        elif value >= 1000:
            total, part = total + max(part, 1) * value, 0
        else:
            part += value
        stop = i
        i += 1
    for j in range(start, stop + 1):
        kinds[j] = ""
    kinds[stop] = f" {total + part}"
    return stop


def _goes_on(tokens: list[str], start: int, i: int) -> bool:
    """Whether a number word is part of the number before it: twenty five, not five six."""
    if i == start:
        return True
    before = tokens[i - 1] if tokens[i - 1] != "and" else tokens[i - 2]
    value, last = NUMBERS[tokens[i]], NUMBERS[before]
    return value >= 100 or last >= 100 or (20 <= last < 100 and 0 < value < 10)


def _chinese_number(tokens: list[str], kinds: list[str], start: int) -> int:
    """Write a number in Chinese as its digits; 一 alone is no number."""
    stop = start
    total = part = digit = 0
    end = min(len(tokens), start + _NUMERAL)
    while stop < end and tokens[stop] in CHINESE_NUMBERS:
        value = CHINESE_NUMBERS[tokens[stop]]
        if value >= 10_000:
            total, part, digit = (total + part + digit) * value, 0, 0
        elif value >= 10:
            part, digit = part + max(digit, 1) * value, 0
        else:
            digit = 10 * digit + value
        stop += 1
    stop -= 1
    for j in range(start, stop + 1):
        kinds[j] = ""
    alone = start == stop and tokens[start] == "一"
    kinds[stop] = "一" if alone else f" {total + part + digit}"
    return stop
