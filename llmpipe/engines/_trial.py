"""A library tried in a child process: what it is like, or how it fails and what mends that."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmpipe.core.child import Children
from llmpipe.core.finding import Finding
from llmpipe.engines._installs import COMPANIONS, CPU, FRESH, GPU

SECONDS: Mapping[str, float] = {
    "torch": 90,
    "transformers": 90,
    "vllm": 120,
    "flash-attn": 60,
    "ray": 60,
}
"""The time that each check has: imports from a network disk that nobody has read yet are slow."""

WITHOUT_COMPANIONS = f"pip uninstall -y {COMPANIONS} (with uv: uv pip uninstall {COMPANIONS})"
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CONFIGURE_LOGGING": "0",  # its messages then reach the probe
    "RAY_USAGE_STATS_ENABLED": "0",
}
_AGAIN = "install it again in a fresh environment"
_MENDS = {
    r"torchvision|nms does not exist": WITHOUT_COMPANIONS,
    r"GLIBC(XX)?_[\d.]+.? not found": "use a container of a newer Linux, or --engine transformers",
    r"libcud\w*\.so|libcublas|libnv\w+\.so|libnccl": (
        f"it was built for another CUDA; {FRESH}: {GPU}, or where there is no GPU: {CPU}"
    ),
    r"undefined symbol|libtorch|libc10": f"it was built for another torch: {_AGAIN}",
    # A part of a package, such as 'vllm._C', is no package: then all of it is installed again.
    r"No module named '([A-Za-z]\w*)'": r"pip install \1 (or the package that has that module)",
    r"[Cc]annot allocate memory|pthread_create|Resource temporarily|can't start new thread": (
        "export OMP_NUM_THREADS=1; see the checks processes and memory"
    ),
}


@dataclass(frozen=True, slots=True)
class Failed:
    """How a library fails, and what mends it.

    ``words`` is all that it said; ``hangs`` where it gave no answer in its time.
    """

    found: str
    do: str
    words: str
    hangs: bool = False

    def finding(self, name: str) -> Finding:
        return Finding(name, "problem", self.found, self.do)


def facts(
    children: Children, name: str, seconds: float, *, missing: str | None = None
) -> Mapping[str, Any] | Finding:
    """What the probe saw of a library that works, else the finding that it doesn't.

    ``missing`` says how to install what most users want.
    """
    seen = tried(children, name, seconds)
    if isinstance(seen, Failed):
        return seen.finding(name)
    return seen if seen["installed"] else not_installed(name, missing)


def not_installed(name: str, install: str | None = None) -> Finding:
    if name == "flash-attn":
        return Finding(name, "ok", "not installed; nothing here needs it")
    return Finding(name, "warning" if install else "skipped", "not installed", install or "")


def tried(
    children: Children,
    name: str,
    seconds: float,
    *,
    env: Mapping[str, str] | None = None,
    otherwise: str = _AGAIN,
) -> Mapping[str, Any] | Failed:
    """What the probe saw of a library: with ``installed`` false, nothing else.

    ``otherwise`` is what to do where it is imported, then fails by what no mend is known for.
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
        patience = min(100, 3 * seconds / SECONDS.get(name, seconds))
        do = f"llmpipe doctor --patience {patience:g} gives it longer"
        return Failed(said + _last(ended.errors), do, ended.errors, hangs=True)
    if ended.code != 0:
        said = f"importing it ends Python: {_how(ended.code)}" + _last(ended.errors)
        return Failed(said, _mend(ended.errors, _AGAIN), ended.errors)
    seen: Mapping[str, Any] = json.loads(ended.out)
    if error := seen.get("error"):
        do = _mend(error, otherwise if seen["imported"] else _AGAIN)
        return Failed(f"can't be used: {_short(error)}", do, f"{ended.errors}\n{error}")
    return seen


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _last(errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return f"; its last words: {_short(lines[-1])}" if lines else ""


def _mend(error: str, otherwise: str) -> str:
    for pattern, mend in _MENDS.items():
        if match := re.search(pattern, error):
            return match.expand(mend) if "\\1" in mend else mend
    return otherwise


def _short(text: str) -> str:
    return textwrap.shorten(text, 240, placeholder=" ...")
