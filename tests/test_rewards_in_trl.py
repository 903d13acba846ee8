"""A step of the real `trl.GRPOTrainer` with our reward functions."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmpipe.rewards import action_reward, format_reward, length_reward, outcome_reward

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="trl is not installed"),
]

Calls = list[tuple[dict[str, Any], list[float | None]]]


def recorded(reward: Callable[..., Any], calls: Calls) -> Callable[..., Any]:
    @functools.wraps(reward)
    def call(**arguments: Any) -> Any:
        rewards = reward(**arguments)
        calls.append((arguments, rewards))
        return rewards

    return call


def test_a_step_of_grpo(smol_model: Path, tmp_path: Path) -> None:
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(smol_model)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    two, three = (tokenizer.convert_tokens_to_ids(digit) for digit in "23")
    ask = [{"role": "user", "content": "1+1?"}]
    calls: Calls = []
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=[
            recorded(outcome_reward, calls),
            format_reward,
            length_reward,
            action_reward,
        ],
        args=GRPOConfig(
            output_dir=str(tmp_path),
            max_steps=1,
            per_device_train_batch_size=16,
            num_generations=8,
            max_completion_length=1,
            # All it can say is 2 or 3.
            generation_kwargs={"sequence_bias": [[[two], 100.0], [[three], 100.0]]},
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            seed=0,
        ),
        train_dataset=Dataset.from_list(
            [
                {"prompt": ask, "answer": "2", "task": "math"},
                {"prompt": ask, "answer": "S*E", "task": "maze"},  # has no path: no verdict
            ]
        ),
    )
    trainer.train()

    [(arguments, rewards)] = calls
    said = [completion[0]["content"] for completion in arguments["completions"]]
    assert set(said) == {"2", "3"}
    assert sorted(arguments["task"]) == ["math"] * 8 + ["maze"] * 8
    rows = zip(said, arguments["task"], strict=True)
    assert rewards == [float(text == "2") if task == "math" else None for text, task in rows]
    [log] = [entry for entry in trainer.state.log_history if "reward" in entry]
    right = sum(reward for reward in rewards if reward is not None)
    assert log["rewards/outcome_reward/mean"] == pytest.approx(right / 8)
    assert log["rewards/format_reward/mean"] == 0.0
    assert trainer.state.global_step == 1
