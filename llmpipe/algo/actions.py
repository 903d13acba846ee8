"""How often a response verifies, reflects and backtracks, by the phrases that say so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["verification", "reflection", "backtracking"]

_PHRASES: dict[Kind, tuple[str, ...]] = {
    "verification": (
        "let me check",
        "let's check",
        "let me verify",
        "let's verify",
        "to verify",
        "double check",
        "double-check",
        "checking again",
        "check this",
        "check if",
        "plug back",
        "substitute back",
        "sanity check",
        "检查一下",
        "验证",
        "核对",
        "检验一下",
        "代回",
    ),
    "reflection": (
        "wait",
        "hmm",
        "let me think again",
        "let me reconsider",
        "let me rethink",
        "think about this again",
        "did i",
        "is that right",
        "is this right",
        "is this correct",
        "that doesn't seem right",
        "am i sure",
        "等等",
        "等一下",
        "再想想",
        "重新考虑",
        "重新思考",
        "不对，",
        "好像不对",
        "是不是",
    ),
    "backtracking": (
        "alternatively",
        "another approach",
        "another way",
        "a different approach",
        "let me try again",
        "let's try again",
        "try another",
        "try a different",
        "start over",
        "go back",
        "going back",
        "i made a mistake",
        "that's wrong",
        "this is wrong",
        "换一种",
        "换个",
        "另一种方法",
        "重新开始",
        "回到前面",
        "退回",
        "我错了",
        "算错了",
    ),
}
_KIND_OF: dict[str, Kind] = {p: kind for kind, phrases in _PHRASES.items() for p in phrases}
_SENTENCE_END = re.compile(r"[.!?;:](?=\s)|[。！？；：\n]")


@dataclass(frozen=True, slots=True)
class ActionRates:
    """Shares of a response's sentences, from 0 to 1; ``any`` is that of sentences with any."""

    verification: float = 0.0
    reflection: float = 0.0
    backtracking: float = 0.0
    any: float = 0.0


_NONE = ActionRates()


def action_rates(response: str) -> ActionRates:
    """The shares of sentences that verify, reflect and backtrack; ``any`` is the action reward.

    A sentence does what one of the phrases in it says, in English or Chinese, whatever the case.
    Sentences that repeat count once, so that saying "wait" over and over pays nothing; and a share,
    unlike a count, does not grow with the length. The thinking counts, too.

    Source: llmpipe's own. STILL-3 (arXiv:2503.04548) rewards complex reasoning actions by the
    phrases that show them; its list and its scale could not be confirmed.
    """
    text = response.lower().replace("’", "'")
    # Looking for a phrase in the whole text is much faster than a pattern of all of them.
    here = tuple(phrase for phrase in _KIND_OF if phrase in text)
    if not here:
        return _NONE
    pattern = _pattern(here)
    sentences = {s.strip() for s in _SENTENCE_END.split(text)} - {""}
    counts: dict[Kind, int] = dict.fromkeys(_PHRASES, 0)
    acting = 0
    for sentence in sentences:
        kinds = {_KIND_OF[phrase] for phrase in pattern.findall(sentence)}
        acting += bool(kinds)
        for kind in kinds:
            counts[kind] += 1
    total = len(sentences)
    return ActionRates(**{k: n / total for k, n in counts.items()}, any=acting / total)


@lru_cache(maxsize=1024)
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Phrases as whole words; Chinese has no spaces to tell words by."""
    return re.compile(
        "|".join(rf"\b{re.escape(p)}\b" if p.isascii() else re.escape(p) for p in phrases)
    )
