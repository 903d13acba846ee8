"""Supervised fine-tuning of all weights, or of an adapter, by TRL and PEFT."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import logging
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from llmpipe.algo.prompts import load_tokenizer
from llmpipe.core.errors import UserError
from llmpipe.core.libraries import needs
from llmpipe.core.records import TrainStep
from llmpipe.trainers import _accelerate
from llmpipe.trainers import _shared as shared
from llmpipe.trainers._adapters import adapter, check_targets, merged, save_adapter
from llmpipe.trainers._checkpoints import last_whole, remove_torn
from llmpipe.trainers._interrupt import Interrupt
from llmpipe.trainers._job import Job, Outcome, Settings, Watch
from llmpipe.trainers._launch import launched
from llmpipe.trainers._model import load_for_training, load_model
from llmpipe.trainers._weights import changed_share

log = logging.getLogger(__name__)

_HINT = "pip install 'llmpipe[train]'"
_COLUMNS = ["input_ids", "labels", "seq_lengths"]
_MOST_CHECKPOINTS = 2
_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
_FULL = {errno.ENOSPC, errno.EDQUOT}
# torch says no more of a full disk than that it isn't where it wanted to be.
_NO_SPACE = (
    "No space left",
    "Disk quota exceeded",
    "iostream error",
    "unexpected pos",
    "Not enough disk space",  # datasets, before it copies rows
)


class SftTrainer:
    """TRL's `SFTTrainer`, whose segments don't see each other (`_trl`)."""

    libraries = ("torch", "transformers", "trl", "peft", "accelerate", "datasets")

    def begun(self, folder: str) -> int | None:
        found = last_whole(Path(folder, "checkpoints"))
        return found[0] if found else None

    def layout(self, settings: Settings) -> str:
        given = settings.accelerate_config
        return _accelerate.read(Path(given)).layout if given else _accelerate.WHOLE

    def check(self, settings: Settings) -> None:
        for library in ("torch", "trl", "peft", "accelerate"):
            if not _installed(library):
                raise UserError(f"{library} is not installed", _HINT)
        if settings.lora and settings.lora.kind == "qlora" and not _installed("bitsandbytes"):
            raise UserError("bitsandbytes is not installed", "pip install bitsandbytes")
        _accelerate.check(settings)

    def train(self, job: Job, watch: Watch) -> Outcome:
        checkpoints = Path(job.folder, "checkpoints")
        remove_torn(checkpoints)
        train = launched if job.settings.accelerate_config else train_here
        try:
            return train(job, watch)
        except BaseException:
            remove_torn(checkpoints)  # where it filled the disk, it is to be gone
            raise


TRAINER = SftTrainer()


def train_here(job: Job, watch: Watch) -> Outcome:
    """Train in this process, with the others if it is one of several: see `Trainer.train`."""
    folder, resumed = Path(job.folder, "model"), last_whole(Path(job.folder, "checkpoints"))
    with _one_line(job.folder):
        trainer, dtype = prepare(job, begins=not resumed)
        parameters = shared.trained_parameters(trainer.model)  # whole only until they are shared
        shared.check(trainer, job.settings)
        _say(trainer)
        if resumed:
            log.info("going on from step %d of %d", resumed[0], trainer.args.max_steps)
        _run(trainer, watch, resumed[1] if resumed else None)
        steps = _log(trainer.state.log_history)
        figures = _figures(trainer, steps) | {"trained_parameters": parameters}
        details = _details(trainer)
        _save(trainer, job, dtype, folder)
        whole = not job.settings.lora or job.settings.lora.merge
        if whole and trainer.is_world_process_zero():
            figures["changed_weights"] = changed_share(Path(job.model), folder)
    return Outcome(folder=str(folder), steps=steps, figures=figures, details=details)


def prepare(job: Job, *, begins: bool) -> tuple[Any, Any]:
    """The trainer of a job, and the dtype that its model's weights are in.

    ``begins`` has it look at the held-out rows before the first step.

    Raises:
        UserError: no such libraries, or a model that can't be loaded or trained in this dtype.
    """
    with needs("trl", _HINT):
        _environment()
        import torch
        import transformers

        from llmpipe.trainers._trl import Collator, PackedTrainer
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    settings = job.settings
    _check_dtype(torch, settings)
    rows, held_out = _rows(job)
    in_epoch, total = _steps(settings, len(rows))
    # Before the model is: by them it is known how processes share it.
    arguments = _arguments(torch, job, in_epoch, total, begins=begins)
    model, dtype = load_for_training(job)
    if settings.lora:
        check_targets(model, settings.lora.targets)
    trainer = PackedTrainer(
        model=model,
        args=arguments,
        data_collator=Collator(pad_token_id=0),
        train_dataset=rows,
        eval_dataset=held_out,
        processing_class=load_tokenizer(Path(job.model)),
        peft_config=adapter(settings, total) if settings.lora else None,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer, dtype


def _run(trainer: Any, watch: Watch, checkpoint: Path | None) -> None:
    """Train to the end, or on Ctrl-C to the end of the step."""
    from llmpipe.trainers._trl import Follow

    folder = Path(trainer.args.output_dir)
    with Interrupt() as interrupt:
        trainer.add_callback(Follow(watch, interrupt, trainer))
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    done, wanted = trainer.state.global_step, trainer.args.max_steps
    if done < wanted:
        log.warning(
            "stopped: %d of %d steps are kept in %s; the same command goes on from there",
            done,
            wanted,
            folder,
        )
        raise KeyboardInterrupt


def _say(trainer: Any) -> None:
    """The train batch as DeepSpeed states it."""
    args = trainer.args
    log.info(
        "%d steps; train batch of %d rows = micro batch %d x accumulation %d x %d %s",
        args.max_steps,
        _train_batch(trainer),
        args.per_device_train_batch_size,
        args.gradient_accumulation_steps,
        args.world_size,
        "GPU" if trainer.model.device.type == "cuda" else trainer.model.device.type.upper(),
    )
    together = args.per_device_train_batch_size * args.world_size
    if twice := -len(trainer.train_dataset) % together if args.world_size > 1 else 0:
        log.info("an epoch learns %d of its rows twice: each process gets as many", twice)


def _train_batch(trainer: Any) -> int:
    args = trainer.args
    rows: int = args.per_device_train_batch_size * args.gradient_accumulation_steps
    return rows * int(args.world_size)


def _environment() -> None:
    """Before torch is there: threads that wait are not to stall others, and one GPU is used."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if "WORLD_SIZE" not in os.environ and visible != "":
        os.environ["CUDA_VISIBLE_DEVICES"] = visible.split(",")[0] if visible else "0"


def _check_dtype(torch: Any, settings: Settings) -> None:
    if settings.dtype != "bfloat16" or not torch.cuda.is_available():
        return
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        raise UserError(f"{torch.cuda.get_device_name()} has no bfloat16", "--dtype float32")


def _rows(job: Job) -> tuple[Any, Any]:
    """The rows to train on, and those held out: mapped into memory from a copy in the folder."""
    import datasets

    datasets.disable_progress_bars()
    columns = [*_COLUMNS, *(["loss_weights"] if job.weighted else [])]
    rows = datasets.Dataset.from_parquet(
        list(job.rows), columns=columns, cache_dir=str(Path(job.folder, "rows"))
    )
    if not job.held_out:
        return rows, None
    held_out = set(job.held_out)
    return (
        rows.select([i for i in range(len(rows)) if i not in held_out]),
        rows.select(sorted(held_out)),
    )


def _steps(settings: Settings, rows: int) -> tuple[int, int]:
    """Optimizer steps in an epoch and in all; an epoch's last takes what rows are left."""
    batch = settings.micro_batch_size * settings.gradient_accumulation * settings.processes
    in_epoch = math.ceil(rows / batch)
    return in_epoch, settings.max_steps or math.ceil(settings.epochs * in_epoch)


def _arguments(torch: Any, job: Job, in_epoch: int, total: int, *, begins: bool) -> Any:
    from trl import SFTConfig

    gpu, settings, evaluates = torch.cuda.is_available(), job.settings, bool(job.held_out)
    return SFTConfig(
        output_dir=str(Path(job.folder, "checkpoints")),
        max_steps=total,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=round(settings.warmup_ratio * total),
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        per_device_train_batch_size=settings.micro_batch_size,
        per_device_eval_batch_size=settings.micro_batch_size,
        gradient_accumulation_steps=settings.gradient_accumulation,
        bf16=settings.dtype == "bfloat16",
        gradient_checkpointing=settings.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        seed=settings.seed,
        data_seed=settings.seed,
        eval_strategy="steps" if evaluates else "no",
        eval_steps=in_epoch,
        eval_on_start=evaluates and begins,
        save_strategy="steps",
        save_steps=settings.save_every,
        save_total_limit=_MOST_CHECKPOINTS,
        logging_steps=1,
        logging_nan_inf_filter=False,  # else a loss that is no number reads as 0
        max_length=None,  # nothing is to be cut
        dataset_kwargs={"skip_prepare_dataset": True},
        remove_unused_columns=False,
        dataloader_pin_memory=gpu,
        disable_tqdm=True,
        report_to=[],
        use_cpu=not gpu,
    )


def _save(trainer: Any, job: Job, dtype: Any, folder: Path) -> None:
    """Weights in the dtype that the model came in, or an adapter's alone."""
    import torch

    lora = job.settings.lora
    model, whole = trainer.accelerator.unwrap_model(trainer.model), shared.gathered(trainer)
    if not trainer.is_world_process_zero():
        return
    if folder.exists():
        shutil.rmtree(folder)
    if lora:
        alone = Path(job.folder, "adapter") if lora.merge else folder
        save_adapter(model, job, alone, whole)
        if not lora.merge:
            return
        shared.leave()
        # The sum is taken in float32, of the weights as they came: not as they were quantized.
        model = merged(load_model(job, dtype=torch.float32)[0], alone)
    elif whole is not None:
        whole = {name: weights.to(dtype) for name, weights in whole.items()}
        model.save_pretrained(folder, state_dict=whole)
        return
    model.to(dtype).save_pretrained(folder)


def _log(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `TrainStep`: the held-out loss after a step is in the row of that step."""
    rows: dict[int, dict[str, Any]] = {}
    for entry in history:
        row = rows.setdefault(entry["step"], {"step": entry["step"]})
        row |= {f.name: entry[f.name] for f in fields(TrainStep) if f.name in entry}
    return list(rows.values())


def _figures(trainer: Any, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    import torch

    losses = [row["loss"] for row in steps if "loss" in row]
    held_out = [row["eval_loss"] for row in steps if "eval_loss" in row]
    tokens, seconds = steps[-1]["tokens"], steps[-1]["seconds"]
    figures = {
        "steps": trainer.state.global_step,
        "train_batch": _train_batch(trainer),
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "tokens": tokens,
        "tokens_per_second": round(tokens / seconds, 1) if seconds else None,
    }
    if held_out:
        figures |= {"eval_loss_first": held_out[0], "eval_loss": held_out[-1]}
    if torch.cuda.is_available():
        peak = torch.tensor([torch.cuda.max_memory_allocated()], device=trainer.args.device)
        figures["peak_gpu_bytes"] = int(trainer.accelerator.gather(peak).max())
    return figures


def _details(trainer: Any) -> dict[str, Any]:
    import torch

    gpu = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "attention": trainer.model.config._attn_implementation,
    }


def _installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


@contextlib.contextmanager
def _one_line(folder: str) -> Iterator[None]:
    """What the libraries raise where memory or space is out, as the user's to put right."""
    try:
        yield
    except UserError:
        raise
    except Exception as e:  # torch's, safetensors' and Python's own errors have no common class
        said = str(e)
        if isinstance(e, MemoryError) or any(word in said.lower() for word in _NO_MEMORY):
            raise UserError(
                "there is no memory for a step",
                "a smaller --micro-batch-size with more --gradient-accumulation, "
                "--gradient-checkpointing, --lora-rank 16, or llmpipe pack with a smaller "
                "--max-length",
            ) from e
        if getattr(e, "errno", None) in _FULL or any(word in said for word in _NO_SPACE):
            raise UserError(
                f"no more can be written in {folder}: no space left",
                "free some space; the same command goes on from the last checkpoint",
            ) from e
        raise
