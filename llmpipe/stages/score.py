"""pass@k of verdicts: one row a problem, and ``results.json``.

A sample that failed with an error says nothing about the model: it is counted and shown, and the
estimates use the others. A wrong answer, no answer and a truncated answer are all not right.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from llmpipe.algo.results import LENGTHS, RESULTS, lengths, results
from llmpipe.core import plugins
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import AnswerClass, Problem, ProblemScore, Rollout, Verdict
from llmpipe.core.run import Mode, Result, Spec, Writer, execute
from llmpipe.tasks._voting import answer_classes
from llmpipe.verifiers import LIBRARIES

_KNOWN = ("task", "source", "level", "subject")


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

    ``results.json`` is as `llmpipe.algo.results.results` says, with the ``lengths`` of answers
    (None where the rollouts are not there) and the ``settings`` that the samples were drawn and
    judged with. A value is null where any problem has fewer than k samples without an error, and
    ``too_few`` says how many have.

    Samples that were judged right or wrong vote for their answer. Right ones are one class where a
    task's problems have one answer, and each text one where they have several (mazes); wrong ones
    are put together by the task's judge (`llmpipe.tasks._voting`).

    Raises:
        UserError: no verdicts there, problems or rollouts that can't be found or aren't theirs, a k
            below 1, or a k that no problem has samples enough for.
    """
    if not config.k or min(config.k) < 1:
        raise UserError("k must be 1 or more", "--k 1,8")
    judged = Artifact.open(verdicts, Verdict)
    asked = judged.upstream(Problem, problems)
    sampled = judged.upstream(Rollout, rollouts)
    known = {
        row.pop("id"): row for batch in asked.batches(["id", *_KNOWN]) for row in batch.to_pylist()
    }
    tasks = sorted({row["task"] for row in known.values()})
    spec = Spec(
        stage="score",
        record=ProblemScore,
        config=config,
        inputs={"verdicts": judged, "problems": asked, "rollouts": sampled},
        out=out,
        version=5,
        plugins=[(room, task) for task in tasks for room in ("tasks", "verifiers")],
        pinned=LIBRARIES,
    )

    settings = json.loads(json.dumps(_settings(judged, sampled, asked)))

    def build(writer: Writer) -> None:
        answered = _read(judged, writer)
        strange = answered.keys() - known.keys()
        if strange:
            raise UserError(
                f"{asked.path} lacks {len(strange)} of the problems that {judged.path} is about",
                "give the problems that were sampled: --problems DIR",
            )
        if answered:
            _check_k(config, answered)
        scores = list(_scores(answered, known, writer))
        for score in scores:
            writer.add(score)
        greedy = sampled.manifest.config.get("temperature") == 0
        found = results(scores, config.k, greedy=greedy)
        found["lengths"] = _lengths(answered, sampled)
        found["settings"] = settings
        writer.attach(RESULTS, json.dumps(found, ensure_ascii=False, indent=2) + "\n")
        writer.attention = _too_few(found)
        writer.figures |= {name: m["value"] for name, m in found["metrics"].items()}
        writer.figures |= {"problems": found["problems"], "n": found["n"], **found["rates"]}
        writer.figures["verdict_errors"] = found["errors"]

    # Other settings may have come to the very same verdicts: what is said of them is to be true.
    return execute(spec, build, mode, done=lambda old: _said(old) == settings)


def _said(scored: Artifact) -> Any:
    """The settings that the results of an eval are said to be of."""
    try:
        return json.loads((scored.path / RESULTS).read_text(encoding="utf-8"))["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


@dataclass(slots=True)
class _Answers:
    """What a problem's samples came to: ``status`` by sample, and the samples of each answer."""

    status: dict[int, str] = field(default_factory=dict)
    right: dict[str, list[int]] = field(default_factory=dict)
    wrong: dict[str, list[int]] = field(default_factory=dict)


def _read(verdicts: Artifact, writer: Writer) -> dict[str, _Answers]:
    answered: defaultdict[str, _Answers] = defaultdict(_Answers)
    columns = ["problem_id", "sample", "status", "extracted"]
    for batch in verdicts.batches(columns, batch_size=8192):
        for problem, sample, status, text in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            entry = answered[problem]
            entry.status[sample] = status
            if status == "correct":
                entry.right.setdefault(text or "", []).append(sample)
            elif status == "wrong" and text is not None:
                entry.wrong.setdefault(text, []).append(sample)
        writer.read += batch.num_rows
        writer.progress(writer.read, verdicts.rows)
    return dict(answered)


def _scores(
    answered: Mapping[str, _Answers], known: Mapping[str, Mapping[str, Any]], writer: Writer
) -> Iterator[ProblemScore]:
    wrong = ((known[name]["task"], list(entry.wrong)) for name, entry in answered.items())
    undecided = 0
    for (name, entry), (classes, decided) in zip(
        answered.items(), answer_classes(wrong), strict=True
    ):
        count = Counter(entry.status.values())
        undecided += not decided
        yield ProblemScore(
            problem_id=name,
            **known[name],
            n=count.total(),
            correct=count["correct"],
            wrong=count["wrong"],
            no_answer=count["no_answer"],
            truncated=count["truncated"],
            error=count["error"],
            answers=_classes(entry, known[name]["task"], classes),
        )
    if undecided:
        writer.figures["votes_by_text"] = undecided


def _classes(entry: _Answers, task: str, wrong: Sequence[int]) -> list[AnswerClass]:
    """A problem's classes of equal answers, the most frequent first, then by their first sample."""
    right: dict[Any, AnswerClass] = {}
    one = plugins.load("tasks", task).one_answer
    for number, (text, samples) in enumerate(entry.right.items()):
        key = 0 if one else number
        made = AnswerClass(answer=text, correct=True, samples=[])
        right.setdefault(key, made)["samples"] += samples
    others: dict[int, AnswerClass] = {}
    for number, (text, samples) in zip(wrong, entry.wrong.items(), strict=True):
        made = AnswerClass(answer=text, correct=False, samples=[])
        others.setdefault(number, made)["samples"] += samples
    found = [*right.values(), *others.values()]
    for each in found:
        each["samples"].sort()
    return sorted(found, key=lambda each: (-len(each["samples"]), each["samples"][0]))


def _check_k(config: Config, answered: Mapping[str, _Answers]) -> None:
    most, k = max(len(entry.status) for entry in answered.values()), max(config.k)
    if k > most:
        raise UserError(
            f"pass@{k} needs {k} samples a problem, but there are {most} at most",
            f"sample more with -n {k} (rollout goes on where it was), or ask for --k {most}",
        )


def _too_few(found: Mapping[str, Any]) -> str | None:
    """Which figure can't be said, if any: the one of the largest pass@k."""
    metrics = found["metrics"]
    short = [n for n, m in metrics.items() if n.startswith("pass@") and m.get("too_few")]
    if not short:
        return None
    return (
        f"{short[-1]} can't be said: {metrics[short[-1]]['too_few']} of {found['problems']} "
        "problems have too few samples without an error"
    )


def _lengths(answered: Mapping[str, _Answers], rollouts: Artifact) -> dict[str, Any] | None:
    """How long answers are by their status: in tokens, or in characters where any has no count."""
    tokens, all_counted = _measure(answered, rollouts, "completion_tokens")
    if all_counted:
        return lengths(tokens, "tokens") if tokens else None
    characters, _ = _measure(answered, rollouts, "completion")
    if _counted(tokens, characters):  # what has no tokens has no text
        return lengths(tokens, "tokens")
    return lengths(characters, "characters")


def _measure(
    answered: Mapping[str, _Answers], rollouts: Artifact, column: str
) -> tuple[dict[str, array[int]], bool]:
    """The lengths by status, and whether all are over 0."""
    found: dict[str, array[int]] = {}
    whole = True
    for batch in rollouts.batches(["problem_id", "sample", column], batch_size=8192):
        sizes = batch.column(column)
        if column == "completion":
            sizes = pc.utf8_length(sizes)
        for problem, sample, size in zip(
            batch.column("problem_id").to_pylist(),
            batch.column("sample").to_pylist(),
            sizes.to_pylist(),
            strict=True,
        ):
            entry = answered.get(problem)
            status = entry.status.get(sample) if entry else None
            if status in LENGTHS:
                found.setdefault(status, array("l")).append(size)
                whole = whole and size > 0
    return found, whole


def _counted(tokens: Mapping[str, array[int]], characters: Mapping[str, array[int]]) -> bool:
    """Whether every answer with text has a count of tokens."""
    return all(
        count or not size
        for status in tokens
        for count, size in zip(tokens[status], characters[status], strict=True)
    )


def _settings(verdicts: Artifact, rollouts: Artifact, problems: Artifact) -> dict[str, Any]:
    """What one needs to know to draw and judge the same samples again."""
    drawn = dict(rollouts.manifest.config)
    shots = drawn.pop("few_shot", ())
    for name in ("n", "limit"):
        drawn.pop(name, None)
    judged = dict(verdicts.manifest.config)
    if "engine" in judged:  # where it was judged, not what drew the samples
        judged["judged_by"] = judged.pop("engine")
    return {
        **drawn,
        "few_shot": len(shots),
        "few_shot_digest": _digest(shots) if shots else None,
        **judged,
        "rules": dict(verdicts.manifest.plugins),
        "problem_set": problems.digest,
        "versions": {**rollouts.manifest.versions, **verdicts.manifest.versions},
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
