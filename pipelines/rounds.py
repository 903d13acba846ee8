"""What rft.sh says of its rounds.

rounds.py gained EVAL_BEFORE EVAL_AFTER    exit code 0, or 3 where nothing was gained for sure
rounds.py table OUT EVAL...                pass@k of each round, what it learnt from, and that no
                                           problem was seen before
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llmpipe.algo.results import samples_in_words
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import ProblemScore
from llmpipe.stages.compare import Config, run

_LAST_NUMBER = "-last-number"  # ends the name of an eval of the same answers, read otherwise


def gained(before: Path, after: Path) -> tuple[bool, str]:
    """Whether pass@1 rose by more than chance explains, and that in words.

    It did where the whole interval of the paired difference, for new problems, is above zero.
    """
    # avg@n is pass@1, and is in every eval, whatever its K. Not asked for by name, it is left out
    # where a problem has nothing but errors, and not refused.
    rows = run(Config(), [[before], [after]]).rows.get("avg@n")
    if not rows or not (found := rows[1].difference):
        said = "pass@1 can't be said, as all answers to a held-out problem are errors"
        return False, f"{after.name} to {before.name}: {said}: no gain for sure"
    what = "a gain" if found.low > 0 else "a loss" if found.high < 0 else "no gain for sure"
    said = (
        f"{after.name} to {before.name}: pass@1 {_points(found.value)} points, 95 % interval of "
        f"the difference {_points(found.low)} to {_points(found.high)}: {what}"
    )
    return found.low > 0, said


def table(out: Path, evals: Sequence[Path]) -> Iterator[str]:
    """A line a round, and where the problems are from."""
    results = [_results(path) for path in evals]
    columns = {"in the box": results}
    others = [path.with_name(path.name + _LAST_NUMBER) for path in evals]
    if all(path.is_dir() for path in others):
        columns["by the last number"] = [_results(path) for path in others]
    metrics = [name for name in results[0]["metrics"] if name.startswith("pass@")]
    rows = [["", *(f"{name} {how}" for how in columns for name in metrics), "cut off", "errors"]]
    for i, path in enumerate(evals):
        figures = [
            _metric(each[i]["metrics"][name]) for each in columns.values() for name in metrics
        ]
        shares = [f"{results[i]['rates'][name]:.1%}" for name in ("truncated", "error")]
        rows.append([path.name, *figures, *shares])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    answers = " or ".join(dict.fromkeys(samples_in_words(each["n"]) for each in results))
    yield f"{results[0]['problems']} held-out problems, {answers} answers to each."
    yield "In percent, with 95 % intervals for new problems of this kind:"
    yield ""
    for row in rows:
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
    yield ""
    for path in evals:
        if (selected := out / path.name / "selected").is_dir():
            yield _learnt_from(selected)
    tested = {score.problem_id for score in Artifact.open(evals[0]).iter_rows(ProblemScore)}
    for folder in (out / "warm-start", out):
        if (folder / "clean").is_dir():
            yield _trained_on(folder, tested)


def _learnt_from(selected: Path) -> str:
    """How many of the solutions that a round trained on are the model's own."""
    figures = Artifact.open(selected).manifest.figures
    return (
        f"{selected}: {figures['replaced']} of {figures['problems']} solutions were replaced by an "
        f"answer of the model, {figures['kept_old']} stayed, {figures['without']} have none"
    )


def _trained_on(folder: Path, tested: set[str]) -> str:
    """How many of the problems in a folder were found held out, by dedupe's own count."""
    clean = Artifact.open(folder / "clean")
    read = clean.manifest.counts["read"]
    hits = clean.manifest.figures["contaminated"]
    ids = {i for batch in clean.batches(["id"]) for i in batch.column("id").to_pylist()}
    return (
        f"{folder / 'clean'}: of {read} problems to train on, dedupe dropped {hits} as held out "
        f"(the same, or part of one); of the {len(ids)} left, {len(ids & tested)} are held out"
    )


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


def _metric(metric: Mapping[str, float | None]) -> str:
    value, low, high = (metric[name] for name in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return "-"
    return f"{100 * value:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def _results(path: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((path / "results.json").read_text(encoding="utf-8"))
    return results


def main(command: str = "", *paths: str) -> int:
    given = [Path(path) for path in paths]
    try:
        if command == "table" and len(given) > 1:
            print("\n".join(table(given[0], given[1:])))
            return 0
        if command == "gained" and len(given) == 2:
            rose, said = gained(*given)
            print(said, file=sys.stderr)
            return 0 if rose else 3
    except (KeyError, ValueError) as e:
        print(f"rounds.py: these are no whole evals: {e!r}", file=sys.stderr)
        return 2
    except (UserError, OSError) as e:
        print(f"rounds.py: {e}", file=sys.stderr)
        if isinstance(e, UserError) and e.hint:
            print(f"  Try: {e.hint}", file=sys.stderr)
        return 2
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
