"""Rejection sampling: keep the rollouts worth training on.

Three passes, so that no text is held: the verdicts say which samples are right, a look at the
rollouts says which of those are complete and new, and the kept ones are copied as they are.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Rollout, Verdict
from llmpipe.core.run import Mode, Result, Spec, Writer, execute

PREFER = ("shortest", "longest", "random")


@dataclass(frozen=True, kw_only=True)
class Config:
    """``per_problem`` is the most answers kept of one problem (all of them by default), and
    ``prefer`` (one of `PREFER`) says which. ``seed`` matters to random only."""

    per_problem: int | None = None
    prefer: str = "shortest"
    seed: int = 0


@dataclass(slots=True)
class _Problem:
    """What is known of one problem: its samples' verdicts, and its right answers by length."""

    judged: int = 0  # samples with a verdict on the answer: all but errors
    right: set[int] = field(default_factory=set)
    lengths: dict[int, int] = field(default_factory=dict)  # of complete, distinct right answers
    kept: frozenset[int] = frozenset()


def run(
    config: Config, verdicts: Path, out: Path, mode: Mode, rollouts: Path | None = None
) -> Result:
    """Keep right and complete answers, each text once, at most ``config.per_problem`` a problem.

    Rows keep the order of the rollouts, which is by problem and sample. Rejected rows are named
    PROBLEM/SAMPLE. Where several turns were sampled, two answers are the same if their last turns
    are.

    Raises:
        UserError: no verdicts there, the rollouts can't be found or aren't theirs, or a setting is
            out of range.
    """
    if config.prefer not in PREFER:
        raise UserError(f"prefer is {config.prefer!r}", f"one of: {', '.join(PREFER)}")
    if config.per_problem is not None and config.per_problem < 1:
        raise UserError(f"per-problem is {config.per_problem}", "give 1 or more")
    judged = Artifact.open(verdicts, Verdict)
    sampled = judged.upstream(Rollout, rollouts)
    spec = Spec(
        stage="select",
        record=Rollout,
        config=config,
        inputs={"verdicts": judged, "rollouts": sampled},
        out=out,
    )

    def build(writer: Writer) -> None:
        problems = _read_verdicts(judged, writer)
        _read_rollouts(sampled, judged, problems, writer)
        for name, problem in problems.items():
            ranked = sorted(problem.lengths, key=lambda s: _rank(config, name, s, problem.lengths))
            for sample in ranked[config.per_problem :] if config.per_problem else ():
                writer.reject(f"{name}/{sample}", "over_per_problem")
            problem.kept = frozenset(ranked[: config.per_problem])
        _copy(sampled, problems, writer)
        writer.figures |= _figures(problems)
        # What the transcripts begin with; build-sft asks it of whatever rollouts it gets.
        writer.details["few_shot_messages"] = sampled.manifest.details.get("few_shot_messages", {})

    return execute(spec, build, mode)


def _read_verdicts(verdicts: Artifact, writer: Writer) -> dict[str, _Problem]:
    problems: defaultdict[str, _Problem] = defaultdict(_Problem)
    for batch in verdicts.batches(["problem_id", "sample", "status", "detail"]):
        for row in batch.to_pylist():
            writer.read += 1
            problem = problems[row["problem_id"]]
            problem.judged += row["status"] != "error"
            if row["status"] == "correct":
                problem.right.add(row["sample"])
            else:
                name = f"{row['problem_id']}/{row['sample']}"
                writer.reject(name, row["status"], row["detail"] or "")
        writer.progress(writer.read, verdicts.rows)
    return dict(problems)


def _read_rollouts(
    rollouts: Artifact, verdicts: Artifact, problems: Mapping[str, _Problem], writer: Writer
) -> None:
    """Note the lengths of right answers; drop those that did not end, and repeats."""
    seen: defaultdict[str, dict[bytes, int]] = defaultdict(dict)
    found = 0
    right = {name: p.right for name, p in problems.items() if p.right}
    columns = ["problem_id", "sample", "finish_reason", "completion", "completion_tokens"]
    for batch in rollouts.batches(columns):
        for row in _where(batch, right).to_pylist():
            name, sample = row["problem_id"], row["sample"]
            found += 1
            if row["finish_reason"] != "stop":
                writer.reject(f"{name}/{sample}", "not_stopped", row["finish_reason"])
                continue
            digest = hashlib.blake2b(row["completion"].encode(), digest_size=16).digest()
            first = seen[name].setdefault(digest, sample)
            if first == sample:
                problems[name].lengths[sample] = row["completion_tokens"]
            else:
                writer.reject(f"{name}/{sample}", "duplicate_text", f"the same as sample {first}")
    missing = sum(map(len, right.values())) - found
    if missing:
        raise UserError(
            f"{rollouts.path} lacks {missing} of the rollouts that {verdicts.path} judges right",
            "give the rollouts that were verified: --rollouts DIR",
        )


def _copy(rollouts: Artifact, problems: Mapping[str, _Problem], writer: Writer) -> None:
    kept = {name: p.kept for name, p in problems.items() if p.kept}
    for batch in rollouts.batches(Rollout.SCHEMA.names, batch_size=256):
        chosen = _where(batch, kept)
        if chosen.num_rows:
            writer.add_batch(chosen)


def _where(batch: pa.RecordBatch, samples: Mapping[str, AbstractSet[int]]) -> pa.RecordBatch:
    """The rows of a batch whose problem and sample are among the given ones."""
    keys = zip(
        batch.column("problem_id").to_pylist(), batch.column("sample").to_pylist(), strict=True
    )
    return batch.filter(pa.array([s in samples.get(p, ()) for p, s in keys], pa.bool_()))


def _rank(config: Config, problem: str, sample: int, lengths: Mapping[int, int]) -> tuple[int, int]:
    """What a problem's answers are sorted by; the sample number breaks ties."""
    if config.prefer == "random":
        key = hashlib.blake2b(f"{config.seed}\0{problem}\0{sample}".encode(), digest_size=8)
        return int.from_bytes(key.digest(), "big"), sample
    return (lengths[sample] if config.prefer == "shortest" else -lengths[sample]), sample


def _figures(problems: Mapping[str, _Problem]) -> dict[str, int | float]:
    seen = len(problems)
    rates = [len(p.right) / p.judged for p in problems.values() if p.judged]
    solved = sum(bool(p.kept) for p in problems.values())
    return {
        "problems": seen,
        "solved": solved,
        "coverage": round(solved / seen, 4) if seen else 0.0,
        "mean_pass_rate": round(sum(rates) / len(rates), 4) if rates else 0.0,
        "never_solved": sum(not p.right for p in problems.values()),
        "always_solved": sum(0 < p.judged == len(p.right) for p in problems.values()),
    }
