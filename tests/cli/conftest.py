"""Run the command line as a user does: a process, its two streams, its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


def _word(argument: object) -> str | bytes:
    return argument if isinstance(argument, bytes) else str(argument)


@pytest.fixture
def llmpipe(tmp_path: Path) -> Llmpipe:
    """Call ``llmpipe ARGUMENTS...`` in the test's own folder."""

    def call(*arguments: object, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "llmpipe", *map(_word, arguments)],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "200", **env},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, f"{arguments} ended with {done.returncode}: {done.stderr}"
        if code != 1:
            assert "Traceback" not in done.stderr
        return done

    return call
