"""Checks of what runs models: torch, transformers, vLLM, flash-attn and Ray, tried in a child."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmpipe.core import machine
from llmpipe.core.child import Children
from llmpipe.core.finding import Finding, State, joined
from llmpipe.core.gpu import present

SECONDS: Mapping[str, float] = {
    "torch": 90,
    "transformers": 90,
    "vllm": 120,
    "flash-attn": 60,
    "ray": 60,
}
"""The time that each check has: imports from a network disk that nobody has read yet are slow."""

_COMPANIONS = (
    "pip uninstall -y torchvision torchaudio torchcodec "
    "(with uv: uv pip uninstall torchvision torchaudio torchcodec)"
)
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CONFIGURE_LOGGING": "0",  # its messages then reach the probe
    "RAY_USAGE_STATS_ENABLED": "0",
}
_MENDS = {
    r"torchvision|nms does not exist": _COMPANIONS,
    r"GLIBC(XX)?_[\d.]+.? not found": "use a container of a newer Linux, or --engine transformers",
    r"libcud\w*\.so|libcublas|libnv\w+\.so|libnccl": (
        "it was built for another CUDA: pip install 'llmpipe[vllm]' in a fresh environment, or "
        "'llmpipe[cpu]' where there is no GPU"
    ),
    r"undefined symbol|libtorch|libc10": (
        "it was built for another torch: install it again in a fresh environment"
    ),
    r"No module named '([\w.]+)'": r"pip install \1",
    r"[Cc]annot allocate memory|pthread_create|Resource temporarily": (
        "raise ulimit -u, or export OMP_NUM_THREADS=4"
    ),
}


def torch(children: Children, seconds: float) -> Finding:
    """torch, what was built for it, and whether it can use the GPU that is there."""
    facts = _facts(children, "torch", seconds)
    if isinstance(facts, Finding):
        return facts
    parts: list[tuple[State, str, str]] = [("ok", f"torch {facts['version']}", "")]
    for name, companion in facts["companions"].items():
        said = f"{name} {companion['version']}"
        if companion["error"] is None:
            parts.append(("ok", said, ""))
        elif name == "torchcodec":  # lacks FFmpeg on most servers; only audio and video want it
            parts.append(("warning", f"{said}: {companion['error']}", f"pip uninstall -y {name}"))
        else:
            said = f"{said} doesn't fit this torch: {companion['error']}"
            parts.append(("problem", said, _COMPANIONS))
    parts.append(_device(facts))
    return joined("torch", *parts)


def _device(facts: Mapping[str, Any]) -> tuple[State, str, str]:
    there = present()
    if facts["gpu"]:
        if error := facts.get("gpu_error"):
            do = "nvidia-smi: another job may hold the GPU"
            if "kernel image" in error:
                do = "a newer torch: this one has no kernels for this GPU"
            return "problem", f"the GPU can't be used: {error}", do
        return "ok", f"uses the GPU ({facts['toolkit']})", ""
    if facts["toolkit"] and there:
        said = facts["warning"] or "CUDA_VISIBLE_DEVICES or the driver hides it"
        do = f"a driver for {facts['toolkit']}, or a torch built for the CUDA of nvidia-smi"
        return "problem", f"doesn't see the GPU: {said}", do
    if there:
        do = "pip install 'llmpipe[vllm]' in a fresh environment"
        return "warning", "a CPU build, on a machine with a GPU", do
    return "ok", "on the CPU", ""


def transformers(children: Children, seconds: float) -> Finding:
    """transformers, with a tokenizer and the classes of a model."""
    facts = _facts(children, "transformers", seconds)
    if isinstance(facts, Finding):
        return facts
    return Finding("transformers", "ok", f"transformers {facts['version']}")


def vllm(children: Children, seconds: float) -> Finding:
    """vLLM with its kernels, and whether its build is for this machine."""
    there = present()
    missing = f"pip install 'llmpipe[{'vllm' if there else 'cpu'}]'"
    facts = _facts(children, "vllm", seconds, missing=missing)
    if isinstance(facts, Finding):
        return facts
    device = facts["device"]  # empty where a build for GPUs finds none
    said = f"vllm {facts['version']} for {'the CPU' if device == 'cpu' else 'GPUs'}"
    if device == "cpu" and there:
        do = "pip install 'llmpipe[vllm]' in a fresh environment"
        return Finding("vllm", "warning", f"{said}, on a machine with a GPU", do)
    if not device:
        do = "see the checks gpu and torch"
        if not there:
            do = "pip install 'llmpipe[cpu]' in a fresh environment, or --engine transformers"
        return Finding("vllm", "problem", f"{said}, and it finds none", do)
    return Finding("vllm", "ok", said)


def flash_attn(children: Children, seconds: float) -> Finding:
    """flash-attn, which nothing here needs: vLLM brings its own."""
    facts = _facts(children, "flash-attn", seconds)
    if isinstance(facts, Finding):
        return facts
    return Finding("flash-attn", "ok", f"flash-attn {facts['version']}")


def ray(children: Children, seconds: float) -> Finding:
    """Ray, started with two cores and one task: on shared servers that is where it hangs."""
    base = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
    # A folder of its own on the same disk: a cluster that this user runs is left alone. Its name is
    # short, for Ray puts sockets there, whose whole paths have 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="r", dir=base, ignore_cleanup_errors=True) as folder:
        env = {
            "RAY_TMPDIR": folder,
            # Otherwise Ray would write a token of its own to the user's home.
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        facts = _facts(children, "ray", seconds, env=env)
    strangers = _strangers(Path(base, "ray"))
    if not isinstance(facts, Finding):
        said = f"ray {facts['version']} starts with num_cpus=2"
        if strangers:
            do = "unset RAY_ADDRESS; export RAY_TMPDIR=DIR of your own"
            return Finding("ray", "warning", f"{said}; {'; '.join(strangers)}", do)
        return Finding("ray", "ok", said)
    if facts.state != "problem":
        return facts
    causes = [f"limits here: {machine.limits()}", *strangers]
    return Finding(
        "ray",
        "problem",
        f"{facts.found}; {'; '.join(causes)}",
        "ray.init(num_cpus=4): without it, Ray starts a worker for each core of the whole machine; "
        "ulimit -n 65536; ulimit -u more; unset RAY_ADDRESS; export RAY_TMPDIR=DIR of your own "
        "with a short path, on a disk that has room",
    )


def _strangers(folder: Path) -> list[str]:
    """What of another cluster Ray would meet: one to join, or a folder that isn't this user's."""
    found = []
    if address := os.environ.get("RAY_ADDRESS"):
        found.append(f"RAY_ADDRESS is {address}, and Ray joins that cluster")
    with contextlib.suppress(FileNotFoundError):
        if not os.access(folder, os.W_OK) and folder.stat():
            found.append(f"{folder} can't be written")
        file = folder / "ray_current_cluster"
        if file.stat().st_uid != os.getuid():
            found.append(f"{file} is another user's, and Ray joins that cluster")
    return found


def _facts(
    children: Children,
    name: str,
    seconds: float,
    *,
    missing: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Mapping[str, Any] | Finding:
    """What the probe saw of a library that works, else the finding that it doesn't.

    ``missing`` says how to install what most users want.
    """
    library = name.replace("-", "_")
    # -P keeps the working directory off the path, as it is for the installed command. The package's
    # own folder is handed on, so that an editable checkout works, too.
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(p for p in (os.environ.get("PYTHONPATH"), root) if p)
    ended = children.run(
        [sys.executable, "-P", "-m", "llmpipe.engines._probe", library, str(seconds)],
        seconds,
        {**_ENVIRONMENT, "PYTHONPATH": path, **(env or {})},
    )
    if ended.code is None:
        said = f"no answer in {seconds:g} s: it hangs, or is read from a slow disk"
        do = "llmpipe doctor --patience 3 gives it three times as long"
        return Finding(name, "problem", said + _last(ended.errors), do)
    if ended.code != 0:
        said = f"importing it ends Python: {_how(ended.code)}" + _last(ended.errors)
        return Finding(name, "problem", said, _mend(ended.errors))
    facts: Mapping[str, Any] = json.loads(ended.out)
    if not facts["installed"]:
        return _missing(name, missing)
    if error := facts.get("error"):
        return Finding(name, "problem", f"can't be used: {_short(error)}", _mend(error))
    return facts


def _missing(name: str, install: str | None) -> Finding:
    if name == "flash-attn":
        return Finding(name, "ok", "not installed; nothing here needs it")
    return Finding(name, "warning" if install else "skipped", "not installed", install or "")


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _last(errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return f"; its last words: {_short(lines[-1])}" if lines else ""


def _mend(error: str) -> str:
    for pattern, mend in _MENDS.items():
        if match := re.search(pattern, error):
            return match.expand(mend) if "\\1" in mend else mend
    return "install it again in a fresh environment"


def _short(text: str) -> str:
    return textwrap.shorten(text, 240, placeholder=" ...")
