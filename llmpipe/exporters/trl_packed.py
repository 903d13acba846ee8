"""Packed rows as TRL's own packing leaves them: input_ids, labels, seq_lengths.

Source: trainer/sft_trainer.py of huggingface/trl 1.16; its collator makes of ``seq_lengths`` the
``position_ids`` that restart at each conversation.
"""

from __future__ import annotations

import pyarrow as pa

from llmpipe.core.protocols import Export, Exporter, Shape
from llmpipe.core.records import PackedRow


def _guide(export: Export) -> str:
    return f"""\
Packed rows for TRL's `SFTTrainer`: `input_ids`, `labels` (-100 where nothing is learnt) and
`seq_lengths`, the tokens of each conversation in the row. They are to be trained on as they are:

    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer

    rows = load_dataset({export.name!r}, split="train")
    args = SFTConfig(
        output_dir="sft",
        padding_free=True,  # reads seq_lengths, so that conversations don't see each other
        max_length=None,  # nothing is to be cut
        dataset_kwargs={{"skip_prepare_dataset": True}},
        per_device_train_batch_size=1,  # rows, of {export.longest or "many"} tokens at most
        bf16=True,
        model_init_kwargs={{"attn_implementation": "flash_attention_2"}},
    )
    SFTTrainer("MODEL", args=args, train_dataset=rows).train()

Without FlashAttention leave `attn_implementation` out: transformers finds the conversations by
their position ids as long as the cache is off, which `SFTTrainer` sees to. In a loop of your own
pass `use_cache=False`, or they see each other without a word.

Not `DataCollatorWithFlattening` of transformers: it takes no notice of `seq_lengths`, and every
conversation sees the ones before it in the row. TRL has no loss weights: they are left out here.
"""


EXPORTER = Exporter(
    trainer="TRL",
    shapes=[
        Shape(
            record="PackedRow",
            schema=pa.schema(
                [PackedRow.SCHEMA.field(n) for n in ("input_ids", "labels", "seq_lengths")]
            ),
            guide=_guide,
        )
    ],
)
