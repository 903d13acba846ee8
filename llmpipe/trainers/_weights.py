"""How much of a model's weights a training has moved, as they are on disk."""

from __future__ import annotations

from pathlib import Path


def changed_share(base: Path, made: Path) -> float | None:
    """The share of weights in ``made`` that differ from those of the same name in ``base``.

    Weights come and go in bfloat16, which has 8 bits of precision: an update smaller than 1/512 of
    its weight is lost as it is written. None where the base is not in safetensors.
    """
    from safetensors import safe_open

    def names(folder: Path) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for file in folder.glob("*.safetensors"):
            with safe_open(file, "pt") as f:
                found |= dict.fromkeys(f.keys(), file)
        return found

    before = names(base)
    changed = total = 0
    for name, file in names(made).items():
        if name not in before:
            continue
        with safe_open(before[name], "pt") as f, safe_open(file, "pt") as g:
            one, other = f.get_tensor(name), g.get_tensor(name)
        changed += int((one != other).sum())
        total += one.numel()
    return round(changed / total, 6) if total else None
