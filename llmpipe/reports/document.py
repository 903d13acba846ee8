"""What a report says, before it is a page, Markdown or plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["curve", "points", "bars", "stack"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells are text: names in the first ``names`` columns, numbers in the others."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1


@dataclass(frozen=True, kw_only=True)
class Point:
    """``low`` to ``high`` is drawn faintly about ``value``, ``low_here`` to ``high_here`` in it."""

    x: int
    value: float
    low: float | None = None
    high: float | None = None
    low_here: float | None = None
    high_here: float | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    label: str
    points: Sequence[Point]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A plot and the table of its numbers. ``name`` is that of its file.

    A curve is over a logarithmic x; in all other kinds x is a place among ``categories``. Points
    and bars of several series are side by side, those of a stack end to end. ``share`` says that
    values go from 0 to 1; ``bands`` names the intervals that points have.
    """

    name: str
    kind: Kind
    title: str
    caption: str
    alt: str
    x: str
    y: str
    series: Sequence[Series]
    table: Table
    categories: Sequence[str] = ()
    share: bool = True
    bands: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Commands:
    """Command lines that make one run, one a line."""

    of: str
    lines: Sequence[str]


Part = Table | Chart | Commands


@dataclass(frozen=True, kw_only=True)
class Section:
    title: str
    parts: Sequence[Part]
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Document:
    """``notes`` are what a reader must know before any number."""

    title: str
    lead: str
    notes: Sequence[str]
    sections: Sequence[Section]

    @property
    def charts(self) -> list[Chart]:
        return [part for s in self.sections for part in s.parts if isinstance(part, Chart)]
