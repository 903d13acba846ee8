"""Preference pairs: a right answer over a wrong one to the same prompt, of like length.

Three passes, so that no text is held: the verdicts say which problems have answers of both kinds, a
look at the rollouts says how long these are, and the texts of those that make pairs are put
together, problem by problem.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from llmpipe.algo.faults import FAULTS, Answer, Screen
from llmpipe.algo.pairing import match
from llmpipe.algo.selection import Candidate, lengths
from llmpipe.algo.transcripts import asked, without_examples
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.options import rules_in_force
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Message, Pair, Problem, Rollout, Verdict
from llmpipe.core.run import Mode, Result, Spec, Writer, execute
from llmpipe.core.wanted import About, about, wanted_batches

RULES = tuple(FAULTS)
"""What `Config.drop` may hold; all of them by default."""

REJECTED = ("wrong", "no_answer")
"""What `Config.rejected` may hold."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Which pairs to make.

    ``per_problem`` is the most pairs of one problem (as many as there are by default). The longer
    text of a pair is at most ``max_length_ratio`` times as long as the other. ``rejected`` are the
    statuses of the answers that may be rejected: wrong ones, which were read, and with no_answer
    those that gave none, from which form is learnt as well. ``drop`` names the rules
    (`llmpipe.algo.faults`) that right answers are dropped by, ``keep`` those that they aren't.
    """

    per_problem: int | None = None
    max_length_ratio: float = 1.5
    rejected: tuple[str, ...] = ("wrong",)
    drop: tuple[str, ...] = RULES
    keep: tuple[str, ...] = ()


@dataclass(slots=True)
class _Problem:
    """A problem's right and wrong samples, and what was seen of them by prompt, the wrong first."""

    right: set[int] = field(default_factory=set)
    wrong: set[int] = field(default_factory=set)
    unseen: int = 0
    by_prompt: dict[bytes, tuple[list[Candidate], list[Candidate]]] = field(default_factory=dict)
    pairs: list[tuple[int, int]] = field(default_factory=list)

    @property
    def both(self) -> set[int]:
        return self.right | self.wrong


def run(
    config: Config,
    verdicts: Path,
    out: Path,
    mode: Mode,
    rollouts: Path | None = None,
    problems: Path | None = None,
) -> Result:
    """Pairs of right and wrong answers to one prompt, each answer in one pair at most.

    `llmpipe.algo.pairing` says which go together. The prompt is what came before the last answer,
    without worked examples; rollouts of several turns make a pair only if all before it is the
    same (their earlier answers have no verdict, and make none). Answers that make none are rejected
    as PROBLEM/SAMPLE, with the first reason of: their status, no_wrong or no_right (the problem has
    answers of one kind), no_prompt, not_stopped, a rule's name, duplicate_text, no_partner (none of
    like length to the same prompt), over_per_problem.

    Lengths are in tokens, or in characters for all of a problem's answers where one has no count.
    The figures have the mean lengths of chosen and rejected answers, in characters where any were
    counted so, and ``length_ratio``, the geometric mean of chosen over rejected: 1 where length
    says nothing.

    Raises:
        UserError: no verdicts there, the rollouts or problems can't be found or aren't theirs, or a
            setting is out of range.
    """
    rules = _check(config)
    judged = Artifact.open(verdicts, Verdict)
    sampled = judged.upstream(Rollout, rollouts)
    origins = judged.upstream(Problem, problems)
    shots: Mapping[str, int] = sampled.manifest.details.get("few_shot_messages", {})
    spec = Spec(
        stage="build-pairs",
        record=Pair,
        config=config,
        inputs={"verdicts": judged, "rollouts": sampled, "problems": origins},
        out=out,
        version=1,  # goes up when the rules in algo/ change what is made
    )

    def build(writer: Writer) -> None:
        found = _read_verdicts(config, judged, writer)
        known = about(origins, judged, found)
        mixed = _mixed(found, writer)
        sums = _Lengths()
        examples = {name: shots.get(known[name].task, 0) for name in mixed}
        for name, problem in _seen(rules, sampled, judged, mixed, examples, writer):
            _pair(config, name, problem, sums, writer)
        writer.figures |= {
            "problems": len(found),
            "mixed": len(mixed),
            "paired": sum(bool(p.pairs) for p in mixed.values()),
            **sums.figures(),
        }
        _write(sampled, judged, mixed, examples, known, writer)

    return execute(spec, build, mode)


def _check(config: Config) -> set[str]:
    """The rules in force."""
    if config.per_problem is not None and config.per_problem < 1:
        raise UserError(
            f"--per-problem is {config.per_problem}, and must be at least 1", "--per-problem 4"
        )
    if not 1 <= config.max_length_ratio < math.inf:
        raise UserError(
            f"--max-length-ratio is {config.max_length_ratio}, and must be at least 1",
            "--max-length-ratio 1.5",
        )
    unknown = sorted(set(config.rejected) - set(REJECTED))
    if unknown or not config.rejected:
        raise UserError(
            f"--rejected {unknown[0] if unknown else 'nothing'} makes no pairs",
            "--rejected wrong, or --rejected wrong --rejected no_answer",
        )
    return rules_in_force(config.drop, config.keep, RULES)


def _read_verdicts(config: Config, verdicts: Artifact, writer: Writer) -> dict[str, _Problem]:
    problems: defaultdict[str, _Problem] = defaultdict(_Problem)
    for batch in verdicts.batches(["problem_id", "sample", "status", "detail"]):
        for row in batch.to_pylist():
            writer.read += 1
            problem = problems[row["problem_id"]]
            if row["status"] == "correct":
                problem.right.add(row["sample"])
            elif row["status"] in config.rejected:
                problem.wrong.add(row["sample"])
            else:
                name = f"{row['problem_id']}/{row['sample']}"
                writer.reject(name, row["status"], row["detail"] or "")
        writer.progress(writer.read, verdicts.rows)
    return dict(problems)


def _mixed(problems: Mapping[str, _Problem], writer: Writer) -> dict[str, _Problem]:
    """The problems with answers of both kinds."""
    mixed = {}
    for name, problem in problems.items():
        if problem.right and problem.wrong:
            problem.unseen = len(problem.both)
            mixed[name] = problem
            continue
        for sample in sorted(problem.both):
            writer.reject(f"{name}/{sample}", "no_wrong" if problem.right else "no_right")
    return mixed


def _seen(
    rules: set[str],
    rollouts: Artifact,
    verdicts: Artifact,
    problems: Mapping[str, _Problem],
    examples: Mapping[str, int],
    writer: Writer,
) -> Iterator[tuple[str, _Problem]]:
    """Each problem, once all its answers were looked at: by prompt, the right and the wrong."""
    screens = Screen(()), Screen(rules)
    wanted = {name: problem.both for name, problem in problems.items()}
    columns = [
        "problem_id", "sample", "messages", "completion", "finish_reason", "completion_tokens"
    ]  # fmt: skip
    for batch, rows in wanted_batches(rollouts, verdicts, wanted, columns):
        for row, number in zip(batch.to_pylist(), rows.tolist(), strict=True):
            name, sample, text = row["problem_id"], row["sample"], row["completion"]
            problem = problems[name]
            right = sample in problem.right
            prompt, last = _parts(row["messages"], examples[name])
            drop: Drop | None = Drop(reason="no_prompt")
            if any(m["role"] == "user" for m in prompt) and last[0]["role"] == "assistant":
                answer = Answer(text, partial(asked, prompt))
                drop = screens[right](name, sample, row["finish_reason"], answer)
            if drop:
                writer.reject(f"{name}/{sample}", drop.reason, drop.detail)
            else:
                key = hashlib.blake2b(json.dumps(prompt).encode(), digest_size=16).digest()
                kinds = problem.by_prompt.setdefault(key, ([], []))
                kinds[right].append(
                    Candidate(
                        sample=sample,
                        tokens=row["completion_tokens"],
                        characters=len(text),
                        row=number,
                    )
                )
            problem.unseen -= 1
            if not problem.unseen:
                for screen in screens:
                    screen.forget(name)
                yield name, problem
                problem.by_prompt = {}


class _Lengths:
    """Sums over pairs: of lengths in tokens and in characters, and of the ratios' logarithms."""

    def __init__(self) -> None:
        self._pairs = 0
        self._counted = True
        self._sums = np.zeros((2, 2))
        self._logs = 0.0

    def add(self, chosen: Candidate, rejected: Candidate, ratio: float) -> None:
        self._pairs += 1
        for place, answer in enumerate((chosen, rejected)):
            self._sums[place] += answer.tokens, answer.characters
            self._counted &= answer.tokens > 0
        self._logs += math.log(ratio)

    def figures(self) -> dict[str, float]:
        if not self._pairs:
            return {}
        unit = "tokens" if self._counted else "characters"
        means = self._sums[:, int(not self._counted)] / self._pairs
        return {
            f"chosen_{unit}_mean": round(float(means[0]), 1),
            f"rejected_{unit}_mean": round(float(means[1]), 1),
            "length_ratio": round(math.exp(self._logs / self._pairs), 4),
        }


def _pair(config: Config, name: str, problem: _Problem, sums: _Lengths, writer: Writer) -> None:
    """Choose a problem's pairs; what was seen of its answers is needed no more."""
    seen = [answer for kinds in problem.by_prompt.values() for kind in kinds for answer in kind]
    length = {sample: max(1, n) for sample, n in lengths(seen).items()}
    for wrong, right in problem.by_prompt.values():
        left = None if config.per_problem is None else config.per_problem - len(problem.pairs)
        for i, j in match(
            [length[c.sample] for c in right],
            [length[c.sample] for c in wrong],
            max_ratio=config.max_length_ratio,
            most=left,
        ):
            chosen, rejected = right[i], wrong[j]
            problem.pairs.append((chosen.sample, rejected.sample))
            sums.add(chosen, rejected, length[chosen.sample] / length[rejected.sample])
    paired = {sample for pair in problem.pairs for sample in pair}
    full = len(problem.pairs) == config.per_problem
    for answer in seen:
        if answer.sample not in paired:
            reason = "over_per_problem" if full else "no_partner"
            writer.reject(f"{name}/{answer.sample}", reason, f"length {length[answer.sample]}")


def _write(
    rollouts: Artifact,
    verdicts: Artifact,
    problems: Mapping[str, _Problem],
    examples: Mapping[str, int],
    known: Mapping[str, About],
    writer: Writer,
) -> None:
    """Put the pairs' texts together; a problem's are held until all were read."""
    wanted = {
        name: {sample for pair in problem.pairs for sample in pair}
        for name, problem in problems.items()
        if problem.pairs
    }
    texts: defaultdict[str, dict[int, Parts]] = defaultdict(dict)
    columns = ["problem_id", "sample", "messages"]
    for batch, _ in wanted_batches(rollouts, verdicts, wanted, columns):
        for row in batch.to_pylist():
            name = row["problem_id"]
            texts[name][row["sample"]] = _parts(row["messages"], examples[name])
            if len(texts[name]) < len(wanted[name]):
                continue
            said = texts.pop(name)
            for right, wrong in problems[name].pairs:
                prompt, chosen = said[right]
                writer.add(
                    Pair(
                        id=f"{name}-{right}-{wrong}",
                        problem_id=name,
                        source=known[name].source,
                        prompt=prompt,
                        chosen=chosen,
                        rejected=said[wrong][1],
                    )
                )


Parts = tuple[list[Message], list[Message]]


def _parts(messages: list[Message], examples: int) -> Parts:
    """What came before the last answer, without worked examples, and that answer."""
    return without_examples(messages[:-1], examples), messages[-1:]
