"""Parts of pages: the filters of a list and what they ask for, cells, heads, warnings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from llmpipe.algo.results import RESULTS
from llmpipe.core.artifact import Artifact
from llmpipe.core.markup import Html, el, join
from llmpipe.viewer import views
from llmpipe.viewer.listings import Wanted
from llmpipe.viewer.query import Table
from llmpipe.viewer.views import facts, number

Query = Mapping[str, str]
_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def wanted_of(query: Query) -> Wanted:
    """What a query asks for. What is no number there is not asked for."""
    asked: dict[str, Any] = {
        k: query.get(k) or None for k in ("text", "status", "level", "problem")
    }
    for name in ("rate_from", "rate_to", "length_from", "length_to"):
        if _NUMBERS.fullmatch(query.get(name, "").strip()):
            asked[name] = float(query[name])
    return Wanted(**asked)


def brief(name: str, value: Any) -> Html:
    """A column of a row on one line, with its name where the value alone says little."""
    if name == "status":
        return views.status(str(value))
    shown = number(value)
    if len(shown) <= 16:
        return el("span", el("span", f"{name} ", class_="dim"), shown, class_="short")
    return el("span", shown)


def filters(table: Table, query: Query) -> list[Html | None]:
    """What a list may be filtered by, as fields of a form."""
    over = table.listing
    ends = "end" if table.artifact.manifest.record == "Rollout" else "status"
    level = "source" if over.level == "t.source" else "level"
    return [
        _input("text", "search", query, wide=True) if over.text else None,
        _select("status", ends, table.choices("status"), query),
        _select("level", level, table.choices("level"), query),
        *(_bounds("rate", "pass rate", query) if over.rate else ()),
        *(_bounds("length", over.unit, query) if over.length else ()),
    ]


def _input(name: str, label: str, query: Query, wide: bool = False) -> Html:
    kind = "search" if wide else "text"
    given = {"type": kind, "name": name, "value": query.get(name, ""), "placeholder": label}
    numeric = {} if wide else {"inputmode": "decimal", "class_": "bound"}
    return el("label", el("input", **given, **numeric, aria_label=label))


def _bounds(name: str, label: str, query: Query) -> list[Html]:
    return [
        el(
            "span",
            el("span", label),
            _input(f"{name}_from", "from", query),
            _input(f"{name}_to", "to", query),
            class_="bounds",
        )
    ]


def _select(name: str, label: str, values: Sequence[tuple[str, int]], query: Query) -> Html | None:
    if not values:
        return None
    options = [
        el("option", f"{value} ({count:,})", value=value, selected=value == query.get(name))
        for value, count in values
    ]
    first = el("option", f"any {label}", value="")
    return el("label", el("select", first, options, name=name, aria_label=label))


def cell(name: str, value: Any) -> Html:
    """A column of a row in a table."""
    if name == "status":
        return el("td", views.status(str(value)))
    if isinstance(value, int | float):
        return el("td", number(value), class_="number")
    if len(str(value)) <= 16:
        return el("td", number(value), class_="short")
    wide = name in ("problem", "response", "why", "first turn", "last turn", "prompt")
    return el("td", el("span", number(value)), class_="words" if wide else "brief")


def notes(*notes: str) -> Html:
    """What can't be shown, and why."""
    return join([el("p", note, class_="warning") for note in notes if note])


def head(artifact: Artifact) -> Html:
    """Where an artifact came from, folded."""
    m = artifact.manifest
    made = f"{m.record} rows, made by {m.stage}, {m.ended[:16].replace('T', ' ')} UTC"
    about = facts(
        [
            *((f"from {role}", entry.get("path")) for role, entry in m.inputs.items()),
            ("config", json.dumps(m.config, ensure_ascii=False)),
            ("dropped", dropped(artifact)),
            ("figures", figures(m.figures)),
            ("attention", m.attention),
        ]
    )
    return el("details", el("summary", made), about, class_="about")


def scores(artifact: Artifact) -> Html | None:
    """The scores of an eval, where the artifact is one."""
    try:
        found = json.loads((artifact.path / RESULTS).read_text(encoding="utf-8"))
        return views.results(found)
    except (OSError, ValueError, AttributeError, TypeError):
        return None  # no eval, or not one that can be read: the rows are shown all the same


def dropped(artifact: Artifact) -> str:
    """How many rows were dropped, by reason."""
    return ", ".join(f"{k} {v}" for k, v in artifact.manifest.counts.get("dropped", {}).items())


def figures(figures: Mapping[str, Any]) -> str:
    """The first of a stage's figures, in a line."""
    plain = {k: v for k, v in figures.items() if isinstance(v, int | float | str)}
    return ", ".join(f"{k.replace('_', ' ')} {number(v)}" for k, v in list(plain.items())[:8])
