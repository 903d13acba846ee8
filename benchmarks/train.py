"""Training on packed rows beside the same conversations in padded batches: speed and memory.

Lengths are drawn (seed 0) as those of reasoning traces are, lognormal, cut at a row's length; texts
are pieces of ``--text``. Every way gets the same tokens and labels, all of them in one optimizer
step: so real tokens a step are the same, and so is its loss, the mean over all trained tokens. The
learning rate is 0, so that every round does the same. Ways take turns, round by round.

A packed row is a micro batch of ``llmpipe train``; a padded one, of TRL's `SFTTrainer` with its own
collator, is as many conversations as hold about as many real tokens. Grouped, each has like lengths
(transformers' ``group_by_length``). Peaks are of this process, from a step's first micro batch on,
or of the GPU's memory where there is one.

    python benchmarks/train.py --model models/HuggingFaceTB/SmolLM2-135M-Instruct
    python benchmarks/train.py --model M --tokens 2000000 --max-length 16384 --mean 3000  # on a GPU
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Conversation, PackedRow
from llmpipe.core.run import Mode, Spec, Writer, execute
from llmpipe.stages import pack
from llmpipe.trainers._job import Job, Settings
from llmpipe.trainers.sft import prepare

ROOT = Path(__file__).parents[1]
SPREAD = 0.8  # of the logarithm of the lengths


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """How many tokens there are, in conversations of about so many."""

    tokens: int
    mean: int
    longest: int


@dataclass(frozen=True)
class Data:
    """The same tokens twice: packed rows, and one conversation a row."""

    packed: Artifact
    apart: Sequence[dict[str, list[int]]]

    @property
    def tokens(self) -> int:
        return sum(len(row["input_ids"]) for row in self.apart)


@dataclass
class Timed:
    """What one way took, a round an entry: seconds, of the CPU, and bytes at the peak."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    loss: float = math.nan
    processed: int = 0


def conversations(text: str, drawn: Drawn) -> Iterator[Conversation]:
    """A question and a long answer each, at 3.5 characters a token."""
    draw, tokens = random.Random(0), drawn.tokens

    def piece(size: float) -> str:
        at = draw.randrange(len(text) - int(size))
        return text[at : at + int(size)]

    middle = math.log(drawn.mean) - SPREAD**2 / 2
    while tokens > 0:
        length = min(draw.lognormvariate(middle, SPREAD), 0.75 * drawn.longest)
        tokens -= int(length)
        asked, answered = piece(0.15 * length * 3.5), piece(0.85 * length * 3.5)
        yield Conversation(
            id=f"c{tokens}",
            problem_id=None,
            source="made",
            messages=[
                {"role": "user", "content": asked, "train": False},
                {"role": "assistant", "content": answered, "train": True},
            ],
        )


def made(given: argparse.Namespace, text: str, folder: Path) -> Data:
    drawn = Drawn(tokens=given.tokens, mean=given.mean, longest=given.max_length)
    spec = Spec(stage="made", record=Conversation, config=drawn, inputs={}, out=folder / "sft")

    def build(writer: Writer) -> None:
        for conversation in conversations(text, drawn):
            writer.add(conversation)

    execute(spec, build, Mode())
    config = pack.Config(max_length=given.max_length)
    packed = Artifact.open(
        pack.run(config, [folder / "sft"], given.model, folder / "packed", Mode()).out
    )
    apart = []
    for row in packed.iter_rows(PackedRow):
        start = 0
        for length in row.seq_lengths:
            end = start + length
            apart.append({"input_ids": row.input_ids[start:end], "labels": row.labels[start:end]})
            start = end
    random.Random(1).shuffle(apart)
    return Data(packed, apart)


def packed_way(given: argparse.Namespace, data: Data, folder: Path) -> Any:
    settings = Settings(
        learning_rate=0.0,
        max_steps=1,
        gradient_accumulation=data.packed.rows,
        dtype=given.dtype,
        gradient_checkpointing=given.gradient_checkpointing,
    )
    job = Job(
        settings=settings,
        model=str(given.model),
        base_name="base",
        rows=[str(file) for file in data.packed.data_files()],
        held_out=[],
        weighted=False,
        folder=str(folder),
    )
    return prepare(job, begins=True)[0]


def padded_way(given: argparse.Namespace, data: Data, folder: Path, *, grouped: bool) -> Any:
    import datasets
    import torch
    from transformers import AutoModelForCausalLM
    from trl import SFTConfig, SFTTrainer

    class Quiet(SFTTrainer):  # type: ignore[misc]
        def _send_telemetry(self) -> None:
            """Nobody is told."""

    rows, gpu = len(data.apart), torch.cuda.is_available()
    size = max(1, round(rows / data.packed.rows))
    return Quiet(
        model=AutoModelForCausalLM.from_pretrained(given.model, dtype=torch.float32),
        args=SFTConfig(
            output_dir=str(folder),
            learning_rate=0.0,
            max_steps=1,
            per_device_train_batch_size=size,
            gradient_accumulation_steps=math.ceil(rows / size),
            train_sampling_strategy="group_by_length" if grouped else "random",
            bf16=given.dtype == "bfloat16",
            gradient_checkpointing=given.gradient_checkpointing,
            max_length=None,
            dataset_kwargs={"skip_prepare_dataset": True},
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
            report_to=[],
            use_cpu=not gpu,
            dataloader_pin_memory=gpu,
        ),
        train_dataset=datasets.Dataset.from_list(list(data.apart)),
    )


def step(trainer: Any, timed: Timed) -> None:
    """Train one step, which is all the data, and add what it took."""
    import torch
    import transformers

    gpu = torch.cuda.is_available()
    began = [0.0, 0.0]

    class Clock(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            if gpu:
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            began[:] = time.perf_counter(), time.process_time()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            if gpu:
                torch.cuda.synchronize()
            timed.wall.append(time.perf_counter() - began[0])
            timed.cpu.append(time.process_time() - began[1])
            timed.peak.append(torch.cuda.max_memory_allocated() if gpu else resident())

    processed, collate = 0, trainer.data_collator

    def counted(rows: Any) -> Any:
        nonlocal processed
        batch = collate(rows)
        processed += batch["input_ids"].numel()
        return batch

    trainer.data_collator = counted
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(Clock)
    trainer.train()
    timed.processed = processed
    timed.loss = next(entry["loss"] for entry in trainer.state.log_history if "loss" in entry)


def resident() -> int:
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    return int(line.split()[1]) << 10


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=5000, help="of all conversations, about")
    parser.add_argument("--max-length", type=int, default=1024, help="tokens in a packed row")
    parser.add_argument("--mean", type=int, default=190, help="tokens in a conversation, about")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--gradient-checkpointing", action="store_true")
    parser.add_argument("--text", type=Path, default=ROOT / "llmpipe", help="a folder of texts")
    given = parser.parse_args()
    files = sorted(f for f in given.text.rglob("*") if f.suffix in {".py", ".md", ".txt"})
    text = "\n".join(f.read_text(encoding="utf-8") for f in files)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = made(given, text, folder)
        ways: dict[str, Callable[[], Any]] = {
            "packed": lambda: packed_way(given, data, folder / "training"),
            "padded": lambda: padded_way(given, data, folder / "padded", grouped=False),
            "padded, grouped": lambda: padded_way(given, data, folder / "padded", grouped=True),
        }
        taken = {name: Timed() for name in ways}
        for number in range(given.rounds):
            for name, way in ways.items():
                step(way(), taken[name])
                took = f"{taken[name].wall[-1]:.1f} s"
                print(f"round {number + 1}: {name} {took}", file=sys.stderr, flush=True)
                gc.collect()
    show(data, taken)


def show(data: Data, taken: dict[str, Timed]) -> None:
    trained = sum(label != -100 for row in data.apart for label in row["labels"][1:])
    lengths = sorted(len(row["input_ids"]) for row in data.apart)
    print(
        f"{len(lengths)} conversations of {lengths[0]} to {lengths[-1]} tokens, median "
        f"{median(lengths):.0f}; {data.tokens:,} in all, {trained / data.tokens:.1%} of them "
        f"trained on; {data.packed.rows} packed rows"
    )
    print(
        f"{'way':<17}{'tokens / s':>11}{'/ CPU s':>9}{'of packed':>11}{'padding':>9}{'peak MB':>9}"
        f"{'of packed':>11}{'loss':>11}"
    )
    base = taken["packed"]
    for name, timed in taken.items():
        speed = median(b / s for b, s in zip(base.wall, timed.wall, strict=True))
        memory = median(s / b for b, s in zip(base.peak, timed.peak, strict=True))
        print(
            f"{name:<17}{data.tokens / median(timed.wall):>11,.1f}"
            f"{data.tokens / median(timed.cpu):>9,.1f}{speed:>11.2f}"
            f"{1 - data.tokens / timed.processed:>9.1%}{median(timed.peak) / 1e6:>9,.0f}"
            f"{memory:>11.2f}{timed.loss:>11.6f}"
        )
    losses = [timed.loss for timed in taken.values()]
    print(f"losses differ by {max(losses) / min(losses) - 1:.1e} of them at most")


if __name__ == "__main__":
    main()
