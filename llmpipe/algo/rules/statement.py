"""A problem's text as the rules see it, and the language that tells what it asks for."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from llmpipe.algo.rules.options import Options, find_options

MATH = "¤"
"""What stands in a statement's `words` for each formula."""

_FORMULA = re.compile(
    # A price opens no formula; "$5 x$" does.
    r"\\?\$\d[\d,.]*(?=\s[a-z]{2,}[\s.,;?!]|[,.;?!]\s+[A-Za-z]{2})"
    r"|\\\$|\$\$.*?\$\$|\$[^$]*\$|\\\(.*?\\\)|\\\[.*?\\\]"
    r"|\\begin\{((?:equation|align|gather|multline|cases|array|[pbv]?matrix)\*?)\}.*?\\end\{\1\}",
    re.DOTALL,
)
_GAP = re.compile(r"(\s)\s{2,}")
_SENTENCE_END = re.compile(r"(?<=[.?!;])\s+|(?<=[。？！；])|\n+")


@dataclass(frozen=True)
class Statement:
    """What the rules look at: a problem's prompt and its gold answer."""

    prompt: str
    answer: str

    @functools.cached_property
    def words(self) -> str:
        """The prompt in lower case, with `MATH` for each formula."""
        text = self.prompt
        if "$" in text or "\\" in text:
            text = _FORMULA.sub(MATH, text)
        text = text.replace("’", "'").lower()
        # Long gaps say nothing, and patterns that begin with one would be tried at each of them.
        return _GAP.sub(r"\1", text)

    @functools.cached_property
    def sentences(self) -> list[str]:
        """The sentences of `words`."""
        return [s for s in _SENTENCE_END.split(self.words) if s.strip()]

    @functools.cached_property
    def options(self) -> Options | None:
        """The answers that the prompt offers to choose from, if it does."""
        return find_options(self.prompt, self.answer)

    @functools.cached_property
    def bare_answer(self) -> str:
        """The answer in lower case without the LaTeX and brackets around its words."""
        if len(self.answer) > _LONG:
            return self.answer
        return " ".join(_WRAPPING.sub(" ", self.answer).split()).lower()

    @property
    def has_answer(self) -> bool:
        """Whether there is a gold answer at all, not only a word for its absence."""
        if self.answer.strip() in NO_ANSWER or _NOTHING.fullmatch(self.answer):
            return False
        return not self.bare_answer or self.bare_answer not in NO_ANSWER

    def mentions(self, any_of: Iterable[str]) -> bool:
        """Whether the words have one of these in them: a cheap look before an expensive one."""
        words = self.words
        for text in any_of:  # noqa: SIM110 - twice as fast as any() on a generator
            if text in words:
                return True
        return False


_LONG = 200
_WRAPPING = re.compile(
    r"\\(?:text[a-z]*|mbox|math[a-z]+|boxed)\s*\{|\\[ ,;!]|[\s${}().。*\"'\[\]]+"
)
# Delimiters and wrappers around nothing; {} and () may be a set and a tuple.
_NOTHING = re.compile(r"(?:\s|\$|\\\(|\\\)|\\\[|\\\]|\\(?:boxed|text|mathrm)\s*\{\s*\})+")
NO_ANSWER = frozenset([
    "", "-", "--", "?", "...", "n/a", "na", "nan", "null", "notfound", "not found",
    "not available", "unknown", "tbd", "no answer", "see solution", "see the solution",
    "proof", "proofs", "略", "暂无", "见解析", "证明见解析", "证明略", "证明",
])  # fmt: skip

START = (
    r"(?:(?:^|[\n.,;:!?)\]}*#\"'¤—–。，；：？、）-])\s*|\b(?:and|then|to|or|also|please|you|must|should"
    r"|hence|thus|therefore|finally|first|next|now|rigorously|carefully|otherwise|so|just|simply|by"
    r"|item|directly|formally|algebraically|analytically|geometrically)\s+)"
)
"""Where an order may begin: after a mark or a formula, or after a word that leads up to one."""

ORDER = (
    rf"{START}(?:find|determine|compute|calculate|evaluate|solve|simplify|express|estimate"
    r"|approximate|factor|factori[sz]e|expand|convert|count|identify|list|obtain|state|give|write"
    r"|name|work out|figure out|round|rewrite|use|choose|select|maximi[sz]e|minimi[sz]e"
    r"|differentiate|integrate|classify|decide|reduce|complete|fill|construct|exhibit|add|subtract"
    r"|multiply|divide)\b(?! (?:a|an|another|the) proof)"
)
QUESTION = (
    r"[?？]|\b(?:what|how (?:many|much|long|far|old|often|fast)|which|who|whose)\b"
    r"|多少|几(?![何乎])|什么|哪|是否|求(?!证)|计算|解方程|化简|写出|确定|判断|作出|填空|_{2,}"
)
_ASKS = re.compile(f"{QUESTION}|{ORDER}")


def asks(words: str) -> bool:
    """Whether lower-case words ask for something that an answer can be compared with."""
    return bool(_ASKS.search(words))


_EXCERPT = 60
EDGE = " \n.,;:!?)]}*#\"'¤—–-，。；：？、）"
"""What may stand before the words of an order, as `START` finds it."""


def excerpt(words: str, found: re.Match[str]) -> str:
    """What was found and what follows it, on one line."""
    start = found.end() - len(found[0].lstrip(EDGE))
    return " ".join(words[start : start + _EXCERPT].split())
