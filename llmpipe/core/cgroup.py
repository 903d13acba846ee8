"""The limits of the container or job that this process runs in, from cgroup version 2 or 1.

Containers and job schedulers set them here, and what the machine says of itself (``nproc``,
``free``) doesn't show them. The least of the limits on the way up to the root counts. Of both
versions see the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_NONE = 1 << 60  # version 1 writes "no limit" as a number near 2^63


@dataclass(frozen=True, slots=True)
class Room:
    """A limit and how much of it is taken."""

    limit: int
    used: int

    @property
    def free(self) -> int:
        return max(0, self.limit - self.used)


def cores(root: Path = _ROOT, own: Path = _OWN) -> float | None:
    """Cores' worth of time that may be used, or None where there's no limit."""
    quotas = []
    for folder in _levels("cpu", root, own):
        if words := _words(folder / "cpu.max"):
            quota, period = words[0], words[1]
        elif words := _words(folder / "cpu.cfs_quota_us"):
            quota, period = words[0], _words(folder / "cpu.cfs_period_us")[0]
        else:
            continue
        if quota not in ("max", "-1"):
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def memory(root: Path = _ROOT, own: Path = _OWN) -> Room | None:
    """Bytes of memory, without file cache that the kernel would give up; None: no limit."""
    rooms = []
    for folder in _levels("memory", root, own):
        for limit, used, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            if room := _room(folder / limit, folder / used):
                rooms.append(Room(room.limit, max(0, room.used - _stat(folder, cache))))
    return min(rooms, key=lambda room: room.free, default=None)


def tasks(root: Path = _ROOT, own: Path = _OWN) -> Room | None:
    """Processes and threads, or None where there's no limit."""
    levels = _levels("pids", root, own)
    rooms = [r for f in levels if (r := _room(f / "pids.max", f / "pids.current"))]
    return min(rooms, key=lambda room: room.free, default=None)


def _levels(controller: str, root: Path, own: Path) -> Iterator[Path]:
    """The folders of this process's cgroup and of those above it."""
    with contextlib.suppress(OSError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                bases = [root, root / "unified"]
            elif controller in controllers.split(","):
                bases = [root / controllers, root / controller]
            else:
                continue
            for base in bases:
                # A container may see its own folder as the root, under the path that the host has.
                folder = base / path.lstrip("/")
                yield folder
                while folder != base:
                    folder = folder.parent
                    yield folder


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").split()
    except OSError:
        return []


def _room(limit: Path, used: Path) -> Room | None:
    most, now = _words(limit), _words(used)
    if not most or not now or most[0] == "max" or int(most[0]) > _NONE:
        return None
    return Room(int(most[0]), int(now[0]))


def _stat(folder: Path, key: str) -> int:
    words = _words(folder / "memory.stat")
    return next((int(n) for k, n in zip(words[::2], words[1::2], strict=False) if k == key), 0)
