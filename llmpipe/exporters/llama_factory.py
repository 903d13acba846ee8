"""LLaMA-Factory: messages with a ``dataset_info.json`` that says what they are.

Source: data/{parser,loader,converter}.py of hiyouga/LLaMA-Factory 0.9.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from llmpipe.core.protocols import Export, Exporter, Shape
from llmpipe.exporters._columns import MESSAGE, MESSAGES, plain

# Its names for OpenAI's roles. Tags that are left out have its own names, which match nothing here.
_TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "observation_tag": "tool",
    "function_tag": "function_call",
    "system_tag": "system",
}


def _conversation(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": plain(row["messages"])}


def _pair(row: Mapping[str, Any]) -> dict[str, Any]:
    [chosen], [rejected] = plain(row["chosen"]), plain(row["rejected"])
    return {"messages": plain(row["prompt"]), "chosen": chosen, "rejected": rejected}


def _info(export: Export) -> dict[str, str]:
    columns = {name: name for name in export.columns}
    entry: dict[str, Any] = {"file_name": "data", "formatting": "sharegpt"}
    if "chosen" in columns:
        entry["ranking"] = True
    entry |= {"columns": columns, "tags": _TAGS}
    return {"dataset_info.json": json.dumps({export.name: entry}, indent=2) + "\n"}


def _guide(export: Export, stage: str, flags: str) -> str:
    return f"""\
The data set `{export.name}` of the `dataset_info.json` here:

    llamafactory-cli train --stage {stage} --do_train --model_name_or_path MODEL \\
        --dataset_dir {export.folder} --dataset {export.folder} --template TEMPLATE \\
        --cutoff_len {export.longest or 8192} {flags}--finetuning_type full --output_dir {stage}

TEMPLATE is LLaMA-Factory's name for the model's chat template (qwen, llama3, ...). What is longer
than `--cutoff_len` is cut, 2048 tokens if nothing is said.
"""


def _all_guide(export: Export) -> str:
    return "It learns from every turn of the assistant. " + _guide(export, "sft", "")


def _last_guide(export: Export) -> str:
    return "`--mask_history` lets it learn from the last turn alone. " + _guide(
        export, "sft", "--mask_history "
    )


def _pair_guide(export: Export) -> str:
    return "Preference pairs. " + _guide(export, "dpo", "--pref_loss sigmoid ")


_CONVERSATION = pa.schema([("messages", MESSAGES)])

EXPORTER = Exporter(
    trainer="LLaMA-Factory",
    shapes=[
        Shape(
            record="Conversation",
            schema=_CONVERSATION,
            row=_conversation,
            loss="all",
            tools=True,
            guide=_all_guide,
            files=_info,
        ),
        Shape(
            record="Conversation",
            schema=_CONVERSATION,
            row=_conversation,
            loss="last",
            tools=True,
            guide=_last_guide,
            files=_info,
        ),
        Shape(
            record="Pair",
            schema=pa.schema([("messages", MESSAGES), ("chosen", MESSAGE), ("rejected", MESSAGE)]),
            row=_pair,
            guide=_pair_guide,
            files=_info,
        ),
    ],
)
