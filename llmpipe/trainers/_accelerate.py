"""An Accelerate config, as ``accelerate config`` writes it: what of it decides about a training."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmpipe.core import gpu
from llmpipe.core.errors import UserError
from llmpipe.trainers._job import Settings

_KINDS = ("NO", "MULTI_GPU", "FSDP", "DEEPSPEED")
SHARED = ("FSDP", "DEEPSPEED")
"""Kinds that share the weights out among the processes."""

WHOLE = "whole"


@dataclass(frozen=True, kw_only=True)
class Accelerate:
    """How many processes train, and whether each has all weights.

    ``layout`` says how checkpoints are written: `WHOLE`, or in shards of one kind or another.
    """

    processes: int
    kind: str
    layout: str


def read(file: Path) -> Accelerate:
    """What a config says.

    Raises:
        UserError: it is no such config, or one for what `llmpipe train` doesn't do.
    """
    given = _load(file)
    kind = str(given.get("distributed_type", "NO"))
    for wrong, said in (
        (kind not in _KINDS, f"distributed_type: {kind}, not one of {', '.join(_KINDS)}"),
        (_number(given, "num_machines", 1) != 1, "several machines, and llmpipe train runs on one"),
        (given.get("mixed_precision") in ("fp16", "fp8"), "a mixed_precision that --dtype hasn't"),
        (bool(given.get("parallelism_config")), "a parallelism_config: rows aren't split here"),
        (bool(given.get("use_cpu")) and kind in SHARED, f"{kind} on the CPU, which is for GPUs"),
    ):
        if wrong:
            raise UserError(f"{file} asks for {said}", _hint(file))
    processes = _number(given, "num_processes", 0)
    if processes < 1:  # accelerate writes -1 for what is said later
        processes = _gpus(given, kind)
    return Accelerate(processes=processes, kind=kind, layout=_layout(given, kind, file))


def _load(file: Path) -> Mapping[str, Any]:
    import yaml

    try:
        given = yaml.safe_load(file.read_text(encoding="utf-8"))  # JSON is YAML
    except OSError as e:
        raise UserError(f"can't read {file}: {e.strerror}", _hint(file)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise UserError(f"{file} is no YAML: {str(e).splitlines()[0]}", _hint(file)) from None
    if not isinstance(given, dict) or "distributed_type" not in given:
        raise UserError(f"{file} is no config of Accelerate: no distributed_type", _hint(file))
    return given


def _number(given: Mapping[str, Any], name: str, default: int) -> int:
    value = given.get(name, default)
    return value if isinstance(value, int) else default


def _gpus(given: Mapping[str, Any], kind: str) -> int:
    """As many processes as there are GPUs, where the config doesn't say."""
    named = str(given.get("gpu_ids") or "all")
    chosen = gpu.visible() if named == "all" else named.split(",")
    return 1 if kind == "NO" else max(1, len(chosen))


def _layout(given: Mapping[str, Any], kind: str, file: Path) -> str:
    if kind == "FSDP":
        fsdp = given.get("fsdp_config") or {}
        named = (fsdp.get(f"fsdp_{name}") for name in ("version", "state_dict_type"))
        return " ".join(["FSDP", *(str(value) for value in named if value)])
    if kind == "DEEPSPEED":
        settings = given.get("deepspeed_config") or {}
        if "deepspeed_config_file" in settings:
            raise UserError(
                f"{file} names another file, of DeepSpeed's own: settings are to be in it alone",
                _hint(file),
            )
        stage = settings.get("zero_stage", 2)
        if stage == 3 and settings.get("zero3_save_16bit_model") is not True:
            raise UserError(
                f"with {file} no whole model would be written",
                f"zero3_save_16bit_model: true below deepspeed_config in {file}",
            )
        return f"ZeRO {stage}"
    return WHOLE


def check(settings: Settings) -> None:
    """See that processes can be started, and share what is trained.

    Raises:
        UserError: they can't, or the Accelerate that is installed knows a config's keys otherwise.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError(
            "this is one of several processes, but llmpipe train starts them itself",
            "llmpipe train PACKED -o OUT --model M --accelerate-config FILE",
        )
    if settings.accelerate_config:
        file = Path(settings.accelerate_config)
        _check_keys(file)
        _check_kind(read(file).kind, settings)


def _check_keys(file: Path) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    try:
        load_config_from_file(str(file))
    except (ValueError, TypeError) as e:
        raise UserError(f"accelerate refuses {file}: {e}", _hint(file)) from None


def _check_kind(kind: str, settings: Settings) -> None:
    if kind == "DEEPSPEED" and importlib.util.find_spec("deepspeed") is None:
        raise UserError("deepspeed is not installed", "pip install deepspeed")
    if kind in SHARED and settings.lora and settings.lora.kind in ("qlora", "adalora"):
        raise UserError(
            f"{settings.lora.kind} needs all weights in each process, and {kind} shares them out",
            f"--lora-kind lora, or distributed_type: MULTI_GPU in {settings.accelerate_config}",
        )


def _hint(file: Path) -> str:
    return f"accelerate config --config_file {file}"
