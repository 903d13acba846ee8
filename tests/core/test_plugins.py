"""Plugins are found by file name, and by entry point from other packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from llmpipe.core import plugins
from llmpipe.core.errors import UserError


def test_a_file_is_a_plugin() -> None:
    assert {"vllm", "transformers", "scripted"} <= set(plugins.names("engines"))
    assert {"math", "maze"} <= set(plugins.names("tasks"))
    assert "reasoning-gym" in plugins.names("recipes")
    assert plugins.load("tasks", "math").name == "math"


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UserError, match="no engine is called 'vlm'") as unknown:
        plugins.load("engines", "vlm")
    assert unknown.value.hint is not None
    assert unknown.value.hint.startswith("--engine vllm (there are openai, ray, ")
    with pytest.raises(UserError) as unknown:
        plugins.load("tasks", "qqq")
    assert unknown.value.hint == "math or maze"
    for odd in ("", "../x", "a.b", "os"):
        with pytest.raises(UserError):
            plugins.load("tasks", odd)


def test_another_package_adds_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sudoku_task.py").write_text("TASK = 'a sudoku task'\n")
    info = tmp_path / "sudoku-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sudoku\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[llmpipe.tasks]\nsudoku = sudoku_task:TASK\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "sudoku" in plugins.names("tasks")
    assert plugins.load("tasks", "sudoku") == "a sudoku task"
    first = plugins.source_digest("tasks", "sudoku")
    (tmp_path / "sudoku_task.py").write_text("TASK = 'another rule'\n")
    assert plugins.source_digest("tasks", "sudoku") != first
    sys.modules.pop("sudoku_task")
