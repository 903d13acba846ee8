"""Make SFT conversations of selected rollouts, or of problems with their own solutions.

The ``merged`` form: one conversation a row, with loss on every turn of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from llmpipe.algo.transcripts import split_system, without_examples
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Conversation, Message, Problem, Rollout, TrainMessage
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute
from llmpipe.tasks import ask

TURNS = ("merged",)


@dataclass(frozen=True, kw_only=True)
class Config:
    """``turns`` is one of `TURNS`.

    ``system`` takes the place of the system message, or is put first where there is none.
    ``keep_few_shot`` keeps the worked examples of the prompt, without loss.
    """

    turns: str = "merged"
    system: str | None = None
    keep_few_shot: bool = False


def run(
    config: Config, source: Path, out: Path, mode: Mode, problems: Path | None = None
) -> Result:
    """Conversations from rollouts (all of them: `select` chooses) or from problems.

    From a rollout: its transcript without worked examples, the answer's turns with loss. Its
    problem says the source; how many messages are worked examples stands in the rollouts' manifest.
    From a problem: its prompt with the task's instruction, and its solution.

    Raises:
        UserError: other rows there, a lineage that leads to no problems, or an unknown form.
    """
    if config.turns not in TURNS:
        raise UserError(f"turns is {config.turns!r}", f"one of: {', '.join(TURNS)}")
    rows = Artifact.open(source, Rollout, Problem)
    if rows.manifest.record == Problem.__name__:
        return _from_problems(config, rows, out, mode)
    return _from_rollouts(config, rows, rows.upstream(Problem, problems), out, mode)


def _from_problems(config: Config, problems: Artifact, out: Path, mode: Mode) -> Result:
    tasks: set[str] = set()
    for batch in problems.batches(["task"]):
        tasks.update(pc.unique(batch.column(0)).to_pylist())
    spec = _spec(config, {"problems": problems}, out, tasks)

    def build(writer: Writer) -> None:
        writer.figures["trained_turns"] = 0
        for problem in problems.iter_rows(Problem):
            writer.read += 1
            writer.progress(writer.read, problems.rows)
            if not (problem.solution or "").strip():
                writer.reject(problem.id, "no_solution")
                continue
            messages = _with_system(
                config,
                [
                    {"role": "user", "content": ask(problem.task, problem.prompt)},
                    {"role": "assistant", "content": problem.solution or ""},
                ],
            )
            _add(writer, problem.id, problem.id, problem.source, messages, untrained=0)

    return execute(spec, build, mode)


def _from_rollouts(
    config: Config, rollouts: Artifact, problems: Artifact, out: Path, mode: Mode
) -> Result:
    shots: Mapping[str, int] = rollouts.manifest.details.get("few_shot_messages", {})
    spec = _spec(config, {"rollouts": rollouts, "problems": problems}, out)

    def build(writer: Writer) -> None:
        writer.figures["trained_turns"] = 0
        origins = {id_: (task, source) for id_, task, source in _origins(problems)}
        for batch in rollouts.batches(["problem_id", "sample", "messages"]):
            for row in batch.to_pylist():
                writer.read += 1
                name, messages = row["problem_id"], row["messages"]
                if name not in origins:
                    raise UserError(
                        f"{problems.path} has no problem {name} of {rollouts.path}",
                        "give the problems that were sampled: --problems DIR",
                    )
                task, source = origins[name]
                count = shots.get(task, 0)
                if not config.keep_few_shot:
                    messages, count = without_examples(messages, count), 0
                _add(
                    writer,
                    f"{name}-{row['sample']}",
                    name,
                    source,
                    _with_system(config, messages),
                    untrained=count,
                )
            writer.progress(writer.read, rollouts.rows)

    return execute(spec, build, mode)


def _spec(
    config: Config, inputs: Mapping[str, Input], out: Path, tasks: Iterable[str] = ()
) -> Spec:
    return Spec(
        stage="build-sft",
        record=Conversation,
        config=config,
        inputs=inputs,
        out=out,
        plugins=[("tasks", task) for task in sorted(tasks)],
    )


def _origins(problems: Artifact) -> Iterator[tuple[str, str, str]]:
    for batch in problems.batches(["id", "task", "source"]):
        yield from zip(*(c.to_pylist() for c in batch.columns), strict=True)


def _with_system(config: Config, messages: Sequence[Message]) -> Sequence[Message]:
    if not config.system:
        return messages
    return [{"role": "system", "content": config.system}, *split_system(messages)[1]]


def _add(
    writer: Writer,
    id_: str,
    problem: str,
    source: str,
    messages: Sequence[Message],
    *,
    untrained: int,
) -> None:
    """Keep a conversation with loss on the assistant's turns after the first ``untrained``
    messages (the system's not counted), or say what is wrong with it."""
    system, turns = split_system(messages)
    fault = _fault(messages, turns[untrained:])
    if fault:
        writer.reject(id_, fault.reason, fault.detail)
        return
    first = len(system) + untrained
    writer.figures["trained_turns"] += sum(m["role"] == "assistant" for m in turns[untrained:])
    trained: list[TrainMessage] = [
        {**m, "train": i >= first and m["role"] == "assistant"} for i, m in enumerate(messages)
    ]
    writer.add(Conversation(id=id_, problem_id=problem, source=source, messages=trained))


def _fault(messages: Sequence[Message], answered: Sequence[Message]) -> Drop | None:
    """What keeps a conversation from being trained on. ``answered`` is where loss may lie."""
    if not any(m["role"] == "assistant" for m in answered):
        return Drop(reason="no_assistant")
    roles = [m["role"] for m in split_system(messages)[1]]
    if roles != ["user", "assistant"] * (len(roles) // 2):
        return Drop(reason="bad_roles", detail=" ".join(roles))
    for i, message in enumerate(messages):
        if not message["content"].strip():
            return Drop(reason="empty_turn", detail=f"turn {i}, {message['role']}")
    return None
