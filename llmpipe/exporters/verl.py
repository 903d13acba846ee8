"""verl's reinforcement learning: prompts with a ground truth.

Source: utils/dataset/rl_dataset.py and examples/data_preprocess/math_dataset.py of
verl-project/verl 0.9.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from llmpipe.core.protocols import Export, Exporter, Shape
from llmpipe.exporters._columns import MESSAGES, plain

_STRING = pa.string()


def _problem(row: Mapping[str, Any]) -> dict[str, Any]:
    # A maze is judged on its grid, and any way through it is right.
    grid = json.loads(row["payload"]).get("maze") if row["task"] == "maze" else None
    return {
        "data_source": row["source"],
        "prompt": plain(row["messages"]),
        "ability": row["task"],
        "reward_model": {"style": "rule", "ground_truth": grid or row["answer"]},
        "extra_info": {
            "split": "train",
            "index": row["index"],
            "id": row["id"],
            "task": row["task"],
            "level": row["level"],
        },
    }


def _guide(export: Export) -> str:
    return f"""\
The columns of verl's data sets, with a `ground_truth` that llmpipe's own reward judges (a maze's is
its grid). verl's built-in rewards go by `data_source`, and know few of them; so name the reward:

    REWARD=$(python -c 'import llmpipe.rewards as r; print(r.__file__)')
    python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
        data.train_files="[$(ls {export.data} | paste -sd,)]" \\
        data.val_files="[VALIDATION.parquet]" data.max_prompt_length=2048 \\
        actor_rollout_ref.model.path=MODEL actor_rollout_ref.rollout.name=vllm \\
        reward.custom_reward_function.path=$REWARD \\
        reward.custom_reward_function.name=compute_score

In older versions the last two are `custom_reward_function.path` and `.name`. Prompts over
`data.max_prompt_length` are left out by verl.
"""


EXPORTER = Exporter(
    trainer="verl",
    shapes=[
        Shape(
            record="Problem",
            schema=pa.schema(
                [
                    ("data_source", _STRING),
                    ("prompt", MESSAGES),
                    ("ability", _STRING),
                    ("reward_model", pa.struct([("style", _STRING), ("ground_truth", _STRING)])),
                    (
                        "extra_info",
                        pa.struct(
                            [
                                ("split", _STRING),
                                ("index", pa.int64()),
                                ("id", _STRING),
                                ("task", _STRING),
                                ("level", _STRING),
                            ]
                        ),
                    ),
                ]
            ),
            row=_problem,
            guide=_guide,
        )
    ],
)
