"""The check of Ray, which fails by what else is on a shared server more often than by itself."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
from pathlib import Path

from llmpipe.core import cgroup, machine
from llmpipe.core.child import Children
from llmpipe.core.finding import Finding
from llmpipe.engines._trial import Failed, not_installed, tried

_CORES = 4
_OWN_FOLDER = "export RAY_TMPDIR=$(mktemp -d -p /tmp)"
_WHOLE_ERROR = """python -c 'import ray; ray.init("local", num_cpus=2)' shows the whole error"""
_RESOURCES = re.compile(
    r"Resource temporarily unavailable|pthread_create|can't start new thread|No space left"
    r"|[Cc]annot allocate memory|Too many open files|plasma|\bshm\b|[Tt]imed out"
)


def ray(children: Children, seconds: float) -> Finding:
    """Ray, started with two cores and one task: on shared servers that is where it hangs."""
    base = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir())
    try:
        # A folder of its own on the same disk: a cluster that this user runs is left alone. Its
        # name is short, for Ray puts sockets there, whose whole paths have 107 bytes at most.
        own = tempfile.TemporaryDirectory(prefix="r", dir=base, ignore_cleanup_errors=True)
    except OSError as e:
        return Finding("ray", "problem", f"{base} can't be written: {e.strerror}", _OWN_FOLDER)
    with own as folder:
        env = {
            "RAY_TMPDIR": folder,
            # Otherwise Ray would write a token of its own to the user's home.
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        seen = tried(children, "ray", seconds, env=env, otherwise=_WHOLE_ERROR)
    strangers = _strangers(base / "ray")
    if isinstance(seen, Failed):
        return _problem(seen, strangers, base)
    if not seen["installed"]:
        return not_installed("ray")
    said = f"ray {seen['version']} starts with num_cpus=2"
    found, do = _joined([(said, ""), *strangers])
    return Finding("ray", "warning" if strangers else "ok", found, do)


def _problem(failed: Failed, strangers: list[tuple[str, str]], base: Path) -> Finding:
    """What may be behind it, where it hangs or lacks something; else only what Ray says."""
    if "AF_UNIX path length" in failed.words:
        return Finding("ray", "problem", failed.found, _OWN_FOLDER)
    if not failed.hangs and not _RESOURCES.search(failed.words):
        return failed.finding("ray")
    low = [machine.open_files(), machine.processes(), machine.shm(), machine.temporary(base)]
    parts = [
        (failed.found, ""),
        (f"limits here: {machine.limits(base)}", ""),
        *(("", finding.do) for finding in low if finding.state != "ok"),
        *strangers,
        *_many_cores(),
        ("", failed.do),
    ]
    found, do = _joined(parts)
    return Finding("ray", "problem", found, do)


def _many_cores() -> list[tuple[str, str]]:
    seen = os.cpu_count() or 1
    may_use = min(len(os.sched_getaffinity(0)), int(cgroup.cores() or seen))
    count = max(1, min(_CORES, may_use))
    if seen <= count:
        return []
    said = f"without num_cpus, Ray may start a worker for each of {seen} cores"
    return [(said, f"in Python: ray.init(num_cpus={count})")]


def _strangers(folder: Path) -> list[tuple[str, str]]:
    """What of another cluster Ray would meet, each with what to do about it."""
    found = []
    if address := os.environ.get("RAY_ADDRESS"):
        said = f"RAY_ADDRESS is {address}, and Ray joins that cluster"
        found.append((said, "unset RAY_ADDRESS"))
    with contextlib.suppress(FileNotFoundError):
        if not os.access(folder, os.W_OK) and folder.stat():
            found.append((f"{folder} can't be written", _OWN_FOLDER))
        file = folder / "ray_current_cluster"
        if file.stat().st_uid != os.getuid():
            said = f"{file} is another user's, and Ray joins that cluster"
            found.append((said, _OWN_FOLDER))
    return found


def _joined(parts: list[tuple[str, str]]) -> tuple[str, str]:
    return (
        "; ".join(found for found, _ in parts if found),
        "; ".join(dict.fromkeys(do for _, do in parts if do)),
    )
