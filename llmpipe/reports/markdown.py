"""A report as Markdown, as GitHub and the hub show it."""

from __future__ import annotations

import re
from collections.abc import Collection

from llmpipe.core.markup import visible
from llmpipe.reports.document import Chart, Commands, Document, Part, Table

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>&#|~$]")


def markdown(
    document: Document, pictures: Collection[str], folder: str, missing: str | None = None
) -> str:
    """The document, with ``folder/NAME.png`` of the charts that have ``pictures``."""
    blocks = [f"# {escape(document.title)}", escape(document.lead)]
    blocks += [f"> {escape(note)}" for note in [*document.notes, *([missing] if missing else [])]]
    for section in document.sections:
        blocks.append(f"## {escape(section.title)}")
        if section.text:
            blocks.append(escape(section.text))
        for part in section.parts:
            blocks += _part(part, pictures, folder)
    return "\n\n".join(blocks) + "\n"


def escape(text: str) -> str:
    """Text that stands for itself, in a line and in a table's cell."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(visible(text).split("\n")))


def _part(part: Part, pictures: Collection[str], folder: str) -> list[str]:
    match part:
        case Table():
            return [_table(part)]
        case Commands():
            text = visible("\n".join(part.lines))
            longest = max(map(len, re.findall("`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
            return [f"### {escape(part.of)}", f"{fence}sh\n{text}\n{fence}"]
        case Chart():
            return _chart(part, pictures, folder)


def _chart(chart: Chart, pictures: Collection[str], folder: str) -> list[str]:
    shown, table = [], _table(chart.table)
    if chart.name in pictures:
        shown = [f"![{escape(chart.alt)}]({folder}/{chart.name}.png)"]
        table = f"<details><summary>The numbers</summary>\n\n{table}\n\n</details>"
    return [f"### {escape(chart.title)}", *shown, escape(chart.caption), table]


def _table(table: Table) -> str:
    rule = [":--" if i < table.names else "--:" for i in range(len(table.head))]
    rows = [list(map(escape, table.head)), rule, *(map(escape, row) for row in table.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
