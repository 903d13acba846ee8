"""Where models and data sets lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from llmpipe.core.errors import UserError


def find_model(name: str) -> Path:
    """The folder of a model given by path, or by hub id where it was downloaded to ``models/``.

    Raises:
        UserError: there is no such folder, its download did not finish, or it holds no model.
    """
    for path in (Path(name), Path("models", name)):
        if path.is_dir():
            downloaded_repo(path)
            if (path / "adapter_config.json").is_file():
                raise UserError(
                    f"{path} is an adapter, not a whole model",
                    "llmpipe train without --adapter; vLLM serves it as it is: "
                    f"vllm serve BASE --enable-lora --lora-modules NAME={path}",
                )
            if not (path / "config.json").is_file():
                raise UserError(
                    f"{path} is no model folder: it has no config.json",
                    "a model folder holds config.json, *.safetensors and tokenizer files",
                )
            read_config(path)
            return path
    if Path(f"{name.rstrip('/')}.partial").is_dir():
        raise UserError(
            f"the model at {name} is unfinished", "run the command that makes it again: it goes on"
        )
    by_id = name.count("/") == 1 and not name.startswith((".", "/"))
    hint = f"llmpipe download {name}" if by_id else "check the path"
    raise UserError(f"there is no model at {name}" + (f" or models/{name}" if by_id else ""), hint)


def read_config(model: Path) -> dict[str, Any]:
    """The config.json of a model's folder.

    Raises:
        UserError: it holds anything else than an object.
    """
    file = model / "config.json"
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:  # no JSON, or no UTF-8
        settings = None
    if not isinstance(settings, dict):
        raise UserError(f"{file} is no JSON object", "download the model again, or use another")
    return settings


def context_length(model: Path) -> int | None:
    """The tokens that a conversation with the model may have, where its config.json says so."""
    config = read_config(model)
    config = config.get("text_config", config)
    limit = config.get("max_position_embeddings") or config.get("n_positions")
    return limit if isinstance(limit, int) else None


def downloaded_repo(folder: Path) -> str | None:
    """The repo that ``llmpipe download`` brought to this folder, if it was that.

    Raises:
        UserError: it did not finish.
    """
    manifest = folder / ".llmpipe" / "manifest.json"
    if not manifest.parent.is_dir():
        return None
    if not manifest.is_file():
        raise UserError(
            f"the download to {folder} is unfinished",
            "run the llmpipe download command again: it goes on",
        )
    repo: str | None = json.loads(manifest.read_text(encoding="utf-8")).get("repo")
    return repo
