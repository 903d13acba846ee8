"""The commands as a user meets them: streams, exit codes, one clear line for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]

COMMANDS = [
    "download",
    "prepare",
    "maze",
    "filter",
    "dedupe",
    "rollout",
    "verify",
    "select",
    "build-pairs",
    "build-sft",
    "pack",
    "eval",
    "compare",
    "init",
    "doctor",
    "show",
]
HEAVY = (
    "pyarrow",
    "datasets",
    "transformers",
    "torch",
    "vllm",
    "sympy",
    "numpy",
    "huggingface_hub",
)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['llmpipe', '--help']\n"
        "from llmpipe.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"loaded = [m for m in {HEAVY!r} if m in sys.modules]\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f" {command} " in done.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(llmpipe: Llmpipe, command: str) -> None:
    assert "Usage" in llmpipe(command, "--help").stdout


def test_json_is_the_last_line_of_stdout_and_stdout_is_data_alone(llmpipe: Llmpipe) -> None:
    done = llmpipe("maze", "-o", "m", "--size", 4, "--count", 3, "--json")
    made = json.loads(done.stdout)
    assert (made["out"], made["rows"], made["up_to_date"]) == ("m", 3, False)
    assert "3 kept" in done.stderr
    again = json.loads(llmpipe("maze", "-o", "m", "--size", 4, "--count", 3, "--json").stdout)
    assert again["up_to_date"] is True
    planned = json.loads(
        llmpipe("maze", "-o", "x", "--size", 4, "--count", 3, "--json", "--dry-run").stdout
    )
    assert planned["plan"].startswith("would make x")
    assert llmpipe("maze", "-o", "n", "--size", 4, "--count", 3).stdout == ""


def test_an_error_is_json_too_when_asked(llmpipe: Llmpipe) -> None:
    said = json.loads(llmpipe("filter", "nowhere", "-o", "x", "--json", code=2).stdout)
    assert said["error"] == "nowhere does not exist"


def test_an_eval_keeps_what_it_sampled_and_goes_on(llmpipe: Llmpipe, tmp_path: Path) -> None:
    llmpipe("maze", "-o", "m", "--size", 4, "--count", 6)
    options = ["--engine", "scripted", "--model", "none", "--max-tokens", 64]
    llmpipe("eval", "m", "-o", "e", "--k", "1,2", "-n", 2, *options)
    first = json.loads((tmp_path / "e/results.json").read_text())
    assert first["n"] == 2
    llmpipe("--remake", "eval", "m", "-o", "e", "--k", "1,4", "-n", 4, *options)
    second = json.loads((tmp_path / "e/results.json").read_text())
    assert second["n"] == 4
    assert (tmp_path / "e/rollouts/manifest.json").is_file()
    # The same answers read another way, without sampling.
    llmpipe("eval", "e/rollouts", "-o", "again", "--k", 1, "--extract", "auto")
    assert json.loads((tmp_path / "again/results.json").read_text())["n"] == 4


def test_another_k_scores_the_same_samples_again(llmpipe: Llmpipe, tmp_path: Path) -> None:
    llmpipe("maze", "-o", "m", "--size", 4, "--count", 4)
    options = ["--engine", "scripted", "--model", "none", "--max-tokens", 64, "-n", 4]
    said = llmpipe("eval", "m", "-o", "e", "--k", 1, *options)
    assert said.stdout.startswith("pass@1 ")
    again = llmpipe("eval", "m", "-o", "e", "--k", "1,2,4", "--extract", "boxed", *options)
    assert "samples to draw" not in again.stderr
    metrics = json.loads((tmp_path / "e/results.json").read_text())["metrics"]
    assert list(metrics)[:4] == ["pass@1", "pass@2", "pass@4", "avg@n"]
    assert {"pass^4", "coverage", "maj@4"} < metrics.keys()
    said = llmpipe("eval", "m", "-o", "f", "--k", 8, *options, code=2)
    assert "pass@8 needs 8 samples" in said.stderr
    assert not (tmp_path / "f").exists()
    llmpipe("eval", "m", "-o", "m", "--k", 1, *options, code=2)
    assert not (tmp_path / "m/rollouts").exists()
    assert "no effect" in llmpipe("eval", "e/verdicts", "-o", "g", "--k", 1, "--limit", 2).stderr


def test_a_dry_eval_says_the_first_thing_it_would_make(llmpipe: Llmpipe, tmp_path: Path) -> None:
    llmpipe("maze", "-o", "m", "--size", 4, "--count", 2)
    options = ["-o", "e", "--k", 1, "--engine", "scripted", "--model", "none", "-n", 1]
    assert "would make e/rollouts" in llmpipe("eval", "m", *options, "--dry-run").stderr
    assert "would make e/problems" in llmpipe("eval", "reasoning-gym", *options, "--dry-run").stderr
    assert not (tmp_path / "e").exists()
    llmpipe("eval", "m", *options)
    planned = llmpipe("eval", "m", *options, "--n", 2, "--k", 2, "--dry-run").stderr
    assert "would make e/rollouts from m: going on with it" in planned
    assert json.loads((tmp_path / "e/results.json").read_text())["n"] == 1


def test_moved_problems_can_be_named_to_an_eval(llmpipe: Llmpipe, tmp_path: Path) -> None:
    llmpipe("maze", "-o", "m", "--size", 4, "--count", 4)
    options = ["--engine", "scripted", "--model", "none", "--max-tokens", 64, "-n", 2]
    llmpipe("eval", "m", "-o", "e", "--k", 1, *options)
    (tmp_path / "m").rename(tmp_path / "moved")
    said = llmpipe("eval", "e/verdicts", "-o", "f", "--k", 1, code=2).stderr
    assert "say where it is now: --problems DIR" in said
    llmpipe("eval", "e/verdicts", "-o", "f", "--k", 1, "--problems", "moved")


def test_a_data_set_is_scored_on_its_test_split(llmpipe: Llmpipe, tmp_path: Path) -> None:
    folder = tmp_path / "datasets/openai/gsm8k/main"
    folder.mkdir(parents=True)
    for split, count in (("train", 5), ("test", 3)):
        rows = [{"question": f"{split} {i}?", "answer": f"It is.\n#### {i}"} for i in range(count)]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{split}-00000-of-00001.parquet")
    options = ["--engine", "scripted", "--model", "none", "-n", 1, "--k", 1]
    llmpipe("eval", "gsm8k", "-o", "e", *options)
    assert json.loads((tmp_path / "e/results.json").read_text())["problems"] == 3


def test_the_default_n_of_an_eval_is_twice_the_largest_k(llmpipe: Llmpipe, tmp_path: Path) -> None:
    llmpipe("maze", "-o", "m", "--size", 4, "--count", 3)
    llmpipe("eval", "m", "-o", "e", "--k", "1,3", "--engine", "scripted", "--model", "none")
    assert json.loads((tmp_path / "e/results.json").read_text())["n"] == 6


def test_an_empty_result_is_code_3_and_again(llmpipe: Llmpipe) -> None:
    llmpipe("maze", "-o", "m", "--size", 4, "--count", 3)
    for _ in range(2):
        said = llmpipe("filter", "m", "-o", "f", "--difficulty", "0.99:1", code=3).stderr
        assert "filter dropped all 3 rows, most (3) for difficulty" in said


def test_show_lets_no_row_command_the_terminal(llmpipe: Llmpipe, tmp_path: Path) -> None:
    prompt = "What is \x1b[31m1 + 1\x07?"
    (tmp_path / "a.jsonl").write_text(json.dumps({"prompt": prompt, "answer": "2"}) + "\n")
    llmpipe("prepare", "a.jsonl", "-o", "p")
    shown = llmpipe("show", "p").stdout
    assert "1 + 1" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_show_prints_an_artifact_a_folder_and_rejects(llmpipe: Llmpipe) -> None:
    llmpipe("maze", "-o", "runs/m", "--size", 4, "--count", 3)
    llmpipe("filter", "runs/m", "-o", "runs/f", "--difficulty", "0.99:1", code=3)
    one = llmpipe("show", "runs/m").stdout
    assert "3 Problem rows, made by maze" in one
    assert "S" in one
    table = llmpipe("show", "runs").stdout
    assert "filter dropped all 3 rows" in table
    assert json.loads(llmpipe("show", "runs", "--json").stdout)[1]["kept"] == 0
    assert "difficulty" in llmpipe("show", "runs/f", "--rejects").stdout


def test_prune_lists_and_removes_leftovers(llmpipe: Llmpipe, tmp_path: Path) -> None:
    (tmp_path / "runs/a.partial").mkdir(parents=True)
    (tmp_path / "runs/b.old-20260101T000000Z").mkdir()
    (tmp_path / "runs/c").mkdir()
    assert "show --prune --yes runs" in llmpipe("show", "runs", "--prune", code=2).stderr
    assert "a.partial" in llmpipe("show", "runs", "--prune", "--yes").stdout
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["c"]
    assert "nothing is left over" in llmpipe("show", "runs", "--prune").stdout


BAD = {
    "a missing file": (["prepare", "no.jsonl", "-o", "x"], "no.jsonl"),
    "an empty folder": (["prepare", "empty", "-o", "x"], "empty"),
    "a folder without manifest": (["filter", "plain", "-o", "x"], "without a manifest"),
    "a corrupt parquet": (
        ["prepare", "bad.parquet", "-o", "x", "--prompt-key", "q", "--answer-key", "a"],
        "bad.parquet",
    ),
    "a jsonl with a broken line": (
        ["prepare", "broken.jsonl", "-o", "x", "--prompt-key", "q", "--answer-key", "a"],
        "broken.jsonl",
    ),
    "a missing key": (
        ["prepare", "good.jsonl", "-o", "x", "--prompt-key", "question", "--answer-key", "a"],
        "question",
    ),
    "an unknown recipe": (["prepare", "gsm9k", "-o", "x"], "gsm8k"),
    "an unknown engine": (
        ["rollout", "problems", "-o", "x", "--model", "none", "--engine", "vlm"],
        "vllm",
    ),
    "a missing model": (
        ["rollout", "problems", "-o", "x", "--model", "no/such", "--engine", "transformers"],
        "llmpipe download no/such",
    ),
    "an output below a file": (["maze", "--size", 4, "-o", "good.jsonl/x"], "can't write"),
    "an output that can't be": (["maze", "--size", 4, "-o", "/proc/x"], "can't write"),
    "an output that has no name": (["maze", "--size", 4, "-o", "."], "is no folder"),
    "an output with a long name": (["maze", "--size", 4, "-o", "x" * 300], "x" * 300),
    "a temperature that is no number": (
        ["rollout", "problems", "-o", "x", "--model", "none", "--temperature", "nan"],
        "temperature is nan",
    ),
    "bytes that are no text": (
        ["build-sft", "problems", "-o", "x", "--system", b"\xff"],
        "not UTF-8 text",
    ),
    "an unknown rule": (["filter", "problems", "-o", "x", "--drop", "hard"], "malformed"),
    "an output that is something else": (
        ["maze", "--size", 4, "-o", "plain"],
        "not made by llmpipe",
    ),
    "a corrupt artifact": (["filter", "corrupt", "-o", "x"], "corrupt"),
    "the wrong record": (["verify", "problems", "-o", "x"], "Rollout rows are needed"),
    "no k": (["eval", "problems", "-o", "x", "--model", "none", "--k", "zero"], "--k 1,2,4,8"),
    "no pair": (["prepare", "gsm8k", "-o", "x", "--recipe-arg", "levels"], "key=value"),
    "a tiny maze": (["maze", "--size", 1, "-o", "x"], "size"),
    "a range the wrong way": (
        ["filter", "problems", "-o", "x", "--difficulty", "hard"],
        "difficulty",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line_with_a_hint(
    llmpipe: Llmpipe, tmp_path: Path, case: str
) -> None:
    arguments, expected = BAD[case]
    (tmp_path / "empty").mkdir()
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/notes.txt").write_text("x")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no parquet PAR1")
    (tmp_path / "good.jsonl").write_text('{"q": "1 + 1?", "a": "2"}\n')
    (tmp_path / "broken.jsonl").write_text('{"q": "1 + 1?", "a": "2"}\n{"q": "1 + \n')
    llmpipe("maze", "-o", "problems", "--size", 4, "--count", 2)
    llmpipe("maze", "-o", "corrupt", "--size", 4, "--count", 2)
    data = tmp_path / "corrupt/data/train-00000-of-00001.parquet"
    data.write_bytes(b"x" * data.stat().st_size)
    done = llmpipe(*arguments, code=2)
    lines = [line for line in done.stderr.splitlines() if line.startswith(("Error:", "  Try:"))]
    assert lines[0].startswith("Error: ")
    assert len(lines) == 2, done.stderr
    assert expected in " ".join(lines)
    assert done.stdout == ""
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "x.partial").exists()


def test_a_path_that_can_be_no_artifact_is_said_to_be_none(
    llmpipe: Llmpipe, tmp_path: Path
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    cases = {
        ("eval", "/", "-o", "x", "--k", 1): "/ is the whole disk",
        ("prepare", "/", "-o", "x"): "/ is the whole disk",
        ("prepare", "", "-o", "x"): "llmpipe prepare gsm8k",
        ("filter", "n" * 300, "-o", "x"): "File name too long",
        ("maze", "--size", 3, "--count", 1, "-o", "loop"): "loop is a link to nothing",
        ("compare", "loop", "x"): "loop does not exist",
        ("report", "loop"): "loop does not exist",
        ("eval", "math50", "-o", "x"): "math-500",
    }
    for arguments, expected in cases.items():
        said = llmpipe(*arguments, code=2).stderr.splitlines()
        assert [line.partition(":")[0] for line in said] == ["Error", "  Try"], arguments
        assert expected in " ".join(said)
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


def test_recipes_are_listed_with_what_they_are(llmpipe: Llmpipe) -> None:
    lines = llmpipe("prepare", "--list-recipes").stdout.splitlines()
    assert "gsm8k: GSM8K: grade-school word problems with worked answers" in " ".join(lines)
    assert all(": " in line for line in lines)
