"""TRL's `SFTTrainer` on packed rows, with loss weights, an exact eval loss, and sealed checkpoints.

TRL has no loss weights, takes the mean of micro batches' means for its eval loss, and tells its
makers of every run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback
from trl import SFTTrainer
from trl.trainer import utils
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

from llmpipe.core.errors import UserError
from llmpipe.trainers._adapters import keep_ranks, restore_ranks
from llmpipe.trainers._checkpoints import seal
from llmpipe.trainers._interrupt import Interrupt
from llmpipe.trainers._job import Watch


@dataclass
class Collator(DataCollatorForLanguageModeling):  # type: ignore[misc]
    """Rows end to end as one sequence, whose positions begin again with each segment."""

    padding_free: bool = True

    def torch_call(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = super().torch_call(examples)
        if "loss_weights" in examples[0]:
            weights = [torch.tensor(e["loss_weights"], dtype=torch.float32) for e in examples]
            batch["loss_weights"] = torch.cat(weights)[None]
        return batch


def _skip_untrained_on_cpus() -> None:
    """Have TRL compute no probabilities of tokens that have no loss on CPUs, too.

    It leaves them out on GPUs only, for the sake of devices that compile each number of tokens
    anew. Of a step of a small model on a CPU they take a quarter.
    """
    original = getattr(utils, "_use_triton", None)
    if original:  # it is TRL's own affair, and without it a step only takes longer
        utils._use_triton = lambda device: device.type == "cpu" or original(device)


_skip_untrained_on_cpus()


class PackedTrainer(SFTTrainer):  # type: ignore[misc]
    """The loss is the mean over the trained tokens of a train batch, weighed where they are."""

    def _send_telemetry(self) -> None:
        """Nobody is told."""

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Checkpoints need none."""

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: Any) -> Any:
        """The micro batches of a step, their weights scaled to the mean 1 over its tokens."""
        batches, tokens = super().get_batch_samples(epoch_iterator, num_batches, device)
        if batches and "loss_weights" in batches[0]:
            weight = sum(batch["loss_weights"].sum() for batch in batches)
            weight = self.accelerator.gather(weight.to(device)).sum()
            for batch in batches:
                batch["loss_weights"] = batch["loss_weights"] * (tokens / weight)
        return batches, tokens

    def compute_loss(
        self,
        model: Any,
        inputs: Any,
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        inputs = dict(inputs)
        weights = inputs.pop("loss_weights", None)
        penalty = None

        def forward(**given: Any) -> Any:
            nonlocal penalty
            outputs = model(**given)
            if self.adaptive:
                # PEFT adds AdaLoRA's own term to a loss that TRL doesn't look at.
                mean = -outputs.log_probs.sum() / outputs.label_mask.sum().clamp(min=1)
                penalty = outputs.loss - mean
            if weights is not None:
                outputs.log_probs = outputs.log_probs * weights[:, 1:]
            return outputs

        loss = super().compute_loss(forward, inputs, num_items_in_batch=num_items_in_batch)
        if self.model.training and penalty is not None:
            loss = loss + penalty / self.current_gradient_accumulation_steps
        return loss

    @property
    def adaptive(self) -> bool:
        """Whether ranks move from map to map as training goes on."""
        return getattr(self.model, "peft_type", None) == "ADALORA"

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if self.adaptive:
            restore_ranks(self.model, Path(resume_from_checkpoint))
        else:
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def evaluate(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> Any:
        """The mean loss over the trained tokens of all held-out rows."""
        model = self.model_wrapped  # which computes in the dtype that training does
        training = model.training
        model.eval()
        sums = torch.zeros(2, dtype=torch.float64, device=self.args.device)
        for batch, counts in self._held_out():
            batch = self._prepare_inputs(batch)
            weights = batch.pop("loss_weights", None)
            with torch.no_grad(), self.compute_loss_context_manager():
                outputs = model(**batch, use_cache=False, fused_lm_head=True)
            weights = outputs.label_mask if weights is None else weights[:, 1:]
            sums += counts * torch.stack(
                [-(outputs.log_probs.double() * weights).sum(), weights.double().sum()]
            )
        total, weight = self.accelerator.reduce(sums).tolist()
        metrics = {f"{metric_key_prefix}_loss": total / weight}
        model.train(training)
        self.log(dict(metrics))
        return metrics

    def _held_out(self) -> Iterator[tuple[dict[str, Any], int]]:
        """This process's batches, and 0 for one that only keeps it in step with the others."""
        rows, size = self.eval_dataset, self.args.per_device_eval_batch_size
        starts = range(0, len(rows), size)
        for first in range(0, len(starts), self.args.world_size):
            mine = first + self.args.process_index
            counts = mine < len(starts)
            start = starts[mine if counts else 0]
            batch = [rows[i] for i in range(start, min(start + size, len(rows)))]
            yield self.data_collator(batch), int(counts)


class Follow(TrainerCallback):  # type: ignore[misc]
    """Tells of steps, seals checkpoints, ends on Ctrl-C, and on a loss that is no number."""

    def __init__(self, watch: Watch, interrupt: Interrupt, trainer: PackedTrainer) -> None:
        self._watch = watch
        self._interrupt = interrupt
        self._trainer = trainer
        self._began = 0.0
        self._before = 0.0
        self._tokens_before = 0

    @property
    def seconds(self) -> float:
        """In training, over all runs."""
        return self._before + time.monotonic() - self._began

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        if state.log_history:
            last = state.log_history[-1]
            self._before, self._tokens_before = last["seconds"], last["tokens"]
        self._trainer._total_train_tokens = self._tokens_before
        self._began = time.monotonic()
        self._watch(state.global_step, state.max_steps)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **rest: Any
    ) -> Any:
        if "train_runtime" in logs:  # the last word on all steps
            return control
        tokens = self._trainer._total_train_tokens
        state.log_history[-1] |= {"seconds": round(self.seconds, 3), "tokens": tokens}
        shown = ("loss", "eval_loss", "learning_rate", "grad_norm")
        figures = {name: logs[name] for name in shown if name in logs}
        if wrong := [n for n, v in figures.items() if not math.isfinite(v)]:
            name, value = wrong[0].replace("_", " "), figures[wrong[0]]
            if state.global_step == 1:  # of the weights as they came
                raise UserError(
                    f"the {name} of step 1 is {value}, before anything was learnt",
                    "download the model again, or --dtype float32",
                )
            raise UserError(
                f"the {name} of step {state.global_step} is {value}: training came apart",
                "a lower --learning-rate, a longer --warmup-ratio, or --dtype float32",
            )
        rate = (tokens - self._tokens_before) / (time.monotonic() - self._began)
        self._watch(state.global_step, state.max_steps, **figures, tokens_per_second=round(rate))
        return self._stop(control)

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> Any:
        return self._stop(control)

    def _stop(self, control: Any) -> Any:
        if self._pressed():
            control.should_save = control.should_training_stop = True
        return control

    def _pressed(self) -> bool:
        """Whether Ctrl-C came to any process: all are to stop after the same step."""
        accelerator, pressed = self._trainer.accelerator, self._interrupt.pressed
        if accelerator.num_processes == 1:
            return pressed
        told = torch.tensor([float(pressed)], device=accelerator.device)
        return bool(accelerator.reduce(told).item())

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        if self._trainer.adaptive:
            self._trainer.model.base_model.update_and_allocate(state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self._trainer.accelerator.wait_for_everyone()  # each writes files of its own
        if state.is_world_process_zero:
            checkpoint = Path(args.output_dir, f"checkpoint-{state.global_step}")
            if self._trainer.adaptive:
                keep_ranks(self._trainer.model, checkpoint)
            seal(checkpoint)
