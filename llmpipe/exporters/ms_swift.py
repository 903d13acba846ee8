"""ms-swift: messages, each of the assistant's with ``loss``; pairs as a rejected response.

Source: docs/source_en/Customization/Custom-dataset.md and swift/loss_scale/base.py of
modelscope/ms-swift 4.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from llmpipe.core.protocols import Export, Exporter, Shape
from llmpipe.exporters._columns import MESSAGES, plain

_LOSS_MESSAGES = pa.list_(
    pa.struct([("role", pa.string()), ("content", pa.string()), ("loss", pa.bool_())])
)


def _conversation(row: Mapping[str, Any]) -> dict[str, Any]:
    def loss(message: Mapping[str, Any]) -> bool | None:
        return message["train"] if message["role"] == "assistant" else None

    messages = zip(plain(row["messages"]), map(loss, row["messages"]), strict=True)
    return {"messages": [{**message, "loss": loss} for message, loss in messages]}


def _pair(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "messages": plain([*row["prompt"], *row["chosen"]]),
        "rejected_response": row["rejected"][-1]["content"],
    }


def _problem(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": plain(row["messages"]), "solution": row["answer"]}


def _guide(export: Export, what: str, command: str, flags: str) -> str:
    return f"""\
{what}

    swift {command} --model MODEL --dataset {export.data} \\
        --max_length {export.longest or 8192} {flags}--output_dir {command.split()[-1]}
"""


def _conversation_guide(export: Export) -> str:
    what = (
        "`messages`, each of the assistant's with a `loss` that says whether it is learnt "
        "(`packing` wants\nFlashAttention):"
    )
    return _guide(export, what, "sft", "")


def _pair_guide(export: Export) -> str:
    what = "`messages` that end with the better answer, and the worse as `rejected_response`:"
    return _guide(export, what, "rlhf --rlhf_type dpo", "")


def _problem_guide(export: Export) -> str:
    what = "`messages`, and the gold answer as `solution`, which its accuracy reward reads:"
    return _guide(export, what, "rlhf --rlhf_type grpo", "--reward_funcs accuracy ")


EXPORTER = Exporter(
    trainer="ms-swift",
    shapes=[
        Shape(
            record="Conversation",
            schema=pa.schema([("messages", _LOSS_MESSAGES)]),
            row=_conversation,
            loss="each",
            tools=True,
            guide=_conversation_guide,
        ),
        Shape(
            record="Pair",
            schema=pa.schema([("messages", MESSAGES), ("rejected_response", pa.string())]),
            row=_pair,
            guide=_pair_guide,
        ),
        Shape(
            record="Problem",
            schema=pa.schema([("messages", MESSAGES), ("solution", pa.string())]),
            row=_problem,
            guide=_problem_guide,
        ),
    ],
)
