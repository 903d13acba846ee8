from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from helpers import problem, rollout, verdicts_of

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


def verdicts(folder: Path) -> None:
    """Three problems, solved once, three times and never."""
    rows = [
        (rollout(f"p{i}", s, f"answer {s}{' indeed' * s}"), "correct" if s < right else "wrong")
        for i, right in enumerate((1, 3, 0))
        for s in range(4)
    ]
    levels = [problem(f"p{i}", level=level, solution="old") for i, level in enumerate("112")]
    verdicts_of(folder, rows, problems=levels, examples=0)


def test_what_a_selection_costs_is_said(llmpipe: Llmpipe, tmp_path: Path) -> None:
    verdicts(tmp_path)
    said = llmpipe("select", "verdicts", "-o", "s", "--limit", 2, "--prefer", "longest", "--json")
    assert [line.split(None, 1) for line in said.stderr.splitlines()[-11:]] == [
        ["3", "problems"],
        ["2", "with a right answer (-1)"],
        ["2", "with one that ended by itself"],
        ["2", "with one that no rule drops"],
        ["2", "within the limit"],
        ["problems", "solved    kept  by level"],
        ["2", "2       2  1"],
        ["1", "0       0  2"],
        ["problems", "solved    kept  by pass rate"],
        ["1", "1       1  0.2-0.3"],
        ["1", "1       1  0.7-0.8"],
    ]
    result = json.loads(said.stdout)
    assert result["rows"] == 2
    assert result["dropped"] == {"wrong": 8, "over_limit": 2}
    assert result["by_level"]["2"] == {"problems": 1, "solved": 0, "kept": 0}


def test_options_reach_the_selection(llmpipe: Llmpipe, tmp_path: Path) -> None:
    verdicts(tmp_path)
    options = ["--prefer", "diverse", "--threshold", 0.9, "--pass-rate", "0:1", "--per-bin", 1]
    rules = ["--drop", "loops", "--drop", "several_boxes"]
    llmpipe("select", "verdicts", "-o", "s", *options, *rules, "--seed", 1)
    assert json.loads((tmp_path / "s/manifest.json").read_text())["config"] == {
        "per_problem": None,
        "prefer": "diverse",
        "seed": 1,
        "reward_weights": None,
        "threshold": 0.9,
        "pass_rate": "0:1",
        "per_bin": 1,
        "limit": None,
        "drop": ["loops", "several_boxes"],
        "keep": [],
        "replace": False,
        "keep_old": True,
    }
    said = llmpipe("select", "verdicts", "-o", "r", "--prefer", "reward", code=2).stderr
    assert "no rewards for p0/0" in said
    said = llmpipe("select", "verdicts", "-o", "r", "--reward-weight", "form=1", code=2).stderr
    assert "has no option 'form'" in said


def test_replaced_solutions_are_built_from(llmpipe: Llmpipe, tmp_path: Path) -> None:
    verdicts(tmp_path)
    llmpipe("select", "verdicts", "-o", "r", "--replace", "--prefer", "shortest")
    solutions = pq.read_table(tmp_path / "r/data").column("solution").to_pylist()
    assert solutions == ["answer 0", "answer 0", "old"]
    llmpipe("build-sft", "r", "-o", "sft")
    rows = pq.read_table(tmp_path / "sft/data").to_pylist()
    assert [row["messages"][-1]["content"] for row in rows] == solutions
    llmpipe("select", "verdicts", "-o", "own", "--replace", "--no-keep-old", "--prefer", "shortest")
    solutions = pq.read_table(tmp_path / "own/data").column("solution").to_pylist()
    assert solutions == ["answer 0", "answer 0", None]


def test_pairs_are_built_and_shown(llmpipe: Llmpipe, tmp_path: Path) -> None:
    verdicts(tmp_path)
    said = llmpipe("build-pairs", "verdicts", "-o", "p", "--per-problem", 1, "--json")
    result = json.loads(said.stdout)
    assert result["rows"] == 1
    assert result["dropped"] == {"no_right": 4, "no_partner": 4, "over_per_problem": 2}
    assert (result["problems"], result["mixed"], result["paired"]) == (3, 2, 1)
    config = json.loads((tmp_path / "p/manifest.json").read_text())["config"]
    assert config["rejected"] == ["wrong"]
    shown = llmpipe("show", "p").stdout
    assert "chosen: assistant" in shown
    said = llmpipe("build-pairs", "verdicts", "-o", "q", "--rejected", "truncated", code=2).stderr
    assert "--rejected truncated makes no pairs" in said
