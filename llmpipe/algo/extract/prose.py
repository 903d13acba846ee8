"""Answers that are only said: "the answer is 5", or the last number of a response.

What is taken is the whole of what is said: the number with its expression and unit, or a clause as
it stands if answers are read in such words ("at least 5"). Where neither can be told there is none.
"""

from __future__ import annotations

import re
from collections import deque

from llmpipe.algo.extract import context, han
from llmpipe.algo.extract import qualifiers as q
from llmpipe.algo.extract.tokens import FORMULA, NUMBER, plain
from llmpipe.algo.extract.values import Clause, conclusion, extent, unit_end

DENIED = "the answer is denied, or said in words that can't be cut down to it"

_SENTENCE = 4  # words that make one
_BEFORE, _AFTER, _TAIL = 300, 200, 2500  # characters of the response that are looked at
_SUBJECT = (
    r"\b(?:answers?|ans|(?:correct|right|best|final)\s(?:options?|choices?|results?|values?"
    r"|solutions?))(?:\s(?:option|choice))?"
)
_VERB = (
    r"(?:is|are|equals|(?:would|will|should|must|has\sto|turns?\sout\sto|comes?\sout\sto)"
    r"\s(?:be\b)?|=|:|：)"
)
_PHRASE = re.compile(
    rf"{_SUBJECT}(?:\*\*|__)?(?:\s(?:to|for|of)\s[^\n.:：=]{{1,60}}?\s)?\s{{0,3}}{_VERB}"
    r"(?![A-Za-z])"
    r"|(?:答案|结果)(?:\*\*)?\s{0,3}(?:应该|应当|应)?(?:是|为|等于|选|:|：|=|＝)"
    r"|答(?:\*\*)?\s{0,3}[:：]"
    r"|选项?(?:择)?(?:是|为)?\s{0,3}[:：]?\s{0,3}(?=[*$(（]{0,3}[A-J](?![A-Za-z]))"
    r"|^[#*_> \t]{0,8}final\sanswer[*_ \t]{0,4}$"
    r"|(?-i:\b(?P<letter>[A-J]))[)）]?\sis\s(?:the\s)?"
    r"(?:correct|right|best)(?:\s(?:answer|option|choice))?\b",
    re.IGNORECASE | re.MULTILINE,
)
_LEAD = re.compile(
    r"(?:\*\*|__|[:：=]|is\b|the\b(?=\s+(?:option|choice|number|value|integer|following|answer)\b)"
    r"|(?:thus|therefore|hence|so|then|simply|just|exactly|indeed|clearly|precisely|actually|now"
    r"|definitely|probably|equals?(?:\sto)?|given\sby|a\stotal\sof|about|approximately|around"
    r"|roughly|in\sfact|of\scourse|still|always|only|following|number|value|integer|USD)\b(?!\s*of)"
    r"|(?:option|choice|letter)\s(?=[(（$*]{0,3}[A-J]\b)|[,，](?=\s)|\s|是|为|等于|：)*",
    re.IGNORECASE,
)
_UNSAID = re.compile(
    r"(?:correct|right|obtained|found|reasonable|consistent|valid|verified|confirmed|below|above"
    r"|based|shown|derived|calculated|computed|also correct|as follows|accurate|plausible"
    r"|given in)\b",
    re.IGNORECASE,
)
_WRONG = re.compile(r"(?:incorrect|wrong|not\s(?:correct|right|valid)|false|错)", re.IGNORECASE)
_ASKED = re.compile(
    r"\b(?:if|whether|suppose|assume|assuming|supposing|see|check|verify|unless)\b[^.,;\n]{0,40}$"
    r"|\b(?:wrong|incorrect|tempting|common)\s$|(?:是否|如果|假设|若)[^。，；\n]{0,10}$",
    re.IGNORECASE,
)
_CONTRADICTED = re.compile(
    r"(?:\b(?:not|never|doubt|false|wrong|incorrect|impossible|unlikely|cannot|no)\b|n['’]t\b)"
    r"[^.,;:\n]{0,30}$|不[^。，；\n]{0,6}$",
    re.IGNORECASE,
)
_REASONS = frozenset(["because", "since", "which", "where", "因为"])
_EDGES = " \t\n*_`\"'“”,，。.;；:："


def phrase(text: str) -> str | None:
    """What the last "the answer is" says; `DENIED` if the last that is said of it is a denial."""
    for match in reversed(list(_PHRASE.finditer(text))):
        before = text[max(0, match.start() - 60) : match.start()]
        if _ASKED.search(before):
            continue
        if _CONTRADICTED.search(before):
            return DENIED
        if match["letter"]:
            return match["letter"]
        tail = plain(text[match.end() : match.end() + _TAIL]).lstrip(" \t\n*_")
        tail = _LEAD.sub("", tail, count=1) if _LEAD.match(tail) else tail
        if _WRONG.match(tail):
            return DENIED
        if _UNSAID.match(tail):
            continue
        return _clause(tail, told=match.group().rstrip("*_ \t").endswith((":", "：", "r", "R")))
    return None


def _clause(tail: str, told: bool) -> str | None:
    """The value that a clause begins with, if nothing changes it; else the whole clause.

    Behind a colon (``told``) a sentence may tell the answer: "Answer: Jane came 3 hours ago".

    `DENIED` where it is a question, or where the whole would not be read as what it is.
    """
    clause = Clause(tail)
    found = clause.tokens
    stop = next((n for n, t in enumerate(found) if t.kind == "end"), len(found))
    if not stop:
        return None
    reason = next((n for n in range(1, stop) if found[n].text.lower() in _REASONS), stop)
    values = [n for n in range(reason) if found[n].kind in ("number", "formula")]
    if values and (span := extent(clause, values[0])):
        alone = span[0] == 0 or (values[-1] <= span[1] and _is_sentence(clause, span[0], told))
        if alone and _is_safe(clause, *span):
            return _shown(clause, *span)
    whole = _undelimited(clause.shown(0, reason - 1).strip(_EDGES))
    if values and not _is_readable(clause, values[0], stop):
        return DENIED
    return whole or None


def _is_safe(clause: Clause, first: int, last: int, computed: bool = False) -> bool:
    return context.harmless_before(clause, first) and context.harmless_after(clause, last, computed)


def _is_sentence(clause: Clause, first: int, told: bool) -> bool:
    said = clause.tokens[:first]
    if said[0].kind == "cjk" or any(t.text.lower() in q.SAID for t in said):
        return True
    return told and sum(t.kind == "word" for t in said) >= _SENTENCE


def _is_readable(clause: Clause, at: int, stop: int) -> bool:
    """Whether the words of a clause make an answer with its number, and none goes unheeded."""
    found = clause.tokens
    if stop < len(found) and found[stop].text in ("?", "？"):
        return False
    if any(t.kind == "cjk" and not han.readable(t.text) for t in found[:stop]):
        return False
    before = [t.text.lower() for t in found[:at] if t.kind == "word"]
    if any(w not in q.READ_BEFORE for w in before):
        return False
    if "to" in before and not {"equal", "up"} & set(before):
        return False
    span = extent(clause, at)
    last = span[1] if span else at
    after = [
        t.text.lower() for t in found[last + 1 : stop] if t.kind in ("word", "comma", "number")
    ]
    if not after or context.harmless_after(clause, last):
        return True
    return bool(q.READ_AFTER.match(" ".join(after)))


def _shown(clause: Clause, first: int, last: int) -> str:
    end = unit_end(clause, last, q.IDLE)
    start = conclusion(clause, first, last)
    text = clause.shown(start, end).strip()
    return _undelimited(text) if start == end else text


_MARKS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))


def _undelimited(text: str) -> str:
    for opening, closing in _MARKS:
        if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening):
            return text[len(opening) : -len(closing)].strip()
    return text


_FORMULA = re.compile(FORMULA, re.DOTALL)
_NUMBER = re.compile(rf"(?<![A-Za-z_\d])(?:{NUMBER})")  # x2 is a name
_ITEM = re.compile(r"(?:^|\n)[ \t#>]*$")
_ITEM_MARK = re.compile(r"[.)][ \t]+\S")
_DIFFERENCE = re.compile(r"[\d.,]+ ?[-−–] ?[\d.,]+")  # or a range, or a score
_WHOLE = (".", "!", "?", "。", "$", "\\]", "\\)")  # a sentence, a formula
_BEGIN, _END = "\ue000", "\ue001"  # of private use: they keep the place while text is cleaned


def last_number(text: str) -> str | None:
    """The last number or formula, with the expression that it is in, if the words leave it so."""
    text = text.replace(_BEGIN, " ").replace(_END, " ")
    formulas = deque((m.span() for m in _FORMULA.finditer(text)), maxlen=_BEFORE)
    start, end = formulas[-1] if formulas else (0, 0)
    for match in _NUMBER.finditer(text, end):
        start, end = match.span()
    if start == end:
        return None
    cut = max([max(0, start - _BEFORE), *(e for s, e in formulas if s < start - _BEFORE < e)])
    before, core, after = text[cut:start], text[start:end], text[end : end + _AFTER]
    if core.startswith(("$$", "\\[")) and not before.rstrip().endswith(_WHOLE):
        before = before.rstrip()  # the sentence goes on in the displayed formula
    if _ITEM.search(before) and _ITEM_MARK.match(after):
        return None
    text = plain(f"{before}{_BEGIN}{core}{_END}{after}")
    place = text.find(_BEGIN)
    if place < 0:  # in a calculator's brackets
        return None
    clause = Clause(text.replace(_BEGIN, "").replace(_END, ""))
    at = next((n for n, t in enumerate(clause.tokens) if t.end > place), None)
    span = extent(clause, at) if at is not None else None
    if span is None or _DIFFERENCE.fullmatch(clause.shown(*span)):
        return None
    start = conclusion(clause, *span)
    computed = start > 0 and clause.tokens[start - 1].text == "="
    return _shown(clause, *span) if _is_safe(clause, start, span[1], computed) else None
