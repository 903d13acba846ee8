"""TRL's data set forms: prompt and completion, messages, preference pairs, prompts with answers.

Source: docs/source/dataset_formats.md and trainer/sft_trainer.py of huggingface/trl 1.16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from llmpipe.core.protocols import Export, Exporter, Shape
from llmpipe.exporters._columns import MESSAGES, plain


def _completion(row: Mapping[str, Any]) -> dict[str, Any]:
    *asked, answer = plain(row["messages"])
    return {"prompt": asked, "completion": [answer]}


def _messages(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": plain(row["messages"])}


def _pair(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(row[name]) for name in ("prompt", "chosen", "rejected")}


def _problem(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: row[name] for name in ("id", "answer", "task", "payload")}
    return {"prompt": plain(row["messages"]), **kept}


def _sft(export: Export, form: str, flag: str, why: str) -> str:
    longest = export.longest or 8192
    return f"""\
{form}

    trl sft --model_name_or_path MODEL --dataset_name {export.folder} {flag}\\
        --max_length {longest} --output_dir sft

TRL cuts what is longer than `--max_length`, 1024 tokens if nothing is said. {why}
"""


def _completion_guide(export: Export) -> str:
    form = (
        "One `prompt` and one `completion` a row, both lists of messages: TRL learns from the\n"
        "completion alone, without being told."
    )
    return _sft(export, form, "", "Its loss takes in what the template\nwrites after the answer.")


def _messages_guide(export: Export) -> str:
    form = "`messages` a row, to be learnt in every turn of the assistant:"
    why = (
        "Without\n`--assistant_only_loss` it learns the questions, too. With it, TRL puts its own "
        "training template\nin the place of the ones that it knows, and refuses other templates "
        "without generation marks: for\nthose, `llmpipe pack` and `--to trl-packed`, or "
        "`llmpipe build-sft --turns split`."
    )
    return _sft(export, form, "--assistant_only_loss ", why)


def _pair_guide(export: Export) -> str:
    return f"""\
Preference pairs, `prompt`, `chosen` and `rejected`, each a list of messages:

    trl dpo --model_name_or_path MODEL --dataset_name {export.folder} --max_length 8192 \\
        --output_dir dpo
"""


def _problem_guide(export: Export) -> str:
    return f"""\
A `prompt` of messages a row, and what the rewards of llmpipe need (`answer`, `task`, `payload`):

    trl grpo --model_name_or_path MODEL --dataset_name {export.folder} \\
        --reward_funcs llmpipe.rewards.outcome_reward llmpipe.rewards.format_reward \\
        --num_generations 8 --max_completion_length 4096 --output_dir grpo
"""


def _schema(*names: str) -> pa.Schema:
    return pa.schema([(name, MESSAGES) for name in names])


EXPORTER = Exporter(
    trainer="TRL",
    shapes=[
        Shape(
            record="Conversation",
            schema=_schema("prompt", "completion"),
            row=_completion,
            loss="last",
            tools=True,
            guide=_completion_guide,
        ),
        Shape(
            record="Conversation",
            schema=_schema("messages"),
            row=_messages,
            loss="all",
            tools=True,
            guide=_messages_guide,
        ),
        Shape(
            record="Pair",
            schema=_schema("prompt", "chosen", "rejected"),
            row=_pair,
            guide=_pair_guide,
        ),
        Shape(
            record="Problem",
            schema=pa.schema(
                [
                    ("prompt", MESSAGES),
                    *((name, pa.string()) for name in ("id", "answer", "task", "payload")),
                ]
            ),
            row=_problem,
            guide=_problem_guide,
        ),
    ],
)
