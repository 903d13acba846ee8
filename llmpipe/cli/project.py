"""What ``llmpipe init`` writes: settings with which the bare commands make a chain."""

from __future__ import annotations

from pathlib import Path

import typer

from llmpipe.core import fs
from llmpipe.core.errors import UserError

_MODEL = "Qwen/Qwen2.5-1.5B-Instruct"

_MATH = """
# For the data set: llmpipe download openai/gsm8k --repo-type dataset
[prepare]
source = "gsm8k"                  # a recipe, or a file or folder with prompt-key and answer-key
out = "runs/problems"
holdout = 200                     # problems set apart in runs/problems/test
"""

_MAZE = """
[maze]
out = "runs/problems"
size = [5, 7]
count = 500                       # of each size
# The held-out mazes: llmpipe maze --seed 1 --count 50 --exclude runs/problems -o runs/held-out
"""

_REST = """
[dedupe]
problems = ["runs/problems"]
against = ["{held_out}"]
out = "runs/clean"

[rollout]
problems = "runs/clean"
out = "runs/rollouts"
model = "{model}"
n = 8                             # may be raised later: only what is missing is sampled
temperature = 1.0
top-p = 0.95
max-tokens = 1024
# engine-arg = {{ max_model_len = 4096 }}

[verify]
rollouts = "runs/rollouts"
out = "runs/verdicts"

[select]
verdicts = "runs/verdicts"
out = "runs/selected"
per-problem = 4

[build-sft]
source = "runs/selected"
out = "runs/sft"

[pack]
conversations = ["runs/sft"]
out = "runs/packed"
tokenizer = "{model}"
max-length = 4096

[eval]
source = "{held_out}"
out = "runs/eval"
model = "{model}"
k = [1, 8]
n = 16
max-tokens = 1024
"""

_HEAD = """# Settings for llmpipe, a table for each command, keys named like its options.
# Flags win over this file; llmpipe --config FILE takes another one.

[download]
repos = ["{model}"]
"""


def write(kind: str, folder: Path, *, force: bool) -> None:
    """Write ``llmpipe.toml`` in ``folder`` and say what to type next.

    Raises:
        UserError: an unknown kind, or a file that is there already.
    """
    if kind not in ("math", "maze"):
        raise UserError(
            f"there is no project kind {kind!r}", "llmpipe init math, or llmpipe init maze"
        )
    path = folder / "llmpipe.toml"
    if (path.exists() or path.is_symlink()) and not force:
        raise UserError(f"{path} exists", "llmpipe init --force overwrites it")
    held_out = "runs/problems/test" if kind == "math" else "runs/held-out"
    text = _HEAD + (_MATH if kind == "math" else _MAZE) + _REST
    fs.write(path, text.format(model=_MODEL, held_out=held_out).encode())
    first = "llmpipe prepare" if kind == "math" else "llmpipe maze"
    typer.echo(f"wrote {path}", err=True)
    typer.echo(
        f"next: edit it, then: llmpipe download, {first}, llmpipe dedupe, llmpipe rollout, "
        "llmpipe verify, llmpipe select, llmpipe build-sft, llmpipe pack, llmpipe eval",
        err=True,
    )
