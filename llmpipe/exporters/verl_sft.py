"""verl's supervised fine-tuning: messages, learnt in every turn of the assistant.

Source: utils/dataset/multiturn_sft_dataset.py of verl-project/verl 0.9. It renders each message by
itself, and wants tools as nested columns, which JSON of many shapes doesn't fit in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from llmpipe.core.protocols import Export, Exporter, Shape
from llmpipe.exporters._columns import MESSAGES, plain


def _conversation(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": plain(row["messages"])}


def _guide(export: Export) -> str:
    longest = export.longest or 8192
    return f"""\
`messages`, of which verl learns every turn of the assistant:

    torchrun --standalone --nproc_per_node=8 -m verl.trainer.sft_trainer \\
        data.train_files="[$(ls {export.data} | paste -sd,)]" data.messages_key=messages \\
        data.max_length={longest} data.max_token_len_per_gpu={longest} model.path=MODEL

A row over `data.max_length` ends the run (`data.truncation=error`). verl renders each message by
itself; where that isn't what the whole conversation gives (templates that strip earlier thinking),
it refuses, too: `llmpipe build-sft --turns split` gives it one answer a row.
"""


EXPORTER = Exporter(
    trainer="verl",
    shapes=[
        Shape(
            record="Conversation",
            schema=pa.schema([("messages", MESSAGES)]),
            row=_conversation,
            loss="all",
            guide=_guide,
        )
    ],
)
