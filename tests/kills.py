"""A rollout that is killed again and again, and what must be true of it each time."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from llmpipe.core.artifact import MANIFEST, Artifact
from llmpipe.core.records import Problem, Rollout

Key = tuple[str, int]


class KilledRollout:
    """`llmpipe rollout` of ``problems`` to ``out``, started anew after each kill.

    ``known`` holds the last row that was seen of each sample, in the journal or in the table.
    """

    def __init__(self, problems: Path, out: Path, *options: str) -> None:
        self.out = out
        self.partial = out.with_name(out.name + ".partial")
        self.known: dict[Key, Mapping[str, Any]] = {}
        self._command = [sys.executable, "-m", "llmpipe", "rollout", str(problems), "-o", str(out)]
        self._command += options

    def start(self, *options: str) -> subprocess.Popen[str]:
        log = self.out.with_name("log")
        environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
        with log.open("a") as f:
            return subprocess.Popen(
                [*self._command, *options], stderr=f, text=True, env=environment
            )

    def wait(self, process: subprocess.Popen[str]) -> int:
        """Its exit code; where it hangs, what it said and where each of its threads is."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=300)
        process.send_signal(signal.SIGABRT)
        process.wait()
        raise AssertionError(self.said())

    def kill(
        self, process: subprocess.Popen[str], when: Callable[[], bool], delay: float = 0.0
    ) -> bool:
        """Kill it ``delay`` seconds after ``when`` became true; False if it ended before."""
        deadline = time.monotonic() + 300
        while process.poll() is None and not when():
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.0002)
        time.sleep(delay)
        process.kill()
        code = process.wait()
        assert code in {0, -signal.SIGKILL}, self.said()
        return code != 0

    def kill_child(self, process: subprocess.Popen[str], name: str, draw: random.Random) -> bool:
        """Kill one of those that it started, a few rows after the last one that was killed.

        False if it ended before.
        """
        lines = self.lines() + draw.randrange(1, 12)
        while process.poll() is None:
            found = children(process.pid, name.encode())
            if found and self.has(lines):
                time.sleep(draw.uniform(0.02, 0.1))
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    os.kill(draw.choice(found), signal.SIGKILL)
                    return True
            time.sleep(0.001)
        return False

    def finish(self, *options: str) -> None:
        assert self.wait(self.start(*options)) == 0, self.said()
        self.check()

    def said(self) -> str:
        return self.out.with_name("log").read_text()

    def lines(self) -> int:
        """Whole lines in the journal, the header too."""
        return _whole(self._bytes()).count(b"\n")

    def has(self, lines: int) -> bool:
        return self.lines() >= lines

    def tear(self, share: float) -> None:
        """Cut the last line, as a write that was cut leaves it, and forget it.

        A kill hardly ever does that by itself: a write of a page is not parted.
        """
        text = _whole(self._bytes())
        last = text.rfind(b"\n", 0, -1) + 1
        if last:  # more than a header
            torn = text[: last + 1 + int(share * (len(text) - last - 2))]
            (self.partial / "journal.jsonl").write_bytes(torn)
            row = json.loads(text[last:])
            self.known.pop((row["problem_id"], row["sample"]), None)

    def check(self) -> None:
        """Nothing that was ever seen is lost or changed, and nothing is there twice."""
        found: dict[Key, Mapping[str, Any]] = {}
        for text in _whole(self._bytes()).splitlines()[1:]:
            row = json.loads(text)
            key = (row["problem_id"], row["sample"])
            before = found.get(key)
            if before:
                assert before.get("open"), f"{key} is in the journal twice"
                assert _goes_on(before, row), f"{key} has changed"
            found[key] = row
        if (self.out / MANIFEST).is_file():
            table = Artifact.open(self.out, Rollout)
            assert table.damage() is None
            rows = {(r.problem_id, r.sample): r for r in table.iter_rows(Rollout)}
            assert len(rows) == table.rows
            for key, row in rows.items():
                if key in found and not found[key].get("open"):
                    assert Rollout.from_row(found[key]) == row
                found[key] = row.as_row()
        for key, before in self.known.items():
            assert key in found, f"{key} is lost"
            assert _goes_on(before, found[key]), f"{key} has changed"
        self.known |= found

    def complete(self, problems: Path, n: int) -> bool:
        """Whether the table holds ``n`` samples of each problem."""
        rows = Artifact.open(problems, Problem).rows * n
        return (self.out / MANIFEST).is_file() and Artifact.open(self.out).rows == rows

    def _bytes(self) -> bytes:
        try:
            return (self.partial / "journal.jsonl").read_bytes()
        except FileNotFoundError:
            return b""


def children(of: int, name: bytes) -> list[int]:
    """The processes that one has started and that have ``name`` in their command line."""
    found = []
    for listed in Path(f"/proc/{of}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            for pid in map(int, listed.read_text().split()):
                if name in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
    return sorted(found)


def _whole(text: bytes) -> bytes:
    return text[: text.rfind(b"\n") + 1]


def _goes_on(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a row is what it was, or an open conversation has gone on from there."""
    if not before.get("open"):
        return not after.get("open") and Rollout.from_row(before) == Rollout.from_row(after)
    said = before["messages"]
    return bool(after["messages"][: len(said)] == said)
