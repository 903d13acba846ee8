"""Standard output that is full, or that nobody reads to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]

COMMANDS = [
    ("maze", "-o", "again", "--size", "3", "--count", "1", "--json"),
    ("show", "m"),
    ("show", "m", "--json"),
    ("show", "nothing", "--json"),
    ("--help",),
]


@pytest.fixture
def mazes(llmpipe: Llmpipe, tmp_path: Path) -> Path:
    llmpipe("maze", "-o", "m", "--size", 3, "--count", 1)
    return tmp_path


def run(folder: Path, command: tuple[str, ...], stdout: int, **env: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "llmpipe", *command],
        cwd=folder,
        env={**os.environ, **env},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_one_line(mazes: Path) -> None:
    for command, unbuffered in [*((c, "") for c in COMMANDS), (COMMANDS[0], "1")]:
        with Path("/dev/full").open("w") as full:
            code, said = run(mazes, command, full.fileno(), PYTHONUNBUFFERED=unbuffered)
        assert code == 2, command
        assert "Traceback" not in said
        fault = "nothing does not exist" if "nothing" in command else "stdout can't be written"
        assert f"Error: {fault}" in said
        assert said.count("Error:") == 1


def test_a_reader_that_left_is_no_fault(mazes: Path) -> None:
    for command in COMMANDS:
        reader, writer = os.pipe()
        os.close(reader)
        code, said = run(mazes, command, writer)
        os.close(writer)
        assert code == 141, command
        assert "Traceback" not in said
        assert "pipe" not in said.lower()


def test_closed_stdout_is_no_fault(mazes: Path) -> None:
    shell = f"{sys.executable} -m llmpipe show m >&-"
    done = subprocess.run(
        ["sh", "-c", shell], cwd=mazes, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
