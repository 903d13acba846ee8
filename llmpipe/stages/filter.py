"""Keep the problems that can be checked and are of the wanted level and difficulty."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmpipe.algo.filter_steps import (
    VALUE,
    Reason,
    Step,
    cut_options,
    difficulty_step,
    length_step,
    level_step,
    rate_ends,
    rate_step,
    text_step,
    token_step,
)
from llmpipe.algo.prompts import load_tokenizer
from llmpipe.algo.rules import RULES as TEXT_RULES
from llmpipe.algo.tally import Tally
from llmpipe.core import plugins
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.options import rules_in_force
from llmpipe.core.pool import Failure
from llmpipe.core.protocols import Task
from llmpipe.core.records import Problem, Rollout, Verdict
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute
from llmpipe.tasks import gold_judges
from llmpipe.verifiers import LIBRARIES

RULES = (
    "malformed",
    "prompt_too_long",
    *TEXT_RULES,
    "answer_unparsable",
    "answer_unverifiable",
)
"""What `Config.drop` may hold, in the order they are asked; all of them by default."""

_SAMPLES = 3  # rows shown for each reason
_SHOWN = 160  # characters of a sample's prompt


@dataclass(frozen=True, kw_only=True)
class Config:
    """What to keep.

    ``levels`` is a comma list ("1,2", matched with the level's number or its whole text) or a range
    ("A:B") over the number in the level's text. ``difficulty`` is a range. These ranges include
    their ends, and either end may be left out.

    ``pass_rate`` is a range "A:B" without its ends (A < rate < B, as in open-r1's
    ``compute_pass_rate.py``), from 0 to 1 where they are left out: what the model always or never
    solves goes. A problem needs ``min_samples`` judged samples, by default as many as were asked
    for in the rollout.

    ``drop`` names the rules that rows are dropped by, ``keep`` those of them that they aren't.
    Where multiple_choice_value is in ``keep``, the list of options is cut out of such prompts, and
    those that then ask nothing are rejected by that name.
    A prompt is too long over 8,000 characters, or over ``max_prompt_tokens``.
    """

    levels: str | None = None
    difficulty: str | None = None
    pass_rate: str | None = None
    min_samples: int | None = None
    drop: tuple[str, ...] = RULES
    keep: tuple[str, ...] = ()
    max_prompt_tokens: int | None = None


def run(
    config: Config,
    problems: Path,
    out: Path,
    mode: Mode,
    *,
    verdicts: Path | None = None,
    tokenizer: Path | None = None,
) -> Result:
    """The rows of ``problems`` that pass, in order. The others are rejected by the first reason of:

    no_verdicts, too_few_samples, pass_rate, no_level, level, no_difficulty, difficulty, malformed
    (by the task's own check), prompt_too_long, the rules on a problem's text (`llmpipe.algo.rules`,
    for task math), answer_unparsable (the gold answer can't be read), answer_unverifiable (put in a
    box, it is not judged correct by its own verifier).

    With ``verdicts`` each problem's ``pass_rate`` is its share of correct answers (a truncated one
    is not correct; one with status error doesn't count), and ``difficulty``, where the problem has
    none, is 1 less that. A problem whose options were cut off has another id, that of its new
    prompt; its payload keeps the old one as ``uncut_id``.

    Raises:
        UserError: a range or a rule can't be read, a row's task isn't known, an option lacks the
            one it goes with, or it isn't known how many samples were asked for.
    """
    steps = _steps(config)
    _go_together("--pass-rate 0.1:0.9", config.pass_rate, "--verdicts DIR", verdicts)
    _go_together(
        "--max-prompt-tokens 1024", config.max_prompt_tokens, "--tokenizer MODEL", tokenizer
    )
    if config.min_samples is not None and config.pass_rate is None:
        raise UserError("--min-samples goes with --pass-rate", "--pass-rate 0.1:0.9")
    for flag, number in (
        ("--min-samples", config.min_samples),
        ("--max-prompt-tokens", config.max_prompt_tokens),
    ):
        if number is not None and number < 1:
            raise UserError(f"{flag} is {number}, and must be at least 1", f"{flag} 8")
    source = Artifact.open(problems, Problem)
    tasks = sorted(_tasks(source))
    inputs: dict[str, Input] = {"problems": source}
    if verdicts and config.pass_rate:
        ends = rate_ends(config.pass_rate)
        judged = inputs["verdicts"] = Artifact.open(verdicts, Verdict)
        least = config.min_samples or _asked_for(judged)
    if tokenizer:
        inputs |= {f"tokenizer/{f.name}": f for f in sorted(tokenizer.glob("tokenizer*.json"))}
    spec = Spec(
        stage="filter",
        record=Problem,
        config=config,
        inputs=inputs,
        out=out,
        version=4,  # goes up when the rules in algo/ change what is kept
        plugins=[(room, task) for task in tasks for room in ("tasks", "verifiers")],
        pinned=LIBRARIES,
    )

    def build(writer: Writer) -> None:
        if config.pass_rate:
            tally = _tally(judged)
            all_samples = tally.total()
            steps.insert(0, rate_step(tally, ends, least))
            share = all_samples.truncated / max(1, all_samples.judged)
            writer.figures["truncated_share"] = round(share, 4)
            writer.figures["verdict_errors"] = all_samples.errors
        if config.max_prompt_tokens and tokenizer:
            steps.append(token_step(load_tokenizer(tokenizer), config.max_prompt_tokens))
        rejects = _Rejects(writer)
        passing = _passing(source, steps, writer, rejects)
        if {"answer_unparsable", "answer_unverifiable"} & _dropped_by(config):
            _write_verifiable(passing, tasks, writer, rejects, _dropped_by(config))
        else:
            for _, problem in passing:
                writer.add(problem)
        writer.figures["kept_share"] = round(writer.kept / max(1, writer.read), 4)

    return execute(spec, build, mode)


def _go_together(flag: str, value: object, other: str, partner: object) -> None:
    if (value is None) != (partner is None):
        given, lacking = (flag, other) if partner is None else (other, flag)
        raise UserError(f"{given.split()[0]} needs {lacking.split()[0]}", f"{flag} {other}")


def _tasks(source: Artifact) -> set[str]:
    names: set[str] = set()
    for batch in source.batches(["task"]):
        names.update(batch.column("task").unique().to_pylist())
    for name in names:
        plugins.load("tasks", name)
    return names


class _Rejects:
    """Rejects rows, and puts the first few of each reason into the manifest's details."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._samples: dict[str, list[dict[str, str]]] = {}
        writer.details["samples"] = self._samples

    def __call__(self, problem: Problem, reason: str, detail: str) -> None:
        self._writer.reject(problem.id, reason, detail)
        samples = self._samples.setdefault(reason, [])
        if len(samples) < _SAMPLES:
            prompt = " ".join(problem.prompt[: 4 * _SHOWN].split())
            if len(prompt) > _SHOWN:
                prompt = f"{prompt[: _SHOWN - 3]}..."
            samples.append({"id": problem.id, "prompt": prompt, "detail": detail})


def _passing(
    source: Artifact, steps: list[Step], writer: Writer, rejects: _Rejects
) -> Iterator[tuple[Problem, Problem]]:
    """The problems that pass, as they were read and as they go on."""
    for problem in source.iter_rows(Problem):
        writer.read += 1
        passed = problem
        for step in steps:
            result = step(passed)
            if isinstance(result, tuple):
                rejects(problem, *result)
                break
            passed = result
        else:
            yield problem, passed
        if writer.read % 100 == 0:
            writer.progress(writer.read, source.rows)


def _write_verifiable(
    passing: Iterator[tuple[Problem, Problem]],
    tasks: list[str],
    writer: Writer,
    rejects: _Rejects,
    dropped_by: set[str],
) -> None:
    """Write the problems whose gold answer can be read and verifies against itself."""
    waiting: deque[tuple[Problem, Problem]] = deque()

    def calls() -> Iterator[tuple[Any, ...]]:
        for was, problem in passing:
            waiting.append((was, problem))
            yield problem.task, problem.answer, problem.payload

    with gold_judges(tasks) as pool:
        for score in pool.map(calls()):
            was, problem = waiting.popleft()
            kind = score.kind if isinstance(score, Failure) else score.status
            unread = problem.task == "math" and kind in ("error", "no_answer")
            reasons = ("answer_unparsable",) if unread else ()
            reason = next(filter(dropped_by.__contains__, (*reasons, "answer_unverifiable")), None)
            if kind == "correct" or reason is None:
                writer.add(problem)
            else:
                rejects(was, reason, f"{kind}: {score.detail}")


def _dropped_by(config: Config) -> set[str]:
    return rules_in_force(config.drop, config.keep, RULES)


def _steps(config: Config) -> list[Step]:
    rules = _dropped_by(config)
    steps: list[Step] = []
    if config.levels is not None:
        steps.append(level_step(config.levels))
    if config.difficulty is not None:
        steps.append(difficulty_step(config.difficulty))
    if "malformed" in rules:
        steps.append(_malformed)
    if "prompt_too_long" in rules and config.max_prompt_tokens is None:
        steps.append(length_step)
    if asked := {name: rule for name, rule in TEXT_RULES.items() if name in rules}:
        steps.append(functools.partial(text_step, rules=asked))
    if VALUE in config.keep:
        steps.append(cut_options)
    return steps


@functools.cache
def _task(name: str) -> Task:
    task: Task = plugins.load("tasks", name)
    return task


def _malformed(problem: Problem) -> Problem | Reason:
    why = _task(problem.task).malformed(problem)
    return ("malformed", why) if why else problem


def _tally(verdicts: Artifact) -> Tally:
    tally = Tally()
    for batch in verdicts.batches(["problem_id", "status"], batch_size=1 << 14):
        tally.add(*(column.to_pylist() for column in batch.columns))
    return tally


def _asked_for(verdicts: Artifact) -> int:
    """How many samples a problem the rollout behind the verdicts drew."""
    hint = "--min-samples N says how many judged samples a problem must have"
    try:
        asked = verdicts.upstream(Rollout).manifest.config.get("n")
    except UserError as e:
        raise UserError(e.message, hint) from None
    if not isinstance(asked, int):
        raise UserError(f"{verdicts.path} doesn't say how many samples were asked for", hint)
    return asked
