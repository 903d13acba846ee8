"""Where an engine is started: in this process, or one in a process of its own a group of GPUs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from llmpipe.core import gpu
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Engine, LoadedEngine, Sampling


def check(
    name: str, model: str, sampling: Sampling, options: Mapping[str, str], *, gpus: str | None
) -> None:
    """Raise `UserError` for what can be known to be wrong before minutes of loading."""
    kind: type[Engine] = load("engines", name)
    kind.check(model, sampling, options)
    _groups(name, options, gpus)


def start(
    name: str, model: str, sampling: Sampling, options: Mapping[str, str], *, gpus: str | None
) -> LoadedEngine:
    """Load an engine on ``gpus``: "all" that are visible, or their numbers or ids, "0,1".

    Where a copy of the model spans fewer, there are as many copies as they allow, each in a process
    of its own; on a machine without GPUs as many as are named, which share its cores.

    Raises:
        UserError: no such GPUs, or what the engine raises.
    """
    groups = _groups(name, options, gpus)
    if len(groups) > 1:
        from llmpipe.engines._fleet import Fleet

        return Fleet(groups, name, model, sampling, options)
    if groups:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(groups[0])  # read when CUDA is first used
    kind: type[Engine] = load("engines", name)
    return kind(model, sampling, options)


def _groups(name: str, options: Mapping[str, str], gpus: str | None) -> list[Sequence[str]]:
    """The GPUs of each copy of the model; none where that is left to the engine."""
    if gpus is None:
        return []
    kind: type[Engine] = load("engines", name)
    each = kind.gpus_each(options)
    if each == 0:
        raise UserError(
            f"--gpus has no effect on {name}: its models are not in processes of this machine's",
            "leave --gpus out",
        )
    named = _named(gpus)
    if len(named) % each:
        raise UserError(
            f"a copy of the model spans {each} GPUs, and --gpus {gpus} are {len(named)}",
            f"--tensor-parallel-size {max(n for n in range(1, each) if len(named) % n == 0)}",
        )
    return [named[i : i + each] for i in range(0, len(named), each)]


def _named(gpus: str) -> list[str]:
    if gpus == "all":
        seen = gpu.visible() if gpu.present() else []
        if gpu.present() and not seen:
            raise UserError("CUDA_VISIBLE_DEVICES or the driver hides all GPUs", "llmpipe doctor")
        return seen
    named = [name.strip() for name in gpus.split(",")]
    if "" in named or len(set(named)) < len(named):
        raise UserError(f"--gpus {gpus} is no list of different GPUs", "--gpus 0,1, or --gpus all")
    if gpu.present() and (strange := _not_seen(named, gpu.visible())):
        raise UserError(*strange)
    return named


def _not_seen(named: Sequence[str], seen: Sequence[str]) -> tuple[str, str] | None:
    """What to say where one is named that this process doesn't see."""
    free = "CUDA_VISIBLE_DEVICES" not in os.environ  # then ids (GPU-..., MIG-...) are as good
    strange = [n for n in named if n not in seen and not (free and n.startswith(("GPU-", "MIG-")))]
    if not strange:
        return None
    said = f"no GPU {' or '.join(strange)} is to be seen, only {', '.join(seen) or 'none'}"
    return said, f"--gpus {','.join(seen)}" if seen else "unset CUDA_VISIBLE_DEVICES"
