"""Rejection sampling: keep the rollouts worth training on.

Three passes, so that no text is held: the verdicts say which samples are right, a look at the
rollouts says which of those are whole, faultless and new, and the kept ones are copied as they are.
What is noted of a problem's answers is let go once all of them were seen.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from llmpipe.algo.coverage import STEPS, Solved, by_name, by_step
from llmpipe.algo.diversity import THRESHOLD, sketch
from llmpipe.algo.faults import FAULTS, Answer, Screen
from llmpipe.algo.filter_steps import rate_ends
from llmpipe.algo.selection import PREFER, REWARDS, Candidate, choose, draw, ranked, weigh
from llmpipe.algo.transcripts import answers, asked, without_examples
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.options import check_names, rules_in_force
from llmpipe.core.records import Problem, Rollout, Verdict
from llmpipe.core.row_groups import RowGroups
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute
from llmpipe.core.wanted import About, about, wanted_batches

log = logging.getLogger(__name__)

RULES = tuple(FAULTS)
"""What `Config.drop` may hold; all of them by default."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Which right answers to keep.

    ``per_problem`` is the most answers of one problem (all by default), and ``prefer`` (one of
    `PREFER`) says which. ``reward`` goes by the rewards of the verdicts: by the sum of those that
    were computed (of which ``length`` pays for length), or with ``reward_weights`` by their sum
    with these weights, the others left out. ``diverse`` takes the shortest, or with
    ``reward_weights`` the one best rewarded, then always the one least like those taken
    (`llmpipe.algo.diversity`), and none that is like one of them by ``threshold`` or more.

    ``pass_rate`` is a range "A:B" without its ends, as in filter, over the share of right ones
    among a problem's judged samples. ``per_bin`` is the most problems of each tenth of the pass
    rate, drawn by ``seed``. ``limit`` is the most answers in all: those of rarely solved problems
    come first, and ``seed`` says which of equal rate.

    ``drop`` names the rules (`llmpipe.algo.faults`) that answers are dropped by, ``keep`` those of
    them that they aren't.

    ``replace`` makes problems instead of rollouts: all of the set's, the text of the one answer
    preferred in the place of the solution. Where no answer was kept, the old solution stays, or
    without ``keep_old`` there is none.
    """

    per_problem: int | None = None
    prefer: str = "shortest"
    seed: int = 0
    reward_weights: Mapping[str, float] | None = None
    threshold: float = THRESHOLD
    pass_rate: str | None = None
    per_bin: int | None = None
    limit: int | None = None
    drop: tuple[str, ...] = RULES
    keep: tuple[str, ...] = ()
    replace: bool = False
    keep_old: bool = True


def run(
    config: Config,
    verdicts: Path,
    out: Path,
    mode: Mode,
    rollouts: Path | None = None,
    problems: Path | None = None,
) -> Result:
    """Keep right, complete, faultless answers, each text once.

    Rows keep the order of the rollouts, which is by problem and sample. Rejected rows are named
    PROBLEM/SAMPLE, with the first reason of: their status, pass_rate, not_stopped, a rule's name,
    duplicate_text, near_identical, over_per_problem, over_per_bin, over_limit. Of several turns the
    last answer counts: two rollouts are the same if their last turns are.

    The figures say how many problems passed each step, and how many were solved and kept by level,
    source and pass rate; level and source only where the problems can be found.

    With ``config.replace`` the rows are all of the problems, in order. An answer that took several
    turns does not stand alone and is rejected as several_turns.

    Raises:
        UserError: no verdicts there, the rollouts or problems can't be found or aren't theirs, a
            setting is out of range, or there is no reward to go by.
    """
    _check(config)
    judged = Artifact.open(verdicts, Verdict)
    sampled = judged.upstream(Rollout, rollouts)
    origins = _problems(config, judged, problems)
    inputs: dict[str, Input] = {"verdicts": judged, "rollouts": sampled}
    if config.replace and origins:
        inputs["problems"] = origins
    spec = Spec(
        stage="select",
        record=Problem if config.replace else Rollout,
        config=config,
        inputs=inputs,
        out=out,
        version=2,  # goes up when the rules in algo/ change what is kept
    )

    def build(writer: Writer) -> None:
        found = _read_verdicts(config, judged, writer)
        known = about(origins, judged, found) if origins else {}
        _rate(config, found, writer)
        _read_rollouts(config, sampled, judged, found, known, writer)
        _balance(config, found, writer)
        writer.figures |= _figures(config, found)
        if known:
            writer.figures["by_level"] = by_name((known[n].level, p) for n, p in found.items())
            writer.figures["by_source"] = by_name((known[n].source, p) for n, p in found.items())
        if config.replace and origins:
            _replace(config, origins, sampled, found, writer)
        else:
            _copy(sampled, judged, found, writer)
            # What the transcripts begin with; build-sft asks it of whatever rollouts it gets.
            writer.details["few_shot_messages"] = _examples(sampled)

    return execute(spec, build, mode)


def _check(config: Config) -> None:
    if config.prefer not in PREFER:
        raise UserError(f"prefer is {config.prefer!r}", f"one of: {', '.join(PREFER)}")
    for flag, number in (
        ("--per-problem", config.per_problem),
        ("--per-bin", config.per_bin),
        ("--limit", config.limit),
    ):
        if number is not None and number < 1:
            raise UserError(f"{flag} is {number}, and must be at least 1", f"{flag} 4")
    if not 0 < config.threshold <= 1:
        raise UserError(f"--threshold {config.threshold} is not within 0 and 1", "--threshold 0.8")
    if config.threshold != THRESHOLD and config.prefer != "diverse":
        raise UserError("--threshold needs --prefer diverse", "--prefer diverse")
    if config.reward_weights is not None:
        check_names(config.reward_weights, REWARDS, "--reward-weight")
        for name, weight in config.reward_weights.items():
            if isinstance(weight, bool | str) or not math.isfinite(weight):
                raise UserError(f"--reward-weight {name}={weight} is no number", f"{name}=0.5")
        if config.prefer not in ("reward", "diverse"):
            raise UserError("--reward-weight needs --prefer reward or diverse", "--prefer reward")
    if config.replace and config.per_problem is not None:
        raise UserError("--replace takes one answer a problem", "leave --per-problem out")
    if not config.keep_old and not config.replace:
        raise UserError("--no-keep-old is about the solutions of problems", "add --replace")
    rules_in_force(config.drop, config.keep, RULES)


def _problems(config: Config, judged: Artifact, given: Path | None) -> Artifact | None:
    """The problems; None where they can't be found and only figures are made of them."""
    try:
        return judged.upstream(Problem, given)
    except UserError as e:
        if given or config.replace:
            raise
        log.info("no figures by level and source: %s", e.message)
        return None


def _examples(rollouts: Artifact) -> dict[str, int]:
    return dict(rollouts.manifest.details.get("few_shot_messages", {}))


def _read_verdicts(config: Config, verdicts: Artifact, writer: Writer) -> dict[str, Solved]:
    problems: defaultdict[str, Solved] = defaultdict(Solved)
    by_reward = config.prefer == "reward" or config.reward_weights is not None
    columns = ["problem_id", "sample", "status", "detail", *(["rewards"] if by_reward else [])]
    for batch in verdicts.batches(columns):
        for row in batch.to_pylist():
            writer.read += 1
            problem = problems[row["problem_id"]]
            problem.judged += row["status"] != "error"
            name = f"{row['problem_id']}/{row['sample']}"
            if row["status"] != "correct":
                writer.reject(name, row["status"], row["detail"] or "")
                continue
            reward = weigh(row["rewards"] or {}, config.reward_weights) if by_reward else 0.0
            if reward is None:
                raise UserError(
                    f"{verdicts.path} has no {' and '.join(config.reward_weights or ['rewards'])} "
                    f"for {name}",
                    "--prefer shortest, or a --reward-weight of another reward",
                )
            problem.correct += 1
            problem.right[row["sample"]] = reward
            problem.passes("right")
        writer.progress(writer.read, verdicts.rows)
    return dict(problems)


def _rate(config: Config, problems: Mapping[str, Solved], writer: Writer) -> None:
    """Leave the problems alone whose pass rate is out of range."""
    low, high = rate_ends(config.pass_rate) if config.pass_rate else (-1.0, 2.0)
    for name, problem in problems.items():
        if not problem.correct:
            continue
        if low < problem.rate < high:
            problem.passes("pass_rate")
            continue
        for sample in problem.right:
            detail = f"{problem.correct} of {problem.judged} correct"
            writer.reject(f"{name}/{sample}", "pass_rate", detail)
        problem.right = {}


def _read_rollouts(
    config: Config,
    rollouts: Artifact,
    verdicts: Artifact,
    problems: Mapping[str, Solved],
    known: Mapping[str, About],
    writer: Writer,
) -> None:
    """Look at right answers, and choose among each problem's once all were seen."""
    screen = Screen(rules_in_force(config.drop, config.keep, RULES))
    examples = _examples(rollouts)
    for problem in problems.values():
        problem.unseen = len(problem.right)
    for row, messages, number in _right(rollouts, verdicts, problems):
        name, sample, text = row["problem_id"], row["sample"], row["completion"]
        problem = problems[name]
        problem.unseen -= 1
        finish = row["finish_reason"]
        if finish == "stop":
            problem.passes("complete")
        if config.replace and _turns(messages, examples.get(known[name].task, 0)) > 1:
            writer.reject(f"{name}/{sample}", "several_turns")
        elif drop := screen(name, sample, finish, Answer(text, partial(_asked, messages))):
            writer.reject(f"{name}/{sample}", drop.reason, drop.detail)
        else:
            candidate = Candidate(
                sample=sample,
                tokens=row["completion_tokens"],
                characters=len(text),
                row=number,
                reward=problem.right[sample],
                sketch=sketch(text) if config.prefer == "diverse" else None,
            )
            problem.candidates.append(candidate)
        if not problem.unseen:
            screen.forget(name)
            problem.right.clear()
            _choose(config, name, problem, writer)


def _right(
    rollouts: Artifact, verdicts: Artifact, problems: Mapping[str, Solved]
) -> Iterator[tuple[dict[str, Any], pa.ListScalar, int]]:
    """The rows of right answers, each with its messages, which few rules read, and its number."""
    wanted = {name: p.right for name, p in problems.items() if p.right}
    columns = ["problem_id", "sample", "finish_reason", "completion", "completion_tokens"]
    for batch, rows in wanted_batches(rollouts, verdicts, wanted, [*columns, "messages"]):
        yield from zip(
            batch.select(columns).to_pylist(), batch.column("messages"), rows.tolist(), strict=True
        )


def _asked(messages: pa.ListScalar) -> str:
    return asked(messages.as_py())


def _turns(messages: pa.ListScalar, examples: int) -> int:
    return answers(without_examples(messages.as_py(), examples))


def _choose(config: Config, name: str, problem: Solved, writer: Writer) -> None:
    """Keep the answers that are preferred; what is known of the others is let go."""
    if not problem.candidates:
        return
    problem.passes("faultless")
    kept, drops = choose(
        ranked(name, problem.candidates, config.prefer, config.seed),
        1 if config.replace else config.per_problem,
        config.threshold if config.prefer == "diverse" else None,
    )
    problem.kept = {candidate.sample: candidate.row for candidate in kept}
    problem.candidates = []
    for sample, drop in drops.items():
        writer.reject(f"{name}/{sample}", drop.reason, drop.detail)


def _balance(config: Config, problems: Mapping[str, Solved], writer: Writer) -> None:
    """At most so many problems of each bin, and so many answers in all."""

    def drop(name: str, samples: Iterable[int], reason: str, detail: str = "") -> None:
        for sample in samples:
            writer.reject(f"{name}/{sample}", reason, detail)
            del problems[name].kept[sample]

    drawn = sorted((n for n, p in problems.items() if p.kept), key=lambda n: draw(config.seed, n))
    taken: Counter[str] = Counter()
    for name in drawn:
        problem = problems[name]
        taken[problem.bin] += 1
        if config.per_bin is not None and taken[problem.bin] > config.per_bin:
            drop(name, list(problem.kept), "over_per_bin", f"pass rate {problem.bin}")
        else:
            problem.passes("per_bin")
    left = config.limit
    for name in sorted(drawn, key=lambda n: problems[n].rate):  # of equal rate as drawn
        problem = problems[name]
        if left is not None:
            drop(name, list(problem.kept)[left:], "over_limit")
            left -= len(problem.kept)
        if problem.kept:
            problem.passes("limit")


def _copy(
    rollouts: Artifact, verdicts: Artifact, problems: Mapping[str, Solved], writer: Writer
) -> None:
    kept = {name: p.kept for name, p in problems.items() if p.kept}
    for batch, _ in wanted_batches(rollouts, verdicts, kept, Rollout.SCHEMA.names):
        writer.add_batch(batch)


def _replace(
    config: Config,
    origins: Artifact,
    rollouts: Artifact,
    problems: Mapping[str, Solved],
    writer: Writer,
) -> None:
    """Write the problems with the answers that were kept as their solutions."""
    groups = RowGroups([rollouts])
    counts = Counter(replaced=0, kept_old=0, without=0)
    place = Problem.SCHEMA.get_field_index("solution")
    for batch in origins.batches(Problem.SCHEMA.names):
        found = [problems.get(name) for name in batch.column("id").to_pylist()]
        rows = [next(iter(p.kept.values())) if p and p.kept else None for p in found]
        taken = [row for row in rows if row is not None]
        texts = iter(
            groups.take(taken, ["completion"]).column("completion", taken) if taken else ()
        )
        solutions = []
        for row, text in zip(rows, batch.column(place).to_pylist(), strict=True):
            old = text if config.keep_old else None
            solutions.append(old if row is None else next(texts))
            has_old = bool((old or "").strip())
            counts["replaced" if row is not None else "kept_old" if has_old else "without"] += 1
        writer.add_batch(
            batch.set_column(place, Problem.SCHEMA.field(place), pa.array(solutions, pa.string()))
        )
    writer.figures |= counts
    if not counts["replaced"]:
        writer.attention = "select replaced no solution: no answer was kept"


def _figures(config: Config, problems: Mapping[str, Solved]) -> dict[str, Any]:
    all_ = list(problems.values())
    rates = [p.rate for p in all_ if p.judged]
    kept = sum(bool(p.kept) for p in all_)
    asked_for = {s: getattr(config, s) is not None for s in ("pass_rate", "per_bin", "limit")}
    return {
        "problems": len(all_),
        "solved": sum(p.correct > 0 for p in all_),
        "kept_problems": kept,
        "coverage": round(kept / len(all_), 4) if all_ else 0.0,
        "mean_pass_rate": round(sum(rates) / len(rates), 4) if rates else 0.0,
        "never_solved": sum(not p.correct for p in all_),
        "always_solved": sum(0 < p.judged == p.correct for p in all_),
        "by_step": by_step(all_, (s for s in STEPS if asked_for.get(s, True))),
        "by_pass_rate": by_name((p.bin, p) for p in all_ if p.correct),
    }
