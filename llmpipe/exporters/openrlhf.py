"""OpenRLHF: messages, pairs, and prompts with a label.

Source: datasets/{sft,reward,prompts}_dataset.py of OpenRLHF/OpenRLHF 0.11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from llmpipe.core.protocols import Export, Exporter, Shape
from llmpipe.exporters._columns import MESSAGES, plain


def _conversation(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": plain(row["messages"])}


def _pair(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(row[name]) for name in ("prompt", "chosen", "rejected")}


def _problem(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"prompt": plain(row["messages"]), "label": row["answer"], "datasource": row["source"]}


def _sft(export: Export, flags: str) -> str:
    return f"""\
    deepspeed --module openrlhf.cli.train_sft --model.model_name_or_path MODEL \\
        --data.dataset {export.folder} --data.input_key messages --data.apply_chat_template \\
        {flags}--data.max_len {export.longest or 8192} --ckpt.output_dir sft

What is longer than `--data.max_len` is cut or left out.
"""


def _all_guide(export: Export) -> str:
    return "`messages`, to be learnt in every turn of the assistant:\n\n" + _sft(
        export, "--data.multiturn "
    )


def _last_guide(export: Export) -> str:
    return "`messages`, of which the last is learnt (so without `--data.multiturn`):\n\n" + _sft(
        export, ""
    )


def _pair_guide(export: Export) -> str:
    return f"""\
Preference pairs:

    deepspeed --module openrlhf.cli.train_dpo --model.model_name_or_path MODEL \\
        --data.dataset {export.folder} --data.prompt_key prompt --data.chosen_key chosen \\
        --data.rejected_key rejected --data.apply_chat_template --data.max_len 8192 \\
        --ckpt.output_dir dpo
"""


def _problem_guide(export: Export) -> str:
    return f"""\
A `prompt` of messages and the gold answer as `label`; the reward is a function of yours that calls
`llmpipe.verify_math(label, response)`:

    python -m openrlhf.cli.train_ppo_ray --data.prompt_dataset {export.folder} \\
        --data.input_key prompt --data.label_key label --data.apply_chat_template \\
        --reward.remote_url reward.py
"""


_CONVERSATION = pa.schema([("messages", MESSAGES)])

EXPORTER = Exporter(
    trainer="OpenRLHF",
    shapes=[
        Shape(
            record="Conversation",
            schema=_CONVERSATION,
            row=_conversation,
            loss="all",
            guide=_all_guide,
        ),
        Shape(
            record="Conversation",
            schema=_CONVERSATION,
            row=_conversation,
            loss="last",
            guide=_last_guide,
        ),
        Shape(
            record="Pair",
            schema=pa.schema([(n, MESSAGES) for n in ("prompt", "chosen", "rejected")]),
            row=_pair,
            guide=_pair_guide,
        ),
        Shape(
            record="Problem",
            schema=pa.schema(
                [("prompt", MESSAGES), ("label", pa.string()), ("datasource", pa.string())]
            ),
            row=_problem,
            guide=_problem_guide,
        ),
    ],
)
