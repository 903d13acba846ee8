"""Read an export with a trainer's own data set code. Run by .venv/trainers/bin/python.

    in_trainers.py llama-factory|verl-sft|verl FOLDER MODEL CACHE [OPTIONS]

The last line on stdout is JSON: for each row its tokens' text and that of the learnt ones (of
preference pairs: of both answers; of verl's prompts: the row).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def llama_factory(folder: Path, model: str, cache: str, options: dict[str, Any]) -> list[Any]:
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args
    from llamafactory.model import load_tokenizer

    given = {
        "stage": "sft",
        "do_train": True,
        "model_name_or_path": model,
        "dataset_dir": str(folder),
        "dataset": folder.name,
        "template": "default",
        "cutoff_len": 512,
        "cache_dir": cache,
        "output_dir": f"{cache}/out",
        "report_to": "none",
    }
    model_args, data_args, training_args, finetuning_args, _ = get_train_args({**given, **options})
    loaded = load_tokenizer(model_args)
    tokenizer = loaded["tokenizer"]
    template = get_template_and_fix_tokenizer(tokenizer, data_args)
    rows = get_dataset(
        template, model_args, data_args, training_args, stage=finetuning_args.stage, **loaded
    )["train_dataset"]
    if finetuning_args.stage == "rm":
        sides = ("chosen_labels", "rejected_labels")
        return [[tokenizer.decode([i for i in r[s] if i >= 0]) for s in sides] for r in rows]
    return [
        [tokenizer.decode(r["input_ids"]), tokenizer.decode([i for i in r["labels"] if i >= 0])]
        for r in rows
    ]


def verl(kind: str, folder: Path, model: str, cache: str) -> list[Any]:
    from omegaconf import OmegaConf
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    files = [str(file) for file in sorted((folder / "data").iterdir())]
    if kind == "verl-sft":
        from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

        config = OmegaConf.create({"pad_mode": "no_padding", "max_length": 512})
        rows = MultiTurnSFTDataset(files, tokenizer, config)
        made = [rows[i] for i in range(len(rows))]
        learnt = [row["input_ids"][row["loss_mask"].bool()] for row in made]
        return [
            [tokenizer.decode(row["input_ids"]), tokenizer.decode(ids)]
            for row, ids in zip(made, learnt, strict=True)
        ]
    from verl.utils.dataset.rl_dataset import RLHFDataset

    config = OmegaConf.create(
        {
            "max_prompt_length": 512,
            "filter_overlong_prompts_workers": 1,
            "cache_dir": cache,
            "return_raw_chat": True,
        }
    )
    prompts = RLHFDataset(files, tokenizer, config)
    names = ("data_source", "raw_prompt", "reward_model", "extra_info")
    return [{name: prompts[i][name] for name in names} for i in range(len(prompts))]


if __name__ == "__main__":
    kind, folder, model, cache, *rest = sys.argv[1:]
    if kind == "llama-factory":
        read = llama_factory(Path(folder), model, cache, json.loads(rest[0]) if rest else {})
    else:
        read = verl(kind, Path(folder), model, cache)
    sys.stdout.write(json.dumps(read) + "\n")
