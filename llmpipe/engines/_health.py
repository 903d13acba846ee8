"""Checks of what runs models: torch, transformers, vLLM and flash-attn, tried in a child."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.core.child import Children
from llmpipe.core.finding import Finding, State, joined
from llmpipe.core.gpu import present
from llmpipe.engines._installs import CPU, FRESH, GPU
from llmpipe.engines._trial import WITHOUT_COMPANIONS, facts


def torch(children: Children, seconds: float) -> Finding:
    """torch, what was built for it, and whether it can use the GPU that is there."""
    seen = facts(children, "torch", seconds)
    if isinstance(seen, Finding):
        return seen
    parts: list[tuple[State, str, str]] = [("ok", f"torch {seen['version']}", "")]
    for name, companion in seen["companions"].items():
        said = f"{name} {companion['version']}"
        if companion["error"] is None:
            parts.append(("ok", said, ""))
        elif name == "torchcodec":  # lacks FFmpeg on most servers; only audio and video want it
            parts.append(("warning", f"{said}: {companion['error']}", f"pip uninstall -y {name}"))
        else:
            said = f"{said} doesn't fit this torch: {companion['error']}"
            parts.append(("problem", said, WITHOUT_COMPANIONS))
    parts.append(_device(seen))
    return joined("torch", *parts)


def _device(seen: Mapping[str, Any]) -> tuple[State, str, str]:
    there = present()
    if seen["gpu"]:
        if error := seen.get("gpu_error"):
            do = "nvidia-smi: another job may hold the GPU"
            if "kernel image" in error:
                do = "a newer torch: this one has no kernels for this GPU"
            return "problem", f"the GPU can't be used: {error}", do
        return "ok", f"uses the GPU ({seen['toolkit']})", ""
    if seen["toolkit"] and there:
        said = seen["warning"] or "CUDA_VISIBLE_DEVICES or the driver hides it"
        do = f"a driver for {seen['toolkit']}, or a torch built for the CUDA of nvidia-smi"
        return "problem", f"doesn't see the GPU: {said}", do
    if there:
        do = f"{FRESH}: {GPU}"
        return "warning", "a CPU build, on a machine with a GPU", do
    return "ok", "on the CPU", ""


def transformers(children: Children, seconds: float) -> Finding:
    """transformers, with a tokenizer and the classes of a model."""
    seen = facts(children, "transformers", seconds)
    if isinstance(seen, Finding):
        return seen
    return Finding("transformers", "ok", f"transformers {seen['version']}")


def vllm(children: Children, seconds: float) -> Finding:
    """vLLM with its kernels, and whether its build is for this machine."""
    there = present()
    seen = facts(children, "vllm", seconds, missing=GPU if there else CPU)
    if isinstance(seen, Finding):
        return seen
    device = seen["device"]  # empty where a build for GPUs finds none
    said = f"vllm {seen['version']} for {'the CPU' if device == 'cpu' else 'GPUs'}"
    if device == "cpu" and there:
        do = f"{FRESH}: {GPU}"
        return Finding("vllm", "warning", f"{said}, on a machine with a GPU", do)
    if not device:
        do = "see the checks gpu and torch"
        if not there:
            do = f"{FRESH}: {CPU}; or use --engine transformers"
        return Finding("vllm", "problem", f"{said}, and it finds none", do)
    return Finding("vllm", "ok", said)


def flash_attn(children: Children, seconds: float) -> Finding:
    """flash-attn, which nothing here needs: vLLM brings its own."""
    seen = facts(children, "flash-attn", seconds)
    if isinstance(seen, Finding):
        return seen
    return Finding("flash-attn", "ok", f"flash-attn {seen['version']}")
