"""Train a model on packed rows, resumable by checkpoint.

Checkpoints go to ``OUT.partial/training/``. A run that was killed goes on from the last whole one,
and ends with the weights of a run that wasn't. OUT is a model folder with the steps as its rows.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from llmpipe.algo.prompts import tokenizer_files
from llmpipe.core import fs
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.paths import context_length, downloaded_repo, read_config
from llmpipe.core.plugins import load
from llmpipe.core.provenance import stamp
from llmpipe.core.records import PackedRow, TrainStep
from llmpipe.core.run import Mode, Result, Spec, Writer, execute
from llmpipe.core.spec import changes, counted, plain
from llmpipe.trainers._accelerate import WHOLE, read
from llmpipe.trainers._job import Job, Lora, LoraKind, Outcome, Settings, Trainer

log = logging.getLogger(__name__)

_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "adapter_config.json")
_BEGUN = "begun.json"
_STATE = 12  # bytes of a float32 weight and its two moments in a checkpoint
_CHECKPOINTS = 3  # at once, while a new one is written


def plan(
    *,
    learning_rate: float | None = None,
    lora_rank: int | None = None,
    lora_alpha: float | None = None,
    lora_dropout: float | None = None,
    lora_targets: str | None = None,
    lora_kind: LoraKind | None = None,
    merge: bool = True,
    accelerate_config: Path | None = None,
    **rest: Any,
) -> Settings:
    """`Settings` from what the user gives, with a learning rate that fits what is trained.

    Raises:
        UserError: numbers out of range, settings of an adapter without its rank, or a config of
            Accelerate that can't be trained with.
    """
    lora = None
    if lora_rank is not None:
        lora = Lora(
            rank=lora_rank,
            alpha=2.0 * lora_rank if lora_alpha is None else lora_alpha,
            dropout=lora_dropout or 0.0,
            targets=tuple(t.strip() for t in (lora_targets or "").split(",") if t.strip()),
            kind=lora_kind or "lora",
            merge=merge,
        )
    elif (lora_alpha, lora_dropout, lora_targets, lora_kind, merge) != (*[None] * 4, True):
        raise UserError(
            "settings of an adapter are given, but no rank: all weights would be trained",
            "--lora-rank 16",
        )
    if learning_rate is None:
        learning_rate = 1e-4 if lora else 1e-5
    if accelerate_config:
        rest["accelerate_config"] = str(accelerate_config)
        rest["processes"] = read(accelerate_config).processes
    settings = Settings(learning_rate=learning_rate, lora=lora, **rest)
    _check_numbers(settings)
    return settings


def _check_numbers(settings: Settings) -> None:
    low, least, most = 0.0, 1.0, math.inf
    lora = settings.lora
    for name, value, lowest, below in (
        ("seed", settings.seed, low, 2.0**32),
        ("learning-rate", settings.learning_rate, low, most),
        ("max-steps", settings.max_steps, least, most),
        ("warmup-ratio", settings.warmup_ratio, low, least),
        ("weight-decay", settings.weight_decay, low, most),
        ("max-grad-norm", settings.max_grad_norm, low, most),
        ("micro-batch-size", settings.micro_batch_size, least, most),
        ("gradient-accumulation", settings.gradient_accumulation, least, most),
        ("eval-share", settings.eval_share, low, least),
        ("save-every", settings.save_every, least, most),
        ("lora-rank", lora.rank if lora else None, least, most),
        ("lora-alpha", lora.alpha if lora else None, low, most),
        ("lora-dropout", lora.dropout if lora else None, low, least),
    ):
        if value is not None and not lowest <= value < below:
            end = "" if below == most else f" and below {below:.10g}"
            raise UserError(
                f"{name} is {value}, but must be at least {lowest:g}{end}", "llmpipe train --help"
            )
    if not 0 < settings.epochs < most:
        raise UserError(f"epochs is {settings.epochs}, but must be over 0", "--epochs 2")


def run(config: Settings, packed: Path, model: Path, out: Path, mode: Mode) -> Result:
    """Train the model in the folder ``model`` on ``packed``, and make it a model folder.

    Weights are in the dtype that the model came in; all that isn't trained (the tokenizer, the chat
    template, config.json) is copied byte for byte. The loss is the mean over the trained tokens of
    a train batch; with `PackedRow.loss_weights` each token counts by its own.

    Raises:
        UserError: rows made with another tokenizer or longer than the model's context, no room for
            checkpoints, or an output begun with other settings.
    """
    trainer: Trainer = load("trainers", "sft")
    source = Artifact.open(packed, PackedRow)
    _check_rows(source, model)
    _check_model(source, model)
    if model.resolve() in out.resolve().parents:
        raise UserError(
            f"{out} is inside {model}, which would be another model with it", "choose another -o"
        )
    spec = Spec(
        stage="train",
        record=TrainStep,
        config=config,
        inputs={"packed": source, "model": model},
        out=out,
        libraries=trainer.libraries,
        keep_old=True,
    )

    def build(writer: Writer) -> None:
        trainer.check(config)
        folder = writer.partial / "training"
        with _going_on(spec, trainer, folder, mode):
            _check_disk(config, model, folder)
            outcome = trainer.train(_job(config, source, model, folder), writer.progress)
            _write(outcome, source, model, writer)

    return execute(spec, build, mode)


def _check_rows(source: Artifact, model: Path) -> None:
    """See that there is something to learn, in this model's own tokens."""
    if not source.rows or not source.manifest.figures.get("trained_tokens", 1):
        raise UserError(
            f"{source.path} has nothing to learn: no row with a trained token",
            f"llmpipe show {source.path} --rejects",
        )
    made = {
        role.removeprefix("tokenizer/"): entry["digest"]
        for role, entry in source.manifest.inputs.items()
        if role.startswith("tokenizer/")
    }
    here = {file.name: fs.digest(file) for file in tokenizer_files(model)}
    other = sorted(name for name in made.keys() | here.keys() if made.get(name) != here.get(name))
    if made and other:
        raise UserError(
            f"{source.path} was packed with another tokenizer than {model} has ({other[0]})",
            f"llmpipe pack SFT -o OUT --tokenizer {model}",
        )


def _check_model(source: Artifact, model: Path) -> None:
    length, most = source.manifest.config.get("max_length", 0), context_length(model)
    if most is not None and length > most:
        raise UserError(
            f"{source.path} was packed to {length} tokens, but {model} has a context of {most}",
            f"llmpipe pack SFT -o OUT --max-length {most}",
        )
    if read_config(model).get("quantization_config"):
        raise UserError(
            f"the weights in {model} are quantized: they can't be trained",
            "train the model that it was made from; --lora-kind qlora quantizes by itself",
        )


def _check_disk(config: Settings, model: Path, folder: Path) -> None:
    """See that the checkpoints will have room; of what is there already, the disk knows."""
    weights = sum(file.stat().st_size for file in model.glob("*.safetensors"))
    settings = read_config(model)
    each = 4 if settings.get("dtype", settings.get("torch_dtype")) == "float32" else 2
    needed = weights
    if not config.lora:
        needed += _CHECKPOINTS * _STATE * weights // each
    here = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    free = shutil.disk_usage(folder).free + here
    if free < needed:
        raise UserError(
            f"checkpoints and weights take up to {fs.size(needed)}, "
            f"and the disk of {folder.parent} has {fs.size(free)} free",
            "free some space, choose an -o on a larger disk, or --lora-rank 16",
        )


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@contextlib.contextmanager
def _going_on(spec: Spec, trainer: Trainer, folder: Path, mode: Mode) -> Iterator[None]:
    """A folder to train in, with the checkpoints of a run of the same settings and inputs.

    Those of a run that a forced one takes the place of are moved aside, not deleted. A run that
    ends without a checkpoint leaves nothing.

    Raises:
        UserError: the checkpoints there are of a run with other settings or inputs.
    """
    header = folder / _BEGUN
    begun = _read(header) if header.is_file() and trainer.begun(str(folder)) is not None else {}
    if begun:
        begun = {"layout": WHOLE, **begun, "config": counted(spec.config, begun["config"])}
    fresh = mode.force or bool(begun.get("fresh"))
    now = {
        "version": spec.version,
        "config": counted(spec.config, plain(spec.config)),
        "inputs": {
            role: value.digest if isinstance(value, Artifact) else fs.digest(value)
            for role, value in spec.inputs.items()
        },
        "fresh": fresh,
        "layout": trainer.layout(spec.config),
    }
    if begun and begun != now:
        _put_aside(begun, now, spec, folder, mode)
        begun = {}
    if not begun:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        fs.write_json(header, now)
    try:
        yield
    except BaseException:
        if trainer.begun(str(folder)) is None:
            shutil.rmtree(folder)
        raise


def _put_aside(
    begun: Mapping[str, Any], now: Mapping[str, Any], spec: Spec, folder: Path, mode: Mode
) -> None:
    if not (mode.force or mode.remake):
        changed = changes(begun["config"], now["config"])
        changed += [
            f"another {role}" for role, d in now["inputs"].items() if begun["inputs"].get(role) != d
        ]
        if begun["layout"] != now["layout"]:
            changed.append(f"checkpoints were {begun['layout']}, are now {now['layout']}")
        raise UserError(
            f"{folder.parent} was begun with other settings: "
            f"{'; '.join(changed) or 'by other code of llmpipe'}",
            "go on with those, choose another -o, or --force to keep them aside and start over",
        )
    kept = spec.out.with_name(f"{spec.out.name}.old-{stamp()}")
    folder.rename(kept)
    log.info("checkpoints begun under other settings are kept at %s", kept)


def _job(config: Settings, source: Artifact, model: Path, folder: Path) -> Job:
    rows = source.rows
    held_out = math.ceil(config.eval_share * rows)
    if held_out == rows:
        raise UserError(
            f"{source.path} has {rows} rows: none is left to train on", "a smaller --eval-share"
        )
    shuffled = np.random.default_rng(config.seed).permutation(rows)
    first = next(source.batches(["loss_weights"], batch_size=1))
    return Job(
        settings=config,
        model=str(model),
        base_name=downloaded_repo(model) or str(model),
        rows=[str(file) for file in source.data_files()],
        held_out=sorted(shuffled[:held_out].tolist()),
        weighted=first.column(0).null_count == 0,
        folder=str(folder),
    )


def _write(outcome: Outcome, source: Artifact, model: Path, writer: Writer) -> None:
    """The model's files beside the steps: new weights, and all else as it was."""
    made = Path(outcome.folder)
    whole = not (made / "adapter_config.json").exists()
    for file in sorted({f for pattern in _WEIGHTS for f in made.glob(pattern)}):
        shutil.copymode(made.parent / _BEGUN, file)  # safetensors lets nobody else read its files
        file.rename(writer.file(file.name))
    kept = tokenizer_files(model)
    if whole:
        kept += [model / "config.json", model / "generation_config.json"]
    for file in kept:
        if file.is_file():
            shutil.copyfile(file, writer.file(file.name))
    for step in outcome.steps:
        writer.add(TrainStep.from_row(step))
    writer.read = source.rows
    writer.figures |= outcome.figures
    if outcome.figures.get("changed_weights") == 0:
        writer.attention = (
            f"the weights are still those of {model}: in their precision the updates are too small "
            "to be seen; a higher --learning-rate, or more --epochs"
        )
    writer.details |= outcome.details
