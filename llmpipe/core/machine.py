"""Checks of the machine: disks, limits, memory, cores. Each is a function that gives a finding.

Thresholds are where stages and the libraries under them begin to fail on shared servers.
"""

from __future__ import annotations

import contextlib
import os
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

from llmpipe.core import cgroup
from llmpipe.core.finding import Finding, State, joined

_GIB = 1 << 30
_DISK = (50, 5)  # GiB free: a warning below the first, a problem below the second
_TEMPORARY = (10, 1)
_INODES = 10_000
_FILES, _FILES_WANTED = 4096, 65536
_TASKS = 4096  # threads that Ray or vLLM may want on a large machine
_SHM = 1  # GiB
_MEMORY = (8, 2)  # GiB


def disk() -> Iterator[Finding]:
    """Where downloads go, and temporary files: room, inodes, and whether they can be written."""
    seen: dict[int, str] = {}
    here = [Path(name) for name in ("models", "datasets") if Path(name).is_dir()]
    for folder in here or [Path.cwd()]:
        if (device := folder.stat().st_dev) not in seen:
            seen[device] = str(folder)
            larger = "cd to a larger disk, or make models a link to one"
            yield _disk(folder, *_DISK, larger, "cd to a folder of your own")
    try:
        temporary = Path(tempfile.gettempdir())
    except FileNotFoundError:
        yield Finding(
            "disk", "problem", "no folder for temporary files can be written", "export TMPDIR=DIR"
        )
    else:
        yield _disk(
            temporary, *_TEMPORARY, "export TMPDIR=DIR on a larger disk", "export TMPDIR=DIR"
        )


def temporary(folder: Path) -> Finding:
    """The room of a folder that Ray writes to."""
    do = "export RAY_TMPDIR=DIR"
    return _disk(folder, *_TEMPORARY, f"{do} on a larger disk", f"{do} of your own")


def _disk(folder: Path, warn: int, stop: int, larger: str, own: str) -> Finding:
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    parts = [(_by(free / _GIB, warn, stop), f"{folder.resolve()} has {_gib(free)} free", "")]
    if room.f_files and room.f_favail < _INODES:  # a file system without a table has none to count
        state: State = "warning" if room.f_favail else "problem"
        parts.append((state, f"{room.f_favail} more files fit (inodes)", "remove small files"))
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as e:
        parts.append(("problem", f"can't be written: {e.strerror}", own))
    if parts[0][0] != "ok":
        parts[0] = (*parts[0][:2], larger)
    return joined("disk", *parts)


def open_files() -> Finding:
    """Files and connections that a process may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{_limit(soft)} at once (ulimit -n)"
    if hard != soft:
        found += f", up to {_limit(hard)} without an administrator"
    if _unlimited(soft) or soft >= _FILES:
        return Finding("open-files", "ok", found)
    if _unlimited(hard) or hard >= _FILES_WANTED:
        return Finding("open-files", "warning", found, f"ulimit -n {_FILES_WANTED}")
    more = f"ulimit -n {hard}; " if hard > soft else ""
    return Finding(
        "open-files",
        "warning",
        found,
        f"{more}ask the administrator for {_FILES_WANTED} (nofile in limits.conf)",
    )


def processes() -> Finding:
    """Processes and threads that this user, and this container, may have more of."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    used = _threads_of(os.getuid())
    parts: list[tuple[State, str, str]] = [
        ("ok", f"{used} threads of {_limit(soft)} (ulimit -u)", "")
    ]
    if not _unlimited(soft) and soft - used < _TASKS:
        more = [f"ulimit -u {_limit(hard)}"] if hard != soft else []
        if not _unlimited(hard) and hard - used < _TASKS:
            more.append("ask the administrator for more (nproc in limits.conf)")
        parts = [("warning", parts[0][1], "; ".join(more))]
    if room := cgroup.tasks():
        little = room.free < _TASKS
        do = "start the container with --pids-limit -1" if little else ""
        parts.append(
            (
                "warning" if little else "ok",
                f"{room.used} of {room.limit} in this container or job (pids.max)",
                do,
            )
        )
    return joined("processes", *parts)


def shm() -> Finding:
    """Shared memory, by which NCCL, vLLM's workers and data loaders talk."""
    folder = Path("/dev/shm")
    more = "docker run --shm-size=16g, or as root: mount -o remount,size=16G /dev/shm"
    try:
        room = os.statvfs(folder)
    except OSError as e:
        return Finding("shm", "warning", f"{folder}: {e.strerror}", more)
    size, free = room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize
    found = f"{_gib(free)} free of {_gib(size)} in {folder}"
    if not os.access(folder, os.W_OK):
        return Finding(
            "shm", "problem", f"{folder} can't be written", "as root: chmod 1777 /dev/shm"
        )
    if free >= _SHM * _GIB:
        return Finding("shm", "ok", found)
    full = size >= 2 * _SHM * _GIB
    return Finding(
        "shm", "warning", found, "ls -l /dev/shm, and remove what is stale" if full else more
    )


def memory() -> Finding:
    """Main memory that is left, on the machine and in this container or job."""
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    info = {key: int(value.split()[0]) << 10 for key, _, value in (x.partition(":") for x in lines)}
    total, free = info["MemTotal"], info["MemAvailable"]
    found = f"{_gib(free)} available of {_gib(total)}"
    room = cgroup.memory()
    if room and room.limit < total:
        found += f"; this container or job has {_gib(room.free)} left of {_gib(room.limit)}"
        free = min(free, room.free)
    state = _by(free / _GIB, *_MEMORY)
    do = "end what else runs, or ask for more memory: a model must fit beside its cache"
    return Finding("memory", state, found, "" if state == "ok" else do)


def cores() -> Finding:
    """Cores that are seen, against those that may be used."""
    seen, usable = os.cpu_count() or 1, len(os.sched_getaffinity(0))
    quota = cgroup.cores()
    found = f"{usable} of {seen} cores" if usable < seen else f"{seen} cores"
    if quota is None or quota >= usable:
        return Finding("cores", "ok", found)
    count = max(1, int(quota))
    return Finding(
        "cores",
        "warning",
        f"{found} are seen, but this container or job gets the time of {quota:g}",
        f"export OMP_NUM_THREADS={count}; in Python: ray.init(num_cpus={count})",
    )


def limits(temporary: Path | None = None) -> str:
    """In a line: the limits that libraries with many processes run into.

    ``temporary`` is where they write, instead of the usual folder for temporary files.
    """
    nofile, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    nproc, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    words = [
        f"{os.cpu_count()} cores",
        f"ulimit -n {_limit(nofile)}",
        f"ulimit -u {_limit(nproc)}",
    ]
    if room := cgroup.tasks():
        words.append(f"pids.max {room.limit}")
    for folder in (Path("/dev/shm"), temporary or Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            fs = os.statvfs(folder)
            words.append(f"{_gib(fs.f_bavail * fs.f_frsize)} free in {folder}")
    return ", ".join(words)


def _threads_of(user: int) -> int:
    """Threads that run for a user: what ``ulimit -u`` counts."""
    count = 0
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and folder.stat().st_uid == user:
                count += sum(1 for _ in (folder / "task").iterdir())
    return count


def _by(value: float, warn: float, stop: float) -> State:
    return "problem" if value < stop else "warning" if value < warn else "ok"


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB" if size < 10 * _GIB else f"{size / _GIB:.0f} GiB"


def _limit(value: int) -> str:
    return "unlimited" if _unlimited(value) else str(value)


def _unlimited(value: int) -> bool:
    return value == resource.RLIM_INFINITY
