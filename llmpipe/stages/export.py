"""Write rows as a trainer reads them, with a README that says how to start it."""

from __future__ import annotations

import itertools
import logging
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load, names
from llmpipe.core.protocols import Drop, Export, Exporter, Shape
from llmpipe.core.records import Conversation, Message, Problem, foreign
from llmpipe.core.run import Mode, Result, Spec, Writer, execute
from llmpipe.tasks import opening

log = logging.getLogger(__name__)

_BATCH = 256  # rows turned at a time
_TOOLS = pa.field("tools", pa.string())

# What a trainer can be told to learn from (`Loss`), by what rows ask for.
_SERVES: Mapping[str | None, AbstractSet[str]] = {
    "all": {"all", "one"},
    "last": {"last", "one"},
    "each": {"all", "last", "one", "some"},
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """``to`` is the name of an exporter.

    ``system`` is a message put before problems, and ``prompt_template`` how they are put, as in
    `llmpipe.tasks.ask`.
    """

    to: str
    system: str | None = None
    prompt_template: str | None = None


def run(config: Config, source: Path, out: Path, mode: Mode) -> Result:
    """The rows of ``source`` as ``config.to`` reads them.

    A conversation that asks for loss on other turns than the trainer can be told of, that has
    tools where it takes none, or a mask of single tokens, is dropped and counted: trained on, it
    would teach something else than it says.

    Raises:
        UserError: no such exporter, or none of its forms is for such rows.
    """
    exporter: Exporter = load("exporters", config.to)
    rows = Artifact.open(source)
    record = rows.manifest.record
    shapes = [shape for shape in exporter.shapes if shape.record == record]
    if not shapes:
        raise UserError(
            f"{config.to} has no form for the {record} rows of {source}", _others(record, source)
        )
    if record != Problem.__name__ and (config.system or config.prompt_template):
        raise UserError(
            f"--system and --prompt-template are for problems, and {source} has {record} rows",
            "rollout puts both into its prompts, and build-sft --system into conversations",
        )
    is_chat = record == Conversation.__name__
    asked, tools = _survey(rows) if is_chat else (Counter[str](), False)
    shape = _fitting(shapes, asked)
    schema = shape.schema.append(_TOOLS) if shape.tools and tools else shape.schema
    spec = Spec(
        stage="export",
        record=foreign(schema),
        config=config,
        inputs={"rows": rows},
        out=out,
        plugins=[("exporters", config.to)],
        lines=exporter.lines,
    )

    def build(writer: Writer) -> None:
        if rows.manifest.config.get("loss_weights") and "loss_weights" not in schema.names:
            log.warning("%s takes no loss weights: those of %s are left out", config.to, source)
        if shape.row is None:
            for batch in rows.batches(schema.names):
                writer.read += batch.num_rows
                writer.add_batch(batch)
                writer.progress(writer.read, rows.rows)
        else:
            for batch in _turned(config, rows, shape, shape.row, writer):
                writer.add_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
        for name, text in _beside(config, exporter, shape, schema, rows, out).items():
            writer.attach(name, text)

    return execute(spec, build, mode)


def _others(record: str, source: Path) -> str:
    fit = [n for n in names("exporters") if record in {s.record for s in _shapes(n)}]
    if not fit:
        return f"export what it was made from: llmpipe show {source}"
    return f"llmpipe export {source} --to {' or '.join(fit)}"


def _shapes(name: str) -> Sequence[Shape]:
    exporter: Exporter = load("exporters", name)
    return exporter.shapes


def _survey(rows: Artifact) -> tuple[Counter[str], bool]:
    """How many conversations ask for which loss, and whether any has tools."""
    asked: Counter[str] = Counter()
    tools = False
    for batch in rows.batches(["messages", "tools"]):
        messages = batch.column("messages")
        turns = messages.flatten()
        roles, trains = (turns.field(name).to_pylist() for name in ("role", "train"))
        bounds = messages.offsets.to_pylist()
        first = bounds[0]
        for start, end in itertools.pairwise(bounds):
            here = slice(start - first, end - first)
            asked[_loss(roles[here], trains[here])] += 1
        tools = tools or batch.column("tools").null_count < batch.num_rows
    return asked, tools


def _loss(roles: Sequence[str], trains: Sequence[bool]) -> str:
    """Which turns of a conversation are trained: one that it has, all, the last, or some."""
    own = [train for role, train in zip(roles, trains, strict=True) if role == "assistant"]
    last = bool(own) and own[-1] and roles[-1] == "assistant"
    if len(own) == 1:
        return "one" if last else "some"
    if own and all(own):
        return "all"
    return "last" if last and sum(own) == 1 else "some"


def _fitting(shapes: Sequence[Shape], asked: Counter[str]) -> Shape:
    """The first shape that serves most conversations."""
    served = [sum(asked[kind] for kind in _SERVES.get(s.loss, ())) for s in shapes]
    return shapes[served.index(max(served))]


def _turned(
    config: Config,
    rows: Artifact,
    shape: Shape,
    turn: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    writer: Writer,
) -> Iterator[list[Mapping[str, Any]]]:
    for batch in rows.batches(batch_size=_BATCH):
        kept: list[Mapping[str, Any]] = []
        for row in batch.to_pylist():
            index, writer.read = writer.read, writer.read + 1
            if shape.record == Problem.__name__:
                row = {**row, "index": index, "messages": _asked(config, Problem.from_row(row))}
            fault = _fault(shape, row) if shape.record == Conversation.__name__ else None
            if fault:
                writer.reject(row["id"], fault.reason, fault.detail)
                continue
            made = dict(turn(row))
            kept.append({**made, "tools": row["tools"]} if shape.tools else made)
        yield kept
        writer.progress(writer.read, rows.rows)


def _asked(config: Config, problem: Problem) -> list[Message]:
    return opening(problem, system=config.system, template=config.prompt_template)


def _fault(shape: Shape, row: Mapping[str, Any]) -> Drop | None:
    """Why a trainer that reads such rows would not learn what this one asks for."""
    messages = row["messages"]
    loss = _loss([m["role"] for m in messages], [m["train"] for m in messages])
    if row["token_ids"] is not None:
        return Drop(
            reason="single_tokens_masked", detail="messages can't say it: pack, --to trl-packed"
        )
    if loss not in _SERVES[shape.loss]:
        turns = [str(i) for i, m in enumerate(messages) if m["train"]]
        return Drop(
            reason="loss_elsewhere",
            detail=f"turns {', '.join(turns)} are trained, not {shape.loss}: pack, --to trl-packed",
        )
    if row["tools"] is not None and not shape.tools:
        return Drop(reason="tools_not_taken", detail="the trainer's form has no place for them")
    return None


def _beside(
    config: Config,
    exporter: Exporter,
    shape: Shape,
    schema: pa.Schema,
    rows: Artifact,
    out: Path,
) -> dict[str, str]:
    """The README, and what else the trainer wants beside the rows."""
    folder = shlex.quote(out.name)
    export = Export(
        name=out.name,
        folder=folder,
        data=f"{folder}/data/*.{'jsonl' if exporter.lines else 'parquet'}",
        columns=schema.names,
        longest=rows.manifest.figures.get("max_length"),
    )
    head = f"""\
# Rows for {exporter.trainer}

Made by `llmpipe export --to {config.to}` from {rows.manifest.record} rows; `manifest.json` says
which. The commands are run from the folder that `{out.name}` is in.

"""
    return {"README.md": head + shape.guide(export), **(shape.files(export) if shape.files else {})}
