"""Nothing of a command outlives its limit, whatever it does to get away."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from llmpipe.core.child import Children, Ended

GRANDCHILD = """
import os, subprocess, sys, time
file, leave, stay = sys.argv[1:]
code = 'import time; time.sleep(600)'
child = subprocess.Popen([sys.executable, '-c', code], start_new_session=leave == 'leave')
open(file, 'w').write(str(child.pid))
time.sleep(600 if stay == 'stay' else 0)
"""


def python(code: str, *arguments: str, seconds: float = 30) -> Ended:
    with Children() as children:
        return children.run(_command(code, arguments), seconds)


def _command(code: str, arguments: Sequence[str] = ()) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_a_command_gives_its_words_and_its_code() -> None:
    code = "import sys; print('out'); print('words', file=sys.stderr); sys.exit(7)"
    assert python(code) == Ended(7, "out\n", "words\n")
    assert python("import os; os.abort()").code == -signal.SIGABRT
    assert python("print(input())").code == 1  # there is nothing to read, and nobody to wait for


def test_what_hangs_is_killed_with_what_it_said() -> None:
    ignoring = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('begun', flush=True); time.sleep(600)"
    )
    assert python(ignoring, seconds=1) == Ended(None, "begun\n", "")


@pytest.mark.parametrize("leave", ["leave", "keep"])
@pytest.mark.parametrize("stay", ["stay", "end"])
def test_its_children_end_with_it(tmp_path: Path, leave: str, stay: str) -> None:
    file = tmp_path / "pid"
    ended = python(GRANDCHILD, str(file), leave, stay, seconds=1)
    assert ended.code == (None if stay == "stay" else 0)
    assert not runs(int(file.read_text()))


def test_closing_ends_what_runs_and_starts_no_more(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    children = Children()
    results: list[Ended] = []
    command = _command(GRANDCHILD, (str(file), "leave", "stay"))
    thread = threading.Thread(target=lambda: results.append(children.run(command, 300)))
    thread.start()
    while not (file.exists() and file.read_text()):
        time.sleep(0.02)
    children.close()
    thread.join()
    assert results[0].code == -signal.SIGKILL
    assert not runs(int(file.read_text()))
    with pytest.raises(RuntimeError):
        children.run(command, 300)


def test_others_are_left_alone() -> None:
    with Children() as children:
        results: list[Ended] = []
        slow = _command("import time; time.sleep(1.5); print('whole')")
        thread = threading.Thread(target=lambda: results.append(children.run(slow, 60)))
        thread.start()
        assert children.run(_command("import time; time.sleep(60)"), 0.3).code is None
        thread.join()
    assert results == [Ended(0, "whole\n", "")]
    assert runs(os.getpid())
