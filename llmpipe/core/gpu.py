"""The GPUs of this machine and their check, by ``nvidia-smi``: it works where torch doesn't."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from llmpipe.core.child import Children, Ended
from llmpipe.core.finding import Finding

_SECONDS = 30.0  # eight GPUs without the persistence daemon take ten
_BUSY = 0.1  # of its memory in use: vLLM wants nine tenths
_CPU = "small models run on the CPU (see the check vllm); for others ask for a machine with a GPU"
_CONTAINER = "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE"
_AGAIN = "run nvidia-smi by hand; if that fails, too: install the driver again (administrator)"
_MENDS = {
    "version mismatch": "the driver was updated under a running kernel: reboot (administrator)",
    "communicate with the NVIDIA driver": "load the driver: modprobe nvidia (administrator)",
    "No devices were found": f"ask the scheduler for a GPU, or {_CONTAINER}",
    "Insufficient Permissions": "ask for access to /dev/nvidia*",
    "Permission denied": "ls -l /dev/nvidia*; ask the administrator for access",
}


@dataclass(frozen=True, slots=True)
class _Gpu:
    """One GPU; memory in bytes, None where the machine's own memory is the GPU's."""

    name: str
    used: int | None
    total: int | None

    @property
    def busy(self) -> bool:
        return bool(self.total) and (self.used or 0) > _BUSY * (self.total or 0)

    def __str__(self) -> str:
        if self.used is None or self.total is None:
            return self.name
        return f"{self.name} ({self.used / (1 << 30):.1f} of {self.total / (1 << 30):.0f} GiB used)"


def present() -> bool:
    """Whether the machine, or this container, has a GPU of NVIDIA's."""
    # Linux inside Windows has one device for all kinds of GPU.
    in_windows = Path("/dev/dxg").exists() and shutil.which("nvidia-smi") is not None
    return in_windows or any(Path("/dev").glob("nvidia[0-9]*"))


def visible() -> list[str]:
    """What CUDA_VISIBLE_DEVICES names, or else every GPU, as it would be named there.

    A GPU cut in slices (MIG) counts as these: CUDA doesn't take it whole.
    """
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        named = [name.strip() for name in chosen.split(",")]
        return list(itertools.takewhile(lambda name: name not in ("", "-1"), named))  # as CUDA does
    program = shutil.which("nvidia-smi")
    if program is None:
        # CUDA counts those that are here, whatever the numbers of their files.
        return [str(i) for i, _ in enumerate(Path("/dev").glob("nvidia[0-9]*"))]
    with Children() as children:
        listed = children.run([program, "-L"], _SECONDS).out
    found: list[list[str]] = []
    for line in listed.splitlines():
        if gpu := re.match(r"GPU (\d+):", line):
            found.append([gpu[1]])
        elif found and (slice_ := re.match(r"\s+MIG .*\(UUID: (\S+)\)", line)):
            found[-1].append(slice_[1])
    return [name for whole, *slices in found for name in slices or [whole]]


def gpu(children: Children) -> Finding:
    """The GPUs with their memory, the driver, and the newest CUDA that it runs."""
    program = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", mode=os.F_OK)
    if program is None:
        if present():
            do = f"install the driver's own nvidia-smi, or in a container: {_CONTAINER}"
            return Finding("gpu", "warning", "there are GPUs, but no nvidia-smi", do)
        return Finding("gpu", "warning", "no NVIDIA GPU found", _CPU)
    try:
        ended = children.run([program, "-q", "-x"], _SECONDS)
    except OSError as e:
        return _not_run(program, e)
    if ended.code != 0:
        return _failed(ended)
    report = _parsed(ended.out)
    if report is None:
        said = f"what nvidia-smi says can't be read: {_begin(ended.out) or 'nothing'}"
        return Finding("gpu", "problem", said, _AGAIN)
    found = [_read(element) for element in report.iter("gpu")]
    driver, cuda = report.findtext("driver_version"), report.findtext("cuda_version")
    if not found:
        return Finding("gpu", "warning", f"none (driver {driver})", _MENDS["No devices were found"])
    said = f"{_listed(found)}; driver {driver}, CUDA up to {cuda}"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        said += f"; CUDA_VISIBLE_DEVICES={visible}"
        if visible.strip() in ("", "-1"):
            return Finding("gpu", "warning", f"{said} hides them", "unset CUDA_VISIBLE_DEVICES")
    busy = [i for i, g in enumerate(found) if g.busy]
    idle = [i for i, g in enumerate(found) if not g.busy]
    if not busy:
        return Finding("gpu", "ok", said)
    do = "nvidia-smi says whose they are"
    if idle:
        do = f"export CUDA_VISIBLE_DEVICES={','.join(map(str, idle))}"
    return Finding("gpu", "warning", f"{said}; in use: {', '.join(map(str, busy))}", do)


def _read(element: ElementTree.Element) -> _Gpu:
    name = element.findtext("product_name") or "GPU"
    memory = "fb_memory_usage"
    return _Gpu(name, *(_bytes(element.findtext(f"{memory}/{key}")) for key in ("used", "total")))


def _bytes(text: str | None) -> int | None:
    """``"81559 MiB"``, or ``"N/A"``."""
    number = (text or "").partition(" ")[0]
    return int(number) << 20 if number.isdigit() else None


def _listed(found: list[_Gpu]) -> str:
    return ", ".join(f"{i}: {g}" for i, g in enumerate(found))


def _parsed(text: str) -> ElementTree.Element | None:
    """The report of ``nvidia-smi -q -x``, or None where it is something else."""
    try:
        report = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None
    return report if report.tag == "nvidia_smi_log" else None


def _not_run(program: str, e: OSError) -> Finding:
    do = _AGAIN
    if isinstance(e, PermissionError):
        do = f"chmod a+rx {program} (administrator), if its disk is not mounted noexec"
    return Finding("gpu", "problem", f"{program} can't be run: {e.strerror}", do)


def _failed(ended: Ended) -> Finding:
    if ended.code is None:
        said = f"nvidia-smi gives no answer in {_SECONDS:g} s"
        return Finding("gpu", "problem", said, "reboot (administrator): the driver hangs")
    text = ended.out + ended.errors
    do = next((mend for sign, mend in _MENDS.items() if sign in text), _AGAIN)
    said = _begin(text) or f"exit code {ended.code}, and not a word"
    return Finding("gpu", "problem", f"nvidia-smi fails: {said}", do)


def _begin(text: str) -> str:
    """The beginning of what a program says, in one line without what a terminal would obey."""
    line = "".join(c if c.isprintable() else " " for c in text[:2000])
    return textwrap.shorten(line, 160, placeholder=" ...")
