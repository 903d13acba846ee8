"""pass@k of verdicts: one row a problem, and ``results.json``.

A sample that failed with an error says nothing about the model: it is counted and shown, and the
estimates use the others. A wrong answer, no answer and a truncated answer are all not right.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmpipe.algo.passk import mean_accuracy, mean_pass_at_k
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, ProblemScore, Rollout, Verdict
from llmpipe.core.run import Mode, Result, Spec, Writer, execute

RESULTS = "results.json"
_RATES = ("truncated", "no_answer", "error")


@dataclass(frozen=True, kw_only=True)
class Config:
    """The k of each pass@k."""

    k: tuple[int, ...]


def run(
    config: Config,
    verdicts: Path,
    out: Path,
    mode: Mode,
    problems: Path | None = None,
    rollouts: Path | None = None,
) -> Result:
    """Score every problem that has verdicts, in their order.

    ``results.json`` holds ``problems``; ``n``, the samples a problem that count, which leaves out
    errors (``{"min", "max"}`` where problems differ); ``errors``, those left out; ``metrics``, each
    the mean over problems as ``{"value": ...}``: ``pass@k`` for every k and ``avg@n``; ``rates``
    over all samples; ``by`` level, source and task; ``settings`` that the samples were drawn and
    judged with. A value is null where any problem has fewer
    than k samples without an error, and ``too_few`` says how many have.

    Raises:
        UserError: no verdicts there, problems or rollouts that can't be found or aren't theirs, a k
            below 1, or a k that no problem has samples enough for.
    """
    if not config.k or min(config.k) < 1:
        raise UserError("k must be 1 or more", "--k 1,8")
    judged = Artifact.open(verdicts, Verdict)
    asked = judged.upstream(Problem, problems)
    sampled = judged.upstream(Rollout, rollouts)
    spec = Spec(
        stage="score",
        record=ProblemScore,
        config=config,
        inputs={"verdicts": judged, "problems": asked, "rollouts": sampled},
        out=out,
        version=2,
    )

    def build(writer: Writer) -> None:
        scores = _scores(_count(judged, writer), asked, judged)
        if scores:
            _check_k(config, scores)
        for score in scores:
            writer.add(score)
        results = _results(config, scores, _settings(judged, sampled))
        short = {n: m["too_few"] for n, m in results["metrics"].items() if m.get("too_few")}
        if short:
            name, count = next(reversed(short.items()))
            writer.attention = (
                f"{name} can't be said: {count} of {len(scores)} problems have too few samples "
                "without an error"
            )
        writer.attach(RESULTS, json.dumps(results, ensure_ascii=False, indent=2) + "\n")
        writer.figures |= {name: m["value"] for name, m in results["metrics"].items()}
        writer.figures |= {"problems": results["problems"], "n": results["n"], **results["rates"]}
        writer.figures["verdict_errors"] = results["errors"]

    return execute(spec, build, mode)


def _count(verdicts: Artifact, writer: Writer) -> dict[str, Counter[str]]:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for batch in verdicts.batches(["problem_id", "status"], batch_size=8192):
        for problem, status in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            counts[problem][status] += 1
        writer.read += batch.num_rows
        writer.progress(writer.read, verdicts.rows)
    return dict(counts)


def _scores(
    counts: Mapping[str, Counter[str]], problems: Artifact, verdicts: Artifact
) -> list[ProblemScore]:
    known: dict[str, dict[str, Any]] = {}
    for batch in problems.batches(["id", "task", "source", "level"]):
        known |= {row.pop("id"): row for row in batch.to_pylist()}
    strange = counts.keys() - known.keys()
    if strange:
        raise UserError(
            f"{problems.path} lacks {len(strange)} of the problems that {verdicts.path} is about",
            "give the problems that were sampled: --problems DIR",
        )
    return [
        ProblemScore(
            problem_id=name,
            **known[name],
            n=count.total(),
            correct=count["correct"],
            wrong=count["wrong"],
            no_answer=count["no_answer"],
            truncated=count["truncated"],
            error=count["error"],
        )
        for name, count in counts.items()
    ]


def _check_k(config: Config, scores: Sequence[ProblemScore]) -> None:
    most, k = max(s.n for s in scores), max(config.k)
    if k > most:
        raise UserError(
            f"pass@{k} needs {k} samples a problem, but there are {most} at most",
            f"sample more with -n {k} (rollout goes on where it was), or ask for --k {most}",
        )


def _results(
    config: Config, scores: Sequence[ProblemScore], settings: Mapping[str, Any]
) -> dict[str, Any]:
    samples = sum(s.n for s in scores)
    counted = [s.n - s.error for s in scores] or [0]
    fewest, most = min(counted), max(counted)
    return {
        "problems": len(scores),
        "n": most if fewest == most else {"min": fewest, "max": most},
        "errors": sum(s.error for s in scores),
        "metrics": _metrics(config, scores),
        "rates": {
            name: sum(getattr(s, name) for s in scores) / samples if samples else None
            for name in _RATES
        },
        "by": {
            "level": _by(config, scores, lambda s: s.level),
            "source": _by(config, scores, lambda s: s.source),
            "task": _by(config, scores, lambda s: s.task),
        },
        "settings": settings,
    }


def _metrics(config: Config, scores: Iterable[ProblemScore]) -> dict[str, dict[str, Any]]:
    counts = [(s.n - s.error, s.correct) for s in scores]
    metrics: dict[str, dict[str, Any]] = {}
    for k in sorted(set(config.k)):
        metrics[f"pass@{k}"] = {"value": mean_pass_at_k(counts, k)}
        too_few = sum(n < k for n, _ in counts)
        if too_few:
            metrics[f"pass@{k}"]["too_few"] = too_few
    metrics["avg@n"] = {"value": mean_accuracy(counts)}
    return metrics


def _by(
    config: Config, scores: Iterable[ProblemScore], key: Callable[[ProblemScore], str | None]
) -> dict[str, Any]:
    """The same metrics for each group; problems without the key are under none of them."""
    groups: defaultdict[str, list[ProblemScore]] = defaultdict(list)
    for score in scores:
        value = key(score)
        if value is not None:
            groups[value].append(score)
    return {
        name: {"problems": len(groups[name]), "metrics": _metrics(config, groups[name])}
        for name in sorted(groups)
    }


def _settings(verdicts: Artifact, rollouts: Artifact) -> dict[str, Any]:
    """What one needs to know to draw and judge the same samples again."""
    drawn = dict(rollouts.manifest.config)
    shots = drawn.pop("few_shot", ())
    for name in ("n", "limit", "instructions"):
        drawn.pop(name, None)
    return {
        **drawn,
        "few_shot": len(shots),
        **verdicts.manifest.config,
        "versions": {**rollouts.manifest.versions, **verdicts.manifest.versions},
    }
