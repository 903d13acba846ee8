"""Held-out problems, to be recognised in other texts: whole, inside of them, or their template."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from llmpipe.algo.gaps import MASK, masked
from llmpipe.algo.view import View, is_sign, view
from llmpipe.algo.vocabulary import ASKED

Tier = Literal["same", "embedded", "near", "template"]
TIERS: tuple[Tier, ...] = ("same", "embedded", "near", "template")

_GRAM = 4  # tokens in a row that lead to the problems that have them; shorter ones are only whole
_WORDS = 2  # a template of fewer is no template: "#", "# + #"
_CLOSING = frozenset([".", "?", "!", ",", ";", ":", ")", '"', "'", "}", "]", "*", "#", "|"])
_NEXT = ASKED | {"please", "show", "give", "write", "put", "express", "provide", "let's", "hint"}
_GOES_ON = frozenset(
    """
and or of in to per percent times plus minus mod modulo with where when if for is are was by on at
over from as than then that but so has have equals
""".split()  # noqa: SIM905
)


class Hit(NamedTuple):
    """A text has held-out problem number ``problem`` in it, in the sense of ``tier``."""

    problem: int
    tier: Tier


class HeldOut:
    """An index of held-out problems by their normal forms. Case is no difference here."""

    def __init__(self, forms: Sequence[str], prose: Sequence[bool]) -> None:
        """``prose`` says of each form whether it is one of prose, which may stand inside others."""
        self._forms = [form.casefold() for form in forms]
        self._whole: dict[str, int] = {}
        self._templates: dict[str, int] = {}
        for number, form in enumerate(self._forms):
            self._whole.setdefault(form, number)
            mask = template(view(forms[number])) if prose[number] else ""
            if mask:
                self._templates.setdefault(mask, number)
        self._leads = _leads(
            [form.split() if said else [] for form, said in zip(self._forms, prose, strict=True)]
        )

    def find_whole(self, form: str) -> Hit | None:
        """The problem that a text, given as its normal form, is."""
        number = self._whole.get(form.casefold())
        return None if number is None else Hit(number, "same")

    def find(self, prompt: str, form: str, seen: View) -> Hit | None:
        """What a text of prose, with its normal form and view, has of them; None for nothing.

        Near duplicates are not looked for here.
        """
        whole = self.find_whole(form)
        if whole:
            return whole
        folded = form.casefold()
        tokens = folded.split()
        if not self._leads.keys().isdisjoint(_grams(tokens)):
            for gram in _grams(tokens):
                for number in self._leads.get(gram, ()):
                    if _within(self._forms[number], folded, prompt):
                        return Hit(number, "embedded")
        like = self._templates.get(template(seen))
        return None if like is None else Hit(like, "template")


def template(seen: View) -> str:
    """A problem with its numbers masked; "" where it has none, or hardly a word."""
    tokens = [masked(token) for token in seen.tokens]
    words = sum(not is_sign(token) and token != MASK for token in tokens)
    return " ".join(tokens).casefold() if MASK in tokens and words >= _WORDS else ""


def _grams(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(tokens[i:] for i in range(_GRAM)), strict=False)


def _leads(problems: Sequence[Sequence[str]]) -> dict[tuple[str, ...], list[int]]:
    """Each problem under the one of its grams that the fewest have."""
    grams = [list(_grams(tokens)) for tokens in problems]
    common = Counter(gram for each in grams for gram in set(each))
    leads: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, each in enumerate(grams):
        if each:
            leads[min(each, key=lambda g: (common[g], g))].append(number)
    return dict(leads)


def _within(form: str, text: str, prompt: str) -> bool:
    """Whether a whole problem stands in a text, and doesn't go on there: 3 + 4 in 3 + 4 + 5."""
    padded = f" {text} "
    first, last = form.split(" ", 1)[0], form.rsplit(" ", 1)[-1]
    place = padded.find(f" {form} ")
    while place >= 0:
        before = padded[:place].rsplit(" ", 1)[-1]
        after, then, *_ = [*padded[place + len(form) + 2 :].split(" ", 2), "", ""]
        if not (_symbol(before) and _symbol(first)) and _ends(last, after, then, prompt):
            return True
        place = padded.find(f" {form} ", place + 1)
    return False


def _ends(last: str, after: str, then: str, prompt: str) -> bool:
    """Whether a problem is over with its ``last`` token, by the two that follow."""
    if not after or after in _CLOSING or after in _NEXT:
        return True
    if _is_word(last):
        return False
    # A formula often ends a problem without a full stop: then a new sentence must follow it.
    if after in _GOES_ON:
        return re.search(rf"\b{after.capitalize()}\b", prompt) is not None
    return _is_word(after) or (after == "a" and _is_word(then))


def _is_word(token: str) -> bool:
    return len(token) > 1 and token[0].isalpha()


def _symbol(token: str) -> bool:
    return bool(token) and token not in _CLOSING and not _is_word(token)
