"""Judging a file of somebody's answers, and what comes after it, as a user does it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]

ROWS: list[dict[str, Any]] = [
    {"q": "1+1?", "gt": "2", "answers": [r"It is \boxed{2}.", r"It is \boxed{3}."]},
    {"q": "1/2?", "gt": "0.5", "answers": [r"So \boxed{\frac{1}{2}}.", r"Hm, \boxed{1}."]},
]
KEYS = ["--answer-key", "gt", "--response-key", "answers", "--prompt-key", "q"]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("\n".join(map(json.dumps, rows)))


def test_a_file_is_judged_scored_and_selected_from(llmpipe: Llmpipe, tmp_path: Path) -> None:
    write(tmp_path / "gen.jsonl", ROWS)
    done = json.loads(llmpipe("verify", "gen.jsonl", "-o", "v", *KEYS, "--json").stdout)
    assert (done["rows"], done["correct"], done["dropped"]) == (4, 0.5, {})
    (tmp_path / "v").rename(tmp_path / "w")  # the lineage lies inside, so it moves along
    scores = llmpipe("eval", "w", "-o", "e", "--k", "1,2").stdout
    assert "pass@1   0.5000" in scores
    assert "pass@2   1.0000" in scores
    llmpipe("select", "w", "-o", "s")
    llmpipe("build-sft", "s", "-o", "c")
    shown = llmpipe("show", "c").stdout
    assert "1/2?" in shown
    assert r"\frac{1}{2}" in shown
    again = json.loads(llmpipe("verify", "gen.jsonl", "-o", "w", *KEYS, "--json").stdout)
    assert again["up_to_date"]


def test_the_last_word_counts_the_rows_that_could_not_be_judged(
    llmpipe: Llmpipe, tmp_path: Path
) -> None:
    write(tmp_path / "gen.jsonl", [*ROWS, {"q": "2?", "gt": None, "answers": ["2"]}])
    done = llmpipe("verify", "gen.jsonl", "-o", "v", *KEYS, "--json", code=3)
    assert json.loads(done.stdout)["dropped"] == {"no_answer": 1}
    assert "1 of 3 rows can't be judged" in done.stderr


def test_a_null_is_an_error_and_n_is_what_was_counted(llmpipe: Llmpipe, tmp_path: Path) -> None:
    rows = [{**row, "answers": [*row["answers"], "2"]} for row in ROWS]
    rows[0]["answers"][1] = None
    write(tmp_path / "gen.jsonl", rows)
    done = json.loads(llmpipe("verify", "gen.jsonl", "-o", "v", *KEYS, "--json", code=3).stdout)
    assert (done["rows"], done["dropped"], done["error"]) == (6, {}, round(1 / 6, 4))
    scores = llmpipe("eval", "v", "-o", "e", "--k", "1,2").stdout
    assert "2 problems, n 2 to 3 (1 with status error left out)" in scores
    scores = llmpipe("eval", "v", "-o", "e", "--k", "3", code=3).stdout
    assert "pass@3   -" in scores


def test_groups_too_small_for_adv_k_are_told(llmpipe: Llmpipe, tmp_path: Path) -> None:
    write(tmp_path / "gen.jsonl", [*ROWS, {"q": "2?", "gt": "2", "answers": ["2", "3", "2"]}])
    done = llmpipe("verify", "gen.jsonl", "-o", "v", *KEYS, "--adv-k", 3, "--json")
    assert json.loads(done.stdout)["under_adv_k"] == 2
    assert done.stderr.count("advantages.passk is null for 2 of 3 problems") == 1
    done = llmpipe("verify", "gen.jsonl", "-o", "w", *KEYS, "--adv-k", 2, "--json")
    assert json.loads(done.stdout)["under_adv_k"] == 0
    assert "advantages" not in done.stderr


def test_a_dry_run_writes_nothing(llmpipe: Llmpipe, tmp_path: Path) -> None:
    write(tmp_path / "gen.jsonl", ROWS)
    done = llmpipe("verify", "gen.jsonl", "-o", "v", *KEYS, "--dry-run")
    assert "would make v/problems from gen.jsonl" in done.stderr
    assert not (tmp_path / "v").exists()


def test_what_does_not_fit_is_refused(llmpipe: Llmpipe, tmp_path: Path) -> None:
    write(tmp_path / "gen.jsonl", ROWS)
    said = llmpipe("verify", "gen.jsonl", "-o", "v", code=2).stderr
    assert "no column with a usual answer name" not in said  # gt is one
    assert "no column with a usual response name" in said
    assert "--response-key q|gt|answers" in said
    said = llmpipe("verify", "gen.jsonl", "-o", "v", *KEYS, "--problems", "p", code=2).stderr
    assert "--problems has no effect" in said
    llmpipe("verify", "gen.jsonl", "-o", "v", *KEYS)
    said = llmpipe("verify", "v/rollouts", "-o", "w", "--answer-key", "gt", code=2).stderr
    assert "it takes no keys" in said
    said = llmpipe("verify", "nofile", "-o", "w", "--answer-key", "gt", code=2).stderr
    assert "nofile does not exist" in said
    said = llmpipe("verify", "v/rollouts", "-o", "w", "--adv-k", 0, code=2).stderr
    assert "must be at least 1" in said
