"""Numbers and names as reports put them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from llmpipe.reports.runs import Run

STATUSES = ("correct", "wrong", "no_answer", "truncated", "error")


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def interval(low: float | None, high: float | None, sign: str = "") -> str:
    return "–" if low is None or high is None else f"{low:{sign}.4f} to {high:{sign}.4f}"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.2%}"


def plain(value: Any) -> str:
    """A setting: text as it is, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def spaced(name: str) -> str:
    return name.replace("_", " ")


def confidence(runs: Sequence[Run]) -> str:
    return f"{runs[0].results['intervals']['confidence']:.0%}"


def size(runs: Sequence[Run]) -> str:
    """Of how many problems and samples the figures are."""
    problems, samples = (
        list(dict.fromkeys(each))
        for each in zip(*((str(r.results["problems"]), r.samples) for r in runs), strict=True)
    )
    text = f"{', '.join(problems)} problems, n = {', '.join(samples)}"
    if len(problems) > 1 or len(samples) > 1:
        return f"{text} (by run)"
    return text if len(runs) == 1 else f"{text} in each run"


def too_few(metric: Mapping[str, Any]) -> str:
    few = metric.get("too_few")
    if not few:
        return ""
    return f"{few} {'problem has' if few == 1 else 'problems have'} too few samples"
