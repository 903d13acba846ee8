"""``llmpipe.toml``: one loader, flags win, what doesn't fit is an error."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


def test_bare_commands_work_inside_a_project(llmpipe: Llmpipe, tmp_path: Path) -> None:
    (tmp_path / "llmpipe.toml").write_text(
        """
        [maze]
        out = "problems"
        size = [4, 5]
        count = 6

        [rollout]
        problems = "problems"
        out = "rollouts"
        model = "none"
        engine = "scripted"
        engine-arg = { p_correct = 0.5 }
        n = 4
        max-tokens = 64

        [verify]
        rollouts = "rollouts"
        out = "verdicts"

        [select]
        verdicts = "verdicts"
        out = "selected"
        per-problem = 2

        [build-sft]
        source = "selected"
        out = "sft"

        [eval]
        source = "verdicts"
        out = "eval"
        k = [1, 2, 4]
        """
    )
    for command in ("maze", "rollout", "verify", "select", "build-sft"):
        llmpipe(command)
    made = json.loads(llmpipe("eval", "--json").stdout.splitlines()[-1])
    assert made["n"] == 4
    assert 0 < made["pass@1"] < made["pass@2"] < made["pass@4"] <= 1
    manifest = json.loads((tmp_path / "rollouts/manifest.json").read_text())
    assert manifest["config"]["n"] == 4  # what was resolved is recorded
    assert manifest["config"]["engine_args"] == {"p_correct": "0.5"}
    # Flags win over the file.
    made = json.loads(llmpipe("eval", "--k", "1", "-o", "other", "--json").stdout.splitlines()[-1])
    assert made["out"] == "other"
    assert "pass@2" not in made


def test_another_file_is_taken_with_config(llmpipe: Llmpipe, tmp_path: Path) -> None:
    (tmp_path / "llmpipe.toml").write_text("[maze]\nsize = [9]\ncount = 1\n")
    (tmp_path / "b.toml").write_text("[maze]\nsize = 4\ncount = 3\nout = 'b'\n")
    llmpipe("--config", "b.toml", "maze")
    assert json.loads((tmp_path / "b/manifest.json").read_text())["config"]["sizes"] == [4]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[rolout]\nn = 4", "[rolout], which is no command", "rollout"),
        ("[rollout]\ntemprature = 1", "'temprature' in [rollout]", "temperature"),
        ("n = 4", "[n], which is no command", "one of"),
        ("[rollout\nn = 4", "is no TOML", "toml.io"),
    ],
)
def test_what_does_not_fit_is_one_clear_line(
    llmpipe: Llmpipe, tmp_path: Path, text: str, message: str, hint: str
) -> None:
    (tmp_path / "llmpipe.toml").write_text(text)
    said = llmpipe("maze", "-o", "x", "--size", 4, code=2).stderr
    assert message in said
    assert hint in said


def test_a_value_of_the_wrong_kind_keeps_typers_form(llmpipe: Llmpipe, tmp_path: Path) -> None:
    (tmp_path / "llmpipe.toml").write_text("[maze]\ncount = 'many'\n")
    assert "'--count'" in llmpipe("maze", "-o", "x", "--size", 4, code=2).stderr


def test_a_missing_file_is_said(llmpipe: Llmpipe) -> None:
    assert "no settings file no.toml" in llmpipe("--config", "no.toml", "maze", code=2).stderr


@pytest.mark.parametrize("kind", ["math", "maze"])
def test_init_writes_settings_that_load(llmpipe: Llmpipe, tmp_path: Path, kind: str) -> None:
    llmpipe("init", kind)
    assert "exists" in llmpipe("init", kind, code=2).stderr
    llmpipe("init", kind, "--force")
    # Every key is one that its command knows, and each command has what it needs: the first thing
    # wrong is what is missing on disk.
    said = llmpipe("rollout", code=2).stderr
    assert "there is no model at Qwen/Qwen2.5-1.5B-Instruct" in said
    assert "llmpipe download Qwen/Qwen2.5-1.5B-Instruct" in said
    assert "runs/verdicts does not exist" in llmpipe("select", code=2).stderr


def test_init_of_another_kind_is_refused(llmpipe: Llmpipe) -> None:
    assert "llmpipe init math" in llmpipe("init", "chess", code=2).stderr
