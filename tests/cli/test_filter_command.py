"""The filter and what show prints of it, as a user meets them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from llmpipe.stages.filter import RULES

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


def test_help_names_every_rule(llmpipe: Llmpipe) -> None:
    said = llmpipe("filter", "--help", COLUMNS="400").stdout
    assert all(re.search(rf"\b{rule}\b", said) for rule in RULES)
    assert "A < rate < B" in said


def test_dropped_rows_are_shown_by_rule(llmpipe: Llmpipe, tmp_path: Path) -> None:
    rows = [
        {"q": "Prove that [/b] 2 is even.", "a": "2"},
        {"q": "Half of 18? (A) 8 (B) 9 (C) 10", "a": "9"},
        {"q": "1 + 1?", "a": "2"},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    keys = ["--task", "math", "--prompt-key", "q", "--answer-key", "a"]
    llmpipe("prepare", "rows.jsonl", "-o", "p", *keys)
    llmpipe("filter", "p", "-o", "f")
    said = llmpipe("show", "f").stdout
    assert "proof: 1 dropped" in said
    assert "Prove that [/b] 2 is even." in said
    llmpipe("filter", "p", "-o", "g", "--keep", "multiple_choice_value", "--keep", "proof")
    assert "Half of 18? (A)" not in llmpipe("show", "g").stdout
    assert json.loads((tmp_path / "g/manifest.json").read_text())["rows"] == 3


def test_a_rule_is_dropped_by_or_kept(llmpipe: Llmpipe) -> None:
    llmpipe("maze", "-o", "m", "--size", 4, "--count", 2)
    said = llmpipe("filter", "m", "-o", "f", "--drop", "proof", "--keep", "proof", code=2)
    assert "both --drop and --keep name proof" in said.stderr


def test_measured_pass_rates_are_shown(llmpipe: Llmpipe) -> None:
    llmpipe("maze", "-o", "m", "--size", 4, "--count", 12)
    options = ["--engine", "scripted", "--model", "none", "-n", 4, "--k", 1]
    llmpipe("eval", "m", "-o", "e", *options)
    rated = ["filter", "m", "-o", "f", "--pass-rate", "0:1", "--verdicts", "e/verdicts"]
    done = json.loads(llmpipe(*rated, "--json").stdout)
    assert done["rows"] + done["dropped"].get("pass_rate", 0) == 12
    assert done["truncated_share"] == 0
    shown = llmpipe("show", "f").stdout
    assert "pass rate\n    0 - 0.1 0" in shown
    assert "█" in shown
    planned = json.loads(llmpipe(*rated[:3], "g", *rated[4:], "--dry-run", "--json").stdout)
    assert planned["plan"] == "would make g from m, e/verdicts"
