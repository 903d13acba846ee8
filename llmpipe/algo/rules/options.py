r"""Lists of answers to choose from: ``(A) 3 (B) 4``, ``A. 3``, ``\textbf{(A)}\ 3``, ``(F) 3``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_NEXT = dict(zip("ABCDEFGHIJ", "BCDEFGHIJK", strict=True))
_WRAPPER = r"\\(?:text[a-z]*|mbox|hbox|math[a-z]+|bf|rm|sf|it|large|Large|boxed)(?![a-z])"

# A letter in brackets may stand anywhere; one with a stop only where an item can begin.
_PAREN = re.compile(rf"[(（\[]\s*(?:{_WRAPPER}\s*\{{?\s*)?([A-Ka-h])\s*\}}?\s*[)）\]]")
_STOP = re.compile(
    r"(?:^|(?<=[\s\[{*$;,'\"。，；？?）)~>|-]))([A-Ka-h])\}?\s?[.)．、:：）](?:\*\*)?\}?"
)
_HINT = re.compile(r"[BGb]\s*\}?\s?[.)．、:：）\]]")

_STEM_END = re.compile(
    r"(?:[?:.;,=)\]}_$。？：；，）>~*-]|\\\\|\b(?:is|are|be|equals?|to|by|of|than|in|was|were|for|has"
    r"|have|at|as|if|when|approximately|about|options|choices|answers?|following)|[是为有等于])\s*$",
    re.IGNORECASE,
)
# Where the last option ends and other text begins: always, or where no other option has the like.
_BREAK = re.compile(
    r"(?<=\S)\s{0,9}(?:\n\s{0,9}\n|(?=\[asy\]|\\begin\{(?:tikzpicture|asy|picture)\}|<svg|<image|!\[))"
)
_SOFT_BREAKS = (
    re.compile(r"(?<=\S)\n(?=\s{0,99}[^a-z\s])"),
    re.compile(
        r"(?<=\S)\s{0,9}(?=[(（\[]?\s?(?:\b(?:note|hint|remark)\b|注[:：意]))", re.IGNORECASE
    ),
    re.compile(r"(?<=[.!?])\s+(?=[A-Z(\[$\\])|(?<=[。；])\s*(?=\S)"),
    re.compile(r"(?<=\S) (?=[A-Z][a-z]* [a-z]{2,})"),
    re.compile(r"(?<=\S) (?=(?:where|if|given|when|assuming|provided)\b)"),
)
_CLOSING = re.compile(r"\s*\\end\{(?:enumerate|itemize|tasks|choices)\}")
# What stands between a question and its first option.
_LEAD = re.compile(
    rf"(?:[\s$*\-\[\]{{'\"~&|>,;#]|{_WRAPPER}"
    r"|\\(?:q?quad|hspace\*?\{[^}]*\}|item|newline|par|[ ,;!:]|\\)"
    r"|\\begin\{(?:enumerate|itemize|tasks|choices)\}(?:\[[^\]]*\]|\([^)]*\))?"
    r"|[(（]\s*(?:\$?\s*\\q?quad\s*\$?|[\s_]*)[)）]"
    r"|(?:answer )?(?:options?|choices)(?: are)?\s*:?|选项\s*[:：]?)+$",
    re.IGNORECASE,
)
_LONGEST_LEAD = 100  # characters
_MOST_RUNS = 50  # looked at from the end: each costs a look at all that follows
_SET = re.compile(rf"{_WRAPPER}|\\[ ,;!\\]|\\q?quad(?![a-z])|\\item(?![a-z])")
_EDGE = " \n\t\r${}~*'\",;:.[]-"
# The first item after a break, or in brackets: no name of a thing in the sentence before.
_FIRST = re.compile(
    r"[^A-Za-z\n]*(?:\n|[(（]|A\)|['\"\[]|(?:[a-z ]*(?:options|choices)|选项))", re.IGNORECASE
)
_NO_CONTENT = frozenset(["", "and", "or", "and/or", "to", "with", "和", "与", "或", "及"])
_LIST = re.compile(
    r"\\begin\{(?:choices|oneparchoices)\}"
    r"|\\begin\{(?:enumerate|tasks)\}\s*[\[(][^\])]*(?:\\Alph|\(?A[.)])"
)


@dataclass(frozen=True)
class Options:
    """Answers that a prompt offers: their letters, their texts, and the list's span in it."""

    letters: str
    texts: Sequence[str]
    start: int
    end: int

    def asked_about(self, prompt: str) -> bool:
        """Whether the question, before or behind the list, can't be answered without it."""
        return needs_options(prompt[: self.start]) or bool(_CHOOSE.search(prompt, self.end))


_CHOOSE = re.compile(
    r"\b(?:choose|pick|select|circle|which)\b[^.?!]{0,40}\b(?:above|options?|choices?|letter"
    r"|correct|right|these|following)\b|正确的是|选出|选择",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Marker:
    letter: str
    start: int
    end: int


def find_options(prompt: str, answer: str) -> Options | None:
    """The last list of at least three options in a row (two where the answer is one's letter)."""
    if not _HINT.search(prompt):
        if marked := _LIST.search(prompt):
            return Options("", (), marked.start(), len(prompt))
        return None
    for style in ("paren", "stop"):
        markers = list(_markers(prompt, style))
        for case in (str.islower, str.isupper):
            for run in list(_runs([m for m in markers if case(m.letter)]))[:-_MOST_RUNS:-1]:
                if style == "paren" and _are_arguments(prompt, run):
                    continue
                found = _options(prompt, run)
                if found and _offers(found, prompt, answer, prompt[run[-1].end :]):
                    return found
    return None


# The name before an argument: f(a), \tau (b), P(C); no wrapper, and no space before an option.
_NAME = re.compile(
    rf"(?:(?<![A-Za-z\\])[A-Za-z]'*|(?!{_WRAPPER}|\\(?:q?quad|item|newline|par|[lc]?dots)(?![a-z]))"
    r"\\[A-Za-z]+\s?)$"
)
_LONGEST_NAME = 20


def _are_arguments(prompt: str, run: list[_Marker]) -> bool:
    """Whether all the letters are what functions are taken of, and no labels."""
    return all(_NAME.search(prompt[max(0, m.start - _LONGEST_NAME) : m.start]) for m in run)


def _markers(prompt: str, style: str) -> Iterator[_Marker]:
    pattern = _PAREN if style == "paren" else _STOP
    for match in pattern.finditer(prompt):
        yield _Marker(match[1], match.start(), match.end())


def _runs(markers: list[_Marker]) -> Iterator[list[_Marker]]:
    """Runs of letters in their order, from A, or as in the ACT from F (where I is left out)."""
    for i, first in enumerate(markers):
        if first.letter.upper() not in "AF":
            continue
        run = [first]
        for marker in markers[i + 1 :]:
            wanted = _NEXT.get(run[-1].letter.upper(), "")
            letter = marker.letter.upper()
            if letter == wanted or (run[-1].letter == "H" and letter == "J"):
                run.append(marker)
            elif letter == first.letter.upper():
                break
        if len(run) >= 2:
            yield run


def _options(prompt: str, run: list[_Marker]) -> Options | None:
    ends = [m.start for m in run[1:]] + [len(prompt)]
    texts = [prompt[m.end : end] for m, end in zip(run, ends, strict=True)]
    length = _last_length(prompt[: run[-1].end].count("$"), texts)
    end = run[-1].end + length
    texts[-1] = texts[-1][:length]
    if closing := _CLOSING.match(prompt, end):
        end = closing.end()
    texts = [_SET.sub(" ", t).strip(_EDGE) for t in texts]
    if any(t.lower() in _NO_CONTENT for t in texts[:-1]) and not all(t == "" for t in texts):
        return None
    lead = _LEAD.search(prompt, max(0, run[0].start - _LONGEST_LEAD), run[0].start)
    start = lead.start() if lead else run[0].start
    return Options("".join(m.letter for m in run), texts, start, end)


def _starts_item(prompt: str, found: Options) -> bool:
    """Whether a list may begin here, and "A:" is no name as in "Plan A: 5 dollars"."""
    lead = _FIRST.match(prompt, found.start)
    return bool(lead) or bool(_STEM_END.search(prompt, max(0, found.start - 20), found.start + 1))


def _last_length(dollars: int, texts: list[str]) -> int:
    """How much of the last text is the option, the rest being no part of the list."""
    *others, last = texts
    others = [text.strip() for text in others]
    ends = [last.find("\n\n")]  # with nothing before it, it is the gap before the option
    for pattern in (_BREAK, *_SOFT_BREAKS):
        if pattern is _BREAK or not any(pattern.search(text) for text in others):
            ends += [m.start() for m in pattern.finditer(last)]
    longest = 2 * max(len(text) for text in others) + _SLACK
    for end in sorted(e for e in ends if e >= 0):
        inside = (dollars + last.count("$", 0, end)) % 2  # of a formula
        if inside or not last[:end].strip(_EDGE) or not _CONTENT.search(last, end):
            continue
        if end <= longest or last.startswith("\n\n", end):
            return end
    return len(last)


_SLACK = 20  # characters
_CONTENT = re.compile(r"\w")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(?:/(\d+))?(?:\\?[%°a-z^]*)")
_AROUND = re.compile(rf"{_WRAPPER}|\\[ ,;!]|,(?=\d{{3}})|[\s${{}}()*]")
_FRACTION = re.compile(r"\\[dt]?frac\{(\d+)\}\{(\d+)\}")
_CLAIM = re.compile(r"[<>=≤≥]|\\(?:le|ge|ne)|[A-Za-z]{2,} [a-z]{2,}")
_FIGURES = re.compile(r"\d+(?:\.\d+)?")


def _number(text: str) -> float | None:
    bare = _AROUND.sub("", _FRACTION.sub(r"\1/\2", text)).rstrip(".")
    match = _NUMBER.fullmatch(bare)
    if match is None or (match[2] and not int(match[2])):
        return None
    return float(match[1]) / float(match[2] or 1)


def _others(texts: Sequence[str], answer: str) -> bool:
    """Whether a number for an answer is none of the numbers, or in none of the claims, listed."""
    gold = _number(answer)
    if gold is None:
        return False
    numbers = [_number(text) for text in texts]
    if all(n is not None and abs(n - gold) > 0.01 * abs(gold) for n in numbers):
        return True
    claims = sum(bool(_CLAIM.search(text)) for text in texts)
    figures = _FIGURES.findall(" ".join(texts))
    return claims == len(texts) and not any(float(f) == abs(gold) for f in figures)


ORDERS = re.compile(
    r"[?？]|\b(?:find|prove|show that|determine|compute|calculate|evaluate|how many|what is"
    r"|explain)\b|求|证明|计算",
    re.IGNORECASE,
)
_EACH = re.compile(r"\beach of\b[^.?]*$|各[^。？]*$", re.IGNORECASE)


def _offers(found: Options, prompt: str, answer: str, last: str) -> bool:
    """Whether the items are answers, not sub-questions, statements or names."""
    if letter_of(answer, found.letters) or _same(answer) in map(_same, found.texts):
        return True
    if not needs_options(prompt[: found.start]) and _others(found.texts, answer):
        return False
    if len(found.letters) < 3 or not _starts_item(prompt, found):
        return False
    if _EACH.search(prompt, 0, found.start):
        return False
    last = last.lstrip().split("\n\n")[0]  # with what follows it: "... C) three. How many?"
    ordered = sum(bool(ORDERS.search(t)) for t in (*found.texts[:-1], last))
    if found.letters.islower():
        return not ordered and needs_options(prompt[: found.start])
    return ordered < 2 and not ORDERS.search(last)


def _same(text: str) -> str:
    return _SHELL.sub("", text).replace("'", "").replace(",", "").casefold()


_LETTER = re.compile(
    r"(?:the )?(?:(?:correct )?(?:answer|option|choice)|选|答案)?(?: is)?[\s:：${(（*\[]*"
    rf"(?:{_WRAPPER}\s*\{{?[\s(（]*)*"
    r"([A-Ka-h])[\s)）}\]*]*(?:$|[.．、:：$]|(?<=[)}）])|\\)",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[A-H](?:(?:[\s,，、;]|and)*[A-H])+")
_SHELL = re.compile(rf"{_WRAPPER}|\\[ ,;!]|[\s${{}}()（）\[\].*~]")


def letter_of(answer: str, letters: str) -> str | None:
    """The letter (or letters) that an answer names, of those given: ``(B)``, ``B. 5``, ``A, C``."""
    answer = answer.strip()
    if not answer or len(answer) > 200:
        return None
    upper = letters.upper()
    match = _LETTER.match(answer)
    if match and match[1].upper() in upper and (match[1].isupper() or letters.islower()):
        return match[1]
    several = _LETTERS.fullmatch(_SHELL.sub("", answer))
    if several:
        named = re.findall("[A-H]", several[0])
        if named == sorted(set(named)) and set(named) <= set(upper):
            return "".join(named)
    return None


_NEEDS = re.compile(
    r"\bwhich\b(?: (?:one|two|pair|ones|number|value))?\s+of\s+(?:these|the|them|those)\b"
    r"|\bof the following\b|\b(?:which|what) (?:statement|expression|equation|inequality|choice"
    r"|option|answer|graph|system|interval|conclusion|description|formula)s?\b"
    r"|\bthe following (?:statement|option|choice|expression|equation)s?\b"
    r"|\b(?:could|must|may|might|can)(?: not)? be (?:true|false|the|an?)\b|\bcould equal\b"
    r"|\b(?:closest|nearest) to\b|\bbest (?:described|approximated|describes|represents)\b"
    r"|\bexcept\b|\bchoose the\b|\bselect\b|\bpick the\b|\bbelow\b"
    r"|下列|以下|下面|可能是|可以是|不可能|最接近|正确的是|错误的是|成立的是|选择",
    re.IGNORECASE,
)


def needs_options(stem: str) -> bool:
    """Whether a question can't be answered without its options: "which of the following ..."."""
    return bool(_NEEDS.search(stem))


def cut_options(prompt: str, options: Options) -> str:
    """The prompt without its list of options."""
    stem = prompt[: options.start].rstrip()
    if prompt.startswith("$", options.start) and len(_DOLLAR.findall(stem)) % 2:
        stem += "$"  # it closes the stem's last formula
    rest = prompt[options.end :]
    if rest[:1] not in ("", "\n"):
        rest = " " + rest.lstrip(" \t.,;。，；")
    return f"{stem}{rest}".strip()


_DOLLAR = re.compile(r"(?<!\\)\$")
