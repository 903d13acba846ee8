"""Check the machine, and say what to do about each finding.

Checks run side by side, each with a limit on its time: a disk, a network, a driver or a library
that hangs is a finding like any other.
"""

from __future__ import annotations

import logging
import os
import queue
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from llmpipe.core import access, gpu, machine, reach
from llmpipe.core.child import Children
from llmpipe.core.endpoints import endpoints, shown
from llmpipe.core.errors import UserError
from llmpipe.core.finding import Finding
from llmpipe.engines import _health as health
from llmpipe.engines._health_ray import ray
from llmpipe.engines._trial import SECONDS

log = logging.getLogger(__name__)

NAMES = (
    "endpoint",
    "token",
    "xet",
    "disk",
    "open-files",
    "processes",
    "shm",
    "memory",
    "cores",
    "gpu",
    "torch",
    "transformers",
    "vllm",
    "flash-attn",
    "ray",
)
MOST_PATIENCE = 100.0
_SECONDS = 20.0  # for a look at this machine: a network disk that is gone never answers
_GPU_SECONDS = 45.0
_NETWORK_SECONDS = 90.0
_SPARE = 15.0  # more than its own limit, for a check that keeps one

Say = Callable[[Sequence[str]], None]


@dataclass(frozen=True, kw_only=True)
class Config:
    """What to check.

    ``endpoints`` are those that a download would ask where none is given. ``patience`` scales all
    limits on time, by `MOST_PATIENCE` at most.
    """

    endpoints: tuple[str, ...] = ()
    repo: str = "HuggingFaceTB/SmolLM2-135M-Instruct"
    skip: tuple[str, ...] = ()
    patience: float = 1.0


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, in a fixed order; ``ok`` where none is a problem."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(f.state != "problem" for f in self.findings)


@dataclass(frozen=True, slots=True)
class _Check:
    """``about`` begins what is said; ``heavy`` ones import large libraries, few at a time."""

    name: str
    run: Callable[[], Finding | Iterable[Finding]]
    seconds: float
    about: str = ""
    heavy: bool = False


def run(config: Config, say: Say = lambda running: None) -> Report:
    """Make all checks; ``say`` is told which are running, whenever that changes.

    Raises:
        UserError: no such check to skip, an endpoint that is no URL, a repo or a patience that
            can't be.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", config.repo):
        raise UserError(
            f"{config.repo!r} is not the id of a repo", f"write ORG/NAME, such as {Config.repo}"
        )
    if not 0 < config.patience <= MOST_PATIENCE:  # nan neither
        raise UserError(
            f"--patience is {config.patience}", f"a number up to {MOST_PATIENCE:g}, such as 3"
        )
    for name in config.skip:
        if name not in NAMES:
            raise UserError(f"there is no check {name!r}", f"--skip one of: {', '.join(NAMES)}")
    with Children() as children:
        checks = _checks(config, children)
        found = _all([c for c in checks if c.name not in config.skip], say)
    found = _mirrored(found)
    skipped = [Finding(name, "skipped", "by --skip") for name in NAMES if name in config.skip]
    return Report(tuple(sorted([*found, *skipped], key=lambda f: NAMES.index(f.name))))


def _mirrored(findings: Sequence[Finding]) -> list[Finding]:
    """An endpoint that fails is no problem while another works: downloads go on with that."""
    works = any(f.name == "endpoint" and f.state != "problem" for f in findings)
    return [
        replace(
            f,
            state="warning",
            found=f"{f.found}; downloads go on with the others",
            do="leave it out while it fails",
        )
        if works and f.name == "endpoint" and f.state == "problem"
        else f
        for f in findings
    ]


def _checks(config: Config, children: Children) -> list[_Check]:
    asked = endpoints(config.endpoints)
    near, far = _SECONDS * config.patience, _NETWORK_SECONDS * config.patience
    checks = [
        _Check("endpoint", partial(reach.endpoint, url, config.repo, asked), far, f"{shown(url)}: ")
        for url in asked
    ]
    checks += [
        _Check("token", access.token, near),
        _Check("xet", partial(access.xet, asked), near),
        _Check("disk", machine.disk, near),
        _Check("open-files", machine.open_files, near),
        _Check("processes", machine.processes, near),
        _Check("shm", machine.shm, near),
        _Check("memory", machine.memory, near),
        _Check("cores", machine.cores, near),
        _Check("gpu", partial(gpu.gpu, children), _GPU_SECONDS * config.patience),
    ]
    for name, check in (
        ("torch", health.torch),
        ("transformers", health.transformers),
        ("vllm", health.vllm),
        ("flash-attn", health.flash_attn),
        ("ray", ray),
    ):
        limit = SECONDS[name] * config.patience
        run_it = partial(check, children, limit)
        checks.append(_Check(name, run_it, limit + _SPARE, heavy=True))
    return checks


def _all(checks: Sequence[_Check], say: Say) -> list[Finding]:
    """Findings of all checks, in the checks' order. One that gives no answer is left behind."""
    at_once = max(1, min(4, len(os.sched_getaffinity(0)) // 2))
    waiting = deque(range(len(checks)))
    running: dict[int, float] = {}  # when each must have answered
    answers: queue.SimpleQueue[tuple[int, list[Finding]]] = queue.SimpleQueue()
    found: dict[int, list[Finding]] = {}

    def begin(number: int) -> None:
        running[number] = time.monotonic() + checks[number].seconds
        # Not a pool: that would wait for what hangs when the program ends.
        threading.Thread(
            target=lambda: answers.put((number, _findings(checks[number]))), daemon=True
        ).start()

    while waiting or running:
        for number in list(waiting):
            heavy = sum(checks[n].heavy for n in running)
            if not checks[number].heavy or heavy < at_once:
                waiting.remove(number)
                begin(number)
        say(list(dict.fromkeys(checks[n].name for n in sorted(running))))
        try:
            number, findings = answers.get(
                timeout=max(0.0, min(running.values()) - time.monotonic())
            )
        except queue.Empty:
            number = min(running, key=lambda n: running[n])
            findings = [_hangs(checks[number])]
        if running.pop(number, None) is not None:
            found[number] = findings
    return [finding for number in sorted(found) for finding in found[number]]


def _findings(check: _Check) -> list[Finding]:
    """What a check finds; what it stumbles over is a finding, too."""
    try:
        findings = check.run()
        return [findings] if isinstance(findings, Finding) else list(findings)
    except Exception as e:
        log.debug("the check %s failed", check.name, exc_info=True)
        text = " ".join(str(e).split())
        said = f"{check.about}the check itself failed: {type(e).__name__}: {text}"[:240]
        return [Finding(check.name, "problem", said, _without(check))]


def _hangs(check: _Check) -> Finding:
    said = f"{check.about}no answer in {check.seconds:g} s"
    return Finding(check.name, "problem", said, _without(check))


def _without(check: _Check) -> str:
    return f"llmpipe doctor --skip {check.name} goes without it"
