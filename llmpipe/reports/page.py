"""A report as one page that needs nothing else: no script, no network, light and dark."""

from __future__ import annotations

from collections.abc import Mapping

from llmpipe.core.markup import Html, el, join, visible
from llmpipe.reports.document import Chart, Commands, Document, Part, Section, Table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_LONG = 44  # letters of a cell that may stand in several lines
_CSS = Html(
    """
:root { color-scheme: light dark; --page: #ffffff; --text: #1f2328; --quiet: #59636e;
  --line: #d0d7de; --shade: #f6f8fa; --note: #fff8c5; --c0: #0072b2; --c1: #d55e00; --c2: #009e73;
  --c3: #cc79a7; --c4: #e69f00; --c5: #56b4e9; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --text: #e6edf3; --quiet: #9198a1; --line: #3d444d;
    --shade: #161b22; --note: #332a10; --c0: #3f9fe0; --c1: #f0803c; --c2: #1fbf8f;
    --c3: #e39cc6; --c4: #f0b429; --c5: #8fd3fb; }
}
* { box-sizing: border-box; }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1.25rem; background: var(--page);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
p, figcaption { max-width: 50rem; }
.quiet, figcaption { color: var(--quiet); font-size: .88rem; }
.note { background: var(--note); border-left: 4px solid #bf8700; padding: .5rem .8rem; }
figure { margin: 1.5rem 0; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figure svg { display: block; width: 100%; max-width: 46rem; height: auto; }
summary { cursor: pointer; color: var(--quiet); font-size: .88rem; margin: .4rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0 1rem; font-size: .88rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; white-space: nowrap; }
th { background: var(--shade); font-weight: 600; }
.name { text-align: left; }
.long { white-space: normal; overflow-wrap: anywhere; min-width: 16rem; max-width: 44rem; }
pre { background: var(--shade); padding: .7rem .9rem; border-radius: 6px; font-size: .85rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
@media print { body { max-width: none; margin: 0; } figure { break-inside: avoid; } }
"""
)


def page(document: Document, svgs: Mapping[str, str], missing: str | None = None) -> str:
    """The document as HTML. ``svgs`` are by a chart's name; a chart without one is its table.

    ``missing`` says why there are none.
    """
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", document.title),
        el("style", _CSS),
    )
    body = el(
        "body",
        el("h1", document.title),
        el("p", document.lead, class_="quiet"),
        [el("p", note, class_="note") for note in document.notes],
        el("p", missing, class_="note") if missing else None,
        [_section(section, svgs) for section in document.sections],
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _section(section: Section, svgs: Mapping[str, str]) -> Html:
    return el(
        "section",
        el("h2", section.title),
        el("p", section.text, class_="quiet") if section.text else None,
        [_part(part, svgs) for part in section.parts],
    )


def _part(part: Part, svgs: Mapping[str, str]) -> Html:
    match part:
        case Table():
            return _table(part)
        case Commands():
            return join(el("h3", part.of), el("pre", "\n".join(part.lines)))
        case Chart():
            return _chart(part, svgs.get(part.name))


def _chart(chart: Chart, svg: str | None) -> Html:
    title = el("h3", chart.title)
    caption = el("figcaption", chart.caption)
    if svg is None:
        return join(title, el("figure", _table(chart.table), caption))
    drawn = el("div", Html(svg), role="img", aria_label=visible(chart.alt))
    numbers = el("details", el("summary", "The numbers"), _table(chart.table))
    return join(title, el("figure", drawn, caption, numbers))


def _table(table: Table) -> Html:
    def cell(name: str, i: int, text: str) -> Html:
        kind = "name long" if len(text) > _LONG else "name"
        scope = "col" if name == "th" else None
        return el(name, text, class_=kind if i < table.names else None, scope=scope)

    head = el("tr", [cell("th", i, text) for i, text in enumerate(table.head)])
    rows = [el("tr", [cell("td", i, text) for i, text in enumerate(row)]) for row in table.rows]
    return el("div", el("table", el("thead", head), el("tbody", rows)), class_="wide", tabindex=0)
