"""The rule on problems that refer to what isn't in their text."""

from __future__ import annotations

import re

from llmpipe.algo.rules.statement import Statement, excerpt

_NOUN = (
    r"(?:figure|diagram|picture|graph|chart|table|map|image|drawing|illustration|sketch|histogram"
    r"|plot|photo|number line|grid|spinner)s?"
)
_SIDE = r"(?:to|at|on) the (?:right|left)|below|above|here"
_DRAWN = r"(?:shown|illustrated|depicted|pictured|drawn|sketched|displayed)"
_FIGURE = re.compile(
    r"\b(?:in|see|on) (?:the |this )?(?:(?:above|accompanying|adjoining|adjacent|attached|following"
    r"|given) )?(?:figure|diagram|picture)\b"
    r"(?! (?:of|formed|is|are|with|that|which|frame|book|hook|galler\w*|skat\w+|out|hanging)\b)"
    rf"|\b(?:the|this|following|accompanying|adjoining|adjacent|attached) (?:\w+ )?{_NOUN}"
    rf" (?:{_SIDE}|shown|shows?(?! that\b)|showing|provided|displays?|illustrates?|depicts?)\b"
    rf"|\b(?:the|an?|this) (?:accompanying|adjoining|attached|adjacent) {_NOUN}\b"
    rf"|\b(?:in|from|use|using|see|to|on|and|of) (?:the|this) (?:following|above|below) {_NOUN}\b"
    rf"|\b(?:as|is|are|was|were),? (?:{_DRAWN}|shaded|labell?ed|marked|indicated)"
    rf" (?:{_SIDE})(?!\s*[:.]?\s*[¤\n\d|])"
    rf"|\b(?:{_DRAWN}|given|seen|described|indicated|marked|labell?ed|arranged)"
    rf" (?:in|on|by) (?:the |this |an? )?(?:\w+ )?{_NOUN}\b"
    rf"|\bas {_DRAWN}\s*(?:[.,;)]|$)"
    r"|\b(?:fig|figure|diagram|graph|table)\.? ?\(?\d[a-d]?\)?(?=[ .,):;])"
    r"|<image|\[image|!\[[^\]]*\]\(|\\includegraphics|<img|\.(?:png|jpe?g|svg|gif)\b"
    r"|[如见附下上右左]图(?![书象像形])|(?<![地构意拼试])图(?:中|所示|[0-9①②③④⑤一二三甲乙])|阴影部分"
    r"|[下上右]表|表中|表格中"
)
_MAYBE = (
    "figure", "diagram", "picture", "graph", "chart", "table", "image", "drawing", "illustrat",
    "sketch", "histogram", "plot", "photo", "number line", "grid", "spinner", "map ", "shown",
    "depicted", "drawn", "displayed", "shaded", "label", "marked", "indicated", "fig", "<im", "![",
    ".png", ".jp", ".svg", "图", "阴影", "表",
)  # fmt: skip
_CODE = ("[asy]", r"\begin{tikzpicture}", r"\begin{asy}", r"\begin{picture}", "<svg")
_TABULAR = re.compile("table|chart|grid|表")
_ROWS = re.compile(
    r"\\begin\{(?:tabular|array|table|longtable|[bpv]?matrix|cases)|\\hline|<table|<td"
    r"|\|[^|\n]*\|[^|\n]*\||\n[^\n]*\d[ \t,]+\d[^\n]*(?:\n|$)|\d\s*[\t&]\s*\S"
)


def needs_figure(statement: Statement) -> str | None:
    """It refers to a figure or a table that isn't in the text.

    Code that draws it (Asymptote, TikZ, SVG) and rows of a table are the thing itself.
    """
    if not statement.mentions(_MAYBE):
        return None
    found = _FIGURE.search(statement.words)
    if found is None or any(code in statement.prompt for code in _CODE):
        return None
    if _TABULAR.search(found[0]) and _ROWS.search(statement.prompt):
        return None
    return excerpt(statement.words, found)
