r"""The form that two texts share when they are the same problem written differently.

LaTeX and plain text are read as one sequence of tokens: numbers, words, commands, marks. What
only changes how a problem looks is left out or has one spelling; every number and operator stays
a token of its own, so that "1 23" and "123" or \sqrt{23} and \sqrt23 stay apart. Where a spelling
is ambiguous ("(1,200)" may be two numbers) the texts are left different. Case is no difference in
words; in symbols (a letter, two or three capitals: AB, up to three letters at a digit or a sign:
2Ab) it is.
"""

from __future__ import annotations

import re
import string
from typing import Any

from llmpipe.algo.characters import plain

_TOKEN = re.compile(
    r"""
    (?P<command> \\[a-zA-Z]+ )
  | (?P<atom> \{ (?:\d+(?:\.\d+)?|[a-zA-Z]) \} )
  | (?P<escape> \\. )
  | (?P<number>
        (?<![\d.,]) [1-9]\d{0,2} (?P<comma>,|\{,\}|\\,) \d{3} (?:(?P=comma)\d{3})*
            (?! \d | (?P=comma)\d ) (?:\.\d+)?
      | \d+ (?:\.\d+)?
      | \.\d+ )
  | (?P<word> [^\W\d_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+ )
  | (?P<tie> (?<=\S)~(?=\S) )
  | (?P<mark> \.\.\. | != | <= | >= | \S )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMA = re.compile(r",|\{,\}|\\,")

# How a token looks, not what it says.
_LOOKS = frozenset([
    r"\left", r"\right", r"\middle", r"\big", r"\Big", r"\bigg", r"\Bigg", r"\bigl", r"\bigr",
    r"\Bigl", r"\Bigr", r"\biggl", r"\biggr", r"\Biggl", r"\Biggr", r"\quad", r"\qquad",
    r"\thinspace", r"\displaystyle", r"\textstyle", r"\limits",
    r"\,", r"\;", r"\:", r"\!", r"\>", "\\ ", "\\\n", r"\(", r"\)", r"\[", r"\]", r"\$", "$",
])  # fmt: skip
_WRAPPERS = frozenset([
    r"\text", r"\textrm", r"\textbf", r"\textit", r"\textnormal", r"\mbox", r"\mathrm",
    r"\mathit", r"\mathbf", r"\operatorname",
])  # fmt: skip
_SPELLING = {
    **dict.fromkeys([r"\dfrac", r"\tfrac", r"\cfrac"], r"\frac"),
    **dict.fromkeys([r"\dbinom", r"\tbinom"], r"\binom"),
    **dict.fromkeys([r"\leq", r"\leqslant", "<="], r"\le"),
    **dict.fromkeys([r"\geq", r"\geqslant", ">="], r"\ge"),
    **dict.fromkeys([r"\ldots", r"\dots", r"\cdots"], "..."),
    r"\ne": r"\neq",
    r"\rightarrow": r"\to",
    r"\lbrace": r"\{",
    r"\rbrace": r"\}",
    **dict.fromkeys([r"\lvert", r"\rvert", r"\vert"], "|"),
    r"\lt": "<",
    r"\gt": ">",
    r"\ast": "*",
    r"\colon": ":",
    r"\degree": r"\circ",
    r"\varnothing": r"\emptyset",
    r"\%": "%",
    r"\#": "#",
    r"\&": "&",
    r"\_": "_",
}
_ARGUMENTS = {r"\frac": 2, r"\binom": 2, r"\sqrt": 1}
_OPENING = {"(", "[", r"\{"}
_CLOSING = {")", "]", r"\}"}


def normal_form(text: str) -> str:
    """The tokens of ``text`` in their one spelling, with a space between each two.

    White space is no token, so the text is read a chunk between two spaces at a time. Most chunks
    mean the same wherever they stand, and are read once.
    """
    text = _prepared(text)
    chunks = text.split()
    if "," in text and _has_list(text):
        form = " ".join(_in_context(chunks, listing=True))
    else:
        try:
            form = " ".join(map(_FORMS.__getitem__, chunks))
        except TypeError:  # None among them
            form = " ".join(_in_context(chunks, listing=False))
    form = form.strip()
    if "  " in form:  # chunks of looks only
        form = " ".join(form.split())
    end = len(form)
    while form.endswith(_ENDINGS, 0, end):
        end -= 2
    return form[:end]


_ENDINGS = (" .", " ?", " :", " ,", " ;")


def _has_list(text: str) -> bool:
    """Whether a comma stands before three digits after a bracket, which decides what it means."""
    bracket = _BRACKET.search(text)
    return bracket is not None and _THOUSANDS.search(text, bracket.end()) is not None


_BRACKET = re.compile(r"[(\[{]")
_THOUSANDS = re.compile(r"\d,\d{3}")


def _prepared(text: str) -> str:
    """The text with what only its surroundings decide made plain: articles, braces in prose."""
    if not text.isascii():
        text = plain(text)
    if "A" in text:
        text = _with_small_articles(text)
    if "{" in text and _SET.search(text):
        text = _with_escaped_sets(text)
    return text


# "A train" at the beginning of a sentence, but neither "A is a set" nor anything in a formula.
_ARTICLE = re.compile(
    r"""A(?=\s+(?!(?i:is|are|was|and|or|has|lies|be|to|in|of|on)\b)"""
    r"(?:[a-z]{2}|[A-Z][a-z]|[A-Z]{4}))"
)


_STOPS = (".", "?", "!", ":", ";")


def _with_small_articles(text: str) -> str:
    """The article at the beginning of a sentence in small letters, as it is elsewhere."""
    parts: list[str] = []
    end = 0
    for match in _ARTICLE.finditer(text):  # begins with a letter, which is quick to look for
        before = text[end : match.start()]
        ahead = before.rstrip()
        if len(ahead) == len(before) and before:
            continue  # the end of a word
        if ahead[-1:] in ('"', "'", ")"):
            starts = ahead[-2:-1] in _STOPS
        else:
            starts = ahead[-1:] in _STOPS or not (ahead or end)
        if starts:
            parts += (before, "a")
            end = match.end()
    return "".join(parts) + text[end:] if parts else text


# {a_n}, {a_{n}} and {1, 2}
_BRACED = r"\{(\s*[a-zA-Z]_(?:\w|\{\w+\})\s*|[^{}\\$,]+,[^{}\\$]+)\}"
_SET = re.compile(_BRACED)
_SET_OR_MATH = re.compile(
    rf"(?P<math>\$\$?|\\[()\[\]])|(?P<taken>\\[a-zA-Z]+\s*\{{|\\.|[\^_}}]\s*\{{|[a-zA-Z0-9]\{{)|{_BRACED}"
)


def _with_escaped_sets(text: str) -> str:
    r"""Braces of sets and sequences outside of formulas as \{ and \}; inside they don't show."""
    inside = False

    def written(match: re.Match[str]) -> str:
        nonlocal inside
        whole = match.group()
        if match["math"]:
            inside = not inside
        elif not match["taken"] and not inside:
            return rf"\{{{whole[1:-1]}\}}"
        return whole

    return _SET_OR_MATH.sub(written, text)


class _Forms(dict[str, Any]):
    """The form of each chunk (a str) that has one of its own, None for those that have none.

    Emptied when it is full: in real text few chunks come again and again, most of the rest once.
    """

    def __missing__(self, chunk: str) -> Any:
        scan = _Scan()
        scan.feed(chunk)
        form = " ".join(scan.out) if scan.neutral else None
        if len(self) >= _MOST_FORMS:
            self.clear()
        if len(chunk) <= _LONGEST_CHUNK:
            self[chunk] = form
        return form


_MOST_FORMS = 200_000
_LONGEST_CHUNK = 200
_FORMS = _Forms()


def _in_context(chunks: list[str], *, listing: bool) -> list[str]:
    """The forms of all chunks, where one may open what another closes.

    ``listing`` is whether open brackets count as such.
    """
    forms: list[str] = []
    scan: _Scan | None = None
    for chunk in chunks:
        form = _FORMS[chunk] if scan is None else None
        if form is not None and not (listing and _BRACKET.search(chunk)):
            forms.append(form)
            continue
        scan = scan or _Scan()
        scan.feed(chunk)
        if scan.neutral and not (listing and scan.lists):
            forms.append(" ".join(scan.out))
            scan = None
    if scan:
        forms.append(" ".join(scan.out))
    return forms


class _Scan:
    """One pass over the tokens.

    ``arguments`` is how many arguments the last command still takes, ``script`` whether ``^`` or
    ``_`` has just been read, ``lists`` how many brackets are open in which a comma may part two
    numbers. ``groups`` holds the open braces: kind, place in ``out``, arguments owed after it.
    """

    def __init__(self) -> None:
        self.out: list[str] = []
        self.arguments = 0
        self.script = False
        self.wrapper = False
        self.lists = 0
        self.groups: list[tuple[str, int, int]] = []

    @property
    def neutral(self) -> bool:
        """Whether what comes next is read as at the start of a text, but for open brackets."""
        return not (self.arguments or self.script or self.wrapper or self.groups)

    def feed(self, chunk: str) -> None:
        """Read text up to the next white space."""
        # A backslash at its end belongs with that space.
        for match in _TOKEN.finditer(chunk + " " if chunk.endswith("\\") else chunk):
            token = match.group()
            if token in _FREE and not (self.arguments or self.script or self.wrapper):
                self.out.append(_FREE[token])
            else:
                self._take(match, token)

    def _take(self, match: re.Match[str], token: str) -> None:
        kind = match.lastgroup
        if kind == "word":
            self.out.append(_folded_at(match, token))
            self._spend(len(token))
        elif kind == "number":
            self._number(token, match.group("comma"))
        elif kind == "atom":
            self._atom(token)
        elif token == "{":
            self._open()
        elif token == "}":
            self._close(match)
        elif token in _WRAPPERS:
            self.wrapper = True
        elif kind != "tie":
            self._mark(match, token)

    def _spend(self, arguments: int) -> None:
        self.arguments = max(0, self.arguments - arguments)
        self.script = self.wrapper = False

    def _atom(self, token: str) -> None:
        """A number or a letter in braces, in one step."""
        content = _folded(token[1:-1])
        if self.arguments or self.script or self.wrapper:
            self.out.append(content)
        else:
            self.out += ["{", content, "}"]
        self._spend(1)

    def _number(self, token: str, comma: str | None) -> None:
        if comma == "," and self.lists:
            self.out += re.findall(r",|[\d.]+", token)
        else:
            digits = _COMMA.sub("", token) if comma else token
            # LaTeX takes one digit an argument: \frac12 is \frac{1}{2}, \sqrt23 is \sqrt{2}3.
            single, rest = digits[: self.arguments], digits[self.arguments :]
            self.out += [*single, rest] if rest else [*single]
        self._spend(len(token))

    def _open(self) -> None:
        argument = self.arguments > 0 or self.script
        kind = "argument" if argument else "wrapper" if self.wrapper else "plain"
        owed = max(0, self.arguments - 1)
        if kind != "wrapper":
            self.out.append("{")
        self.lists += kind == "plain"
        self.groups.append((kind, len(self.out), owed))
        self._spend(self.arguments)

    def _close(self, match: re.Match[str]) -> None:
        if not self.groups:
            self.out.append("}")
            self._spend(1)
            return
        kind, start, owed = self.groups.pop()
        self.lists -= kind == "plain"
        size = len(self.out) - start
        if kind == "argument" and size == 1 and _is_atom(self.out[start]):
            del self.out[start - 1]
        elif kind != "wrapper":
            self.out.append("}")
        elif size > 1 and match.string.startswith(("^", "_"), match.end()):
            self.out.insert(start, "{")
            self.out.append("}")
        self._spend(self.arguments)
        self.arguments = owed

    def _mark(self, match: re.Match[str], token: str) -> None:
        if token in _LOOKS or (token == "." and _is_empty_delimiter(match)):
            return
        spelling = _SPELLING.get(token, token)
        self.out.append(spelling)
        self._spend(1)
        if spelling in _ARGUMENTS:
            self.arguments = _ARGUMENTS[spelling]
        elif spelling in ("^", "_"):
            self.script = True
        elif spelling in _OPENING:
            self.lists += 1
        elif spelling in _CLOSING:
            self.lists = max(0, self.lists - 1)


# What is written the same whatever stands around it, unless it is an argument.
_FREE = {c: c for c in "+-*/=<>,;:?'|"}
_FREE |= {str(n): str(n) for n in range(1000)}
_FREE |= {c: c for c in string.ascii_letters}


def _folded(word: str) -> str:
    """The word without its case, unless that may mean something: A, AB and ABC are no words."""
    if len(word) < 4 and word.isupper():
        return word
    return word.casefold()


def _folded_at(match: re.Match[str], word: str) -> str:
    """`_folded`, but for a short word that is part of a formula: 2Ab is not 2aB."""
    if 1 < len(word) < 4 and not word.islower():
        text = match.string
        if (
            text[match.start() - 1 : match.start()] in _FORMULA
            or text[match.end() : match.end() + 1] in _AFTER
        ):
            return word
    return _folded(word)


_FORMULA = frozenset("0123456789$+*=<>^_")
_AFTER = frozenset("$+*=<>^_")


def _is_empty_delimiter(stop: re.Match[str]) -> bool:
    r"""Whether a full stop belongs to \left. or \right."""
    return stop.string.endswith((r"\left", r"\right"), 0, stop.start())


def _is_atom(token: str) -> bool:
    """Whether braces around ``token`` make no difference: a number, a letter, a command."""
    if token[0] == "\\":
        return token[1:].isalpha()
    return token[0].isdigit() or (len(token) == 1 and token.isalpha())
