"""Where models lie."""

from __future__ import annotations

from pathlib import Path

from llmpipe.core.errors import UserError


def find_model(name: str) -> Path:
    """The folder of a model given by path, or by hub id where it was downloaded to ``models/``.

    Raises:
        UserError: there is no such folder, or it holds no model.
    """
    for path in (Path(name), Path("models", name)):
        if path.is_dir():
            if not (path / "config.json").is_file():
                raise UserError(
                    f"{path} is no model folder: it has no config.json",
                    "a model folder holds config.json, *.safetensors and tokenizer files",
                )
            return path
    hint = "check the path"
    if name.count("/") == 1 and not name.startswith((".", "/")):
        hint = f"llmpipe download {name}"
    raise UserError(
        f"there is no model at {name}" + (f" or models/{name}" if "/" in name else ""), hint
    )
