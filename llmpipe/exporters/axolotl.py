"""axolotl: messages with ``train``, and the configuration that reads them.

Source: docs/dataset-formats/conversation.qmd and prompt_strategies/chat_template.py of
axolotl-ai-cloud/axolotl 0.19.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from llmpipe.core.protocols import Export, Exporter, Shape
from llmpipe.core.records import Conversation
from llmpipe.exporters._columns import MESSAGE, MESSAGES, plain


def _pair(row: Mapping[str, Any]) -> dict[str, Any]:
    [chosen], [rejected] = plain(row["chosen"]), plain(row["rejected"])
    return {"messages": plain(row["prompt"]), "chosen": chosen, "rejected": rejected}


def _config(export: Export, kind: str, more: str) -> dict[str, str]:
    text = f"""\
base_model: MODEL
datasets:
  - path: {json.dumps(export.name)}
    split: train
    type: {kind}
    field_messages: messages
    message_property_mappings:
      role: role
      content: content
{more}sequence_len: {export.longest or 8192}
output_dir: axolotl-out
micro_batch_size: 1
gradient_accumulation_steps: 8
num_epochs: 2
learning_rate: 1.0e-5
lr_scheduler: cosine
optimizer: adamw_torch
bf16: auto
"""
    return {"axolotl.yaml": text}


def _conversation_config(export: Export) -> dict[str, str]:
    more = """\
    message_field_training: train
    roles_to_train: [assistant]
    train_on_eos: turn
sample_packing: true
flash_attention: true
"""
    return _config(export, "chat_template", more)


def _pair_config(export: Export) -> dict[str, str]:
    more = """\
    field_chosen: chosen
    field_rejected: rejected
rl: dpo
"""
    return _config(export, "chat_template.default", more)


def _guide(export: Export) -> str:
    return f"""\
`axolotl.yaml` here reads the rows. Put in the model and what else you want, and:

    axolotl train {export.folder}/axolotl.yaml
"""


EXPORTER = Exporter(
    trainer="axolotl",
    shapes=[
        Shape(
            record="Conversation",
            schema=pa.schema([Conversation.SCHEMA.field("messages")]),
            row=lambda row: {"messages": row["messages"]},
            loss="each",
            tools=True,
            guide=_guide,
            files=_conversation_config,
        ),
        Shape(
            record="Pair",
            schema=pa.schema([("messages", MESSAGES), ("chosen", MESSAGE), ("rejected", MESSAGE)]),
            row=_pair,
            guide=_guide,
            files=_pair_config,
        ),
    ],
)
