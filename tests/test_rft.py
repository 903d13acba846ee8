"""The loop on a tiny model and scripted answers: killed, resumed, ended early, gone on with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from helpers import make_artifact, problem, rollout, verdicts_of
from tiny_model import make_tiny_model

from llmpipe.cli.show import find
from llmpipe.core.run import Mode
from llmpipe.stages import dedupe, score

ROOT = Path(__file__).parents[1]


def start(out: Path, model: Path, **settings: str) -> subprocess.Popen[str]:
    given = {
        "BIN": str(Path(sys.executable).parent),
        "OUT": str(out),
        "MODEL": str(model),
        "ENGINE": "scripted",
        "SAMPLE": "--engine-arg p_correct=0.7 --engine-arg delay=0.02",
        "TASK": "maze",
        "SIZES": "3 4",
        "SOLUTIONS": "own",
        "PROBLEMS": "12",
        "WARM_START": "4",
        "HELD_OUT": "4",
        "N": "2",
        "MAX_TOKENS": "64",
        "MAX_LENGTH": "512",
        "SCORE_N": "2",
        "K": "1,2",
        "TRAIN": "--max-steps 2 --no-gradient-checkpointing",
        "COLUMNS": "160",
        **settings,
    }
    return subprocess.Popen(
        ["bash", str(ROOT / "pipelines/rft.sh")],
        env={**os.environ, **given},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(run: subprocess.Popen[str]) -> str:
    said, _ = run.communicate(timeout=300)
    assert run.returncode == 0, said[-3000:]
    return said


def kill(run: subprocess.Popen[str], when: Callable[[], bool]) -> None:
    """Kill the script and all that it started, once ``when`` is true."""
    with run:
        while run.poll() is None and not when():
            time.sleep(0.005)
        assert run.poll() is None, "it ended before"
        os.killpg(run.pid, signal.SIGKILL)


def lines(file: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return file.read_bytes().count(b"\n")
    return 0


def made(out: Path) -> dict[str, int]:
    """When each artifact was written."""
    return {
        a.path.relative_to(out).as_posix(): (a.path / "manifest.json").stat().st_mtime_ns
        for a in find(out)
    }


def rows(folder: Path) -> list[dict[str, Any]]:
    return pq.read_table(folder / "data").to_pylist()


@pytest.mark.slow
def test_rounds_that_are_killed_go_on(tmp_path: Path) -> None:
    out, tiny = tmp_path / "out", make_tiny_model(tmp_path / "tiny")
    journal = out / "round-1/rollouts.partial/journal.jsonl"
    kill(start(out, tiny, ROUNDS="3"), lambda: lines(journal) > 20)
    sampled, before = journal.read_bytes(), made(out)
    kill(start(out, tiny, ROUNDS="3"), (out / "round-1/model.partial").is_dir)
    # What was sampled before is in the table as it was.
    kept = {(row["problem_id"], row["sample"]): row for row in rows(out / "round-1/rollouts")}
    assert len(kept) == 48
    for line in sampled.splitlines()[1:-1]:
        row = json.loads(line)
        assert kept[row["problem_id"], row["sample"]]["completion"] == row["completion"]
    before = {**made(out), **before}
    said = finish(start(out, tiny, ROUNDS="3"))
    assert before.items() <= made(out).items()

    # A model that answers as before gains nothing: no second round.
    assert "round-1 to round-0: pass@1 +0.0 points" in said
    assert "no gain for sure" in said
    assert not (out / "round-2").exists()
    assert "of the 24 left, 0 are held out" in said
    # It began with a model that had seen worked solutions.
    first = json.loads((out / "round-1/model/manifest.json").read_text())
    assert first["inputs"]["model"]["path"] == "../../warm-start/model"
    assert all("boxed" in row["messages"][-1]["content"] for row in rows(out / "warm-start/sft"))

    # Another round, if it is asked for, with the model of the first.
    before = made(out)
    finish(start(out, tiny, FROM="last", STOP="no"))
    assert before.items() <= made(out).items()
    manifest = json.loads((out / "round-2/model/manifest.json").read_text())
    assert manifest["inputs"]["model"]["path"] == "../../round-1/model"
    results = json.loads((out / "evals/round-2/results.json").read_text())
    assert results["settings"]["model"].endswith("round-2/model")
    assert (out / "report/report.html").is_file()
    metric = results["metrics"]["pass@2"]
    shown = [f"{100 * metric[x]:.1f}" for x in ("value", "low", "high")]
    assert "{} ({} to {})".format(*shown) in (out / "rounds.txt").read_text()
    # The first line is the model before its start on solutions.
    evals = re.findall(r"^ *(before|round-\d)  ", (out / "rounds.txt").read_text(), re.MULTILINE)
    assert evals == ["before", "round-0", "round-1", "round-2"]
    results = json.loads((out / "evals/before/results.json").read_text())
    assert results["settings"]["model"] == str(tiny)
    # What round 1 solved and round 2 didn't is still trained on; of the set's own there is nothing.
    first, second = (
        {row["id"]: row["solution"] for row in rows(out / f"round-{r}/selected")} for r in (1, 2)
    )
    assert {name for name, text in first.items() if text} <= {n for n, t in second.items() if t}
    assert None in first.values()


@pytest.mark.slow
def test_where_no_answer_was_right_the_old_one_stays(tmp_path: Path) -> None:
    out, tiny = tmp_path / "out", make_tiny_model(tmp_path / "tiny")
    finish(start(out, tiny, ROUNDS="1", SOLUTIONS="all"))
    told = {row["id"]: row["solution"] for row in rows(out / "clean")}
    selected = {row["id"]: row["solution"] for row in rows(out / "round-1/selected")}
    right = {
        row["problem_id"] for row in rows(out / "round-1/verdicts") if row["status"] == "correct"
    }
    assert 0 < len(right) < len(told)
    assert {name for name, text in selected.items() if text == told[name]} == set(told) - right
    assert len(rows(out / "round-1/sft")) == len(told) == 24
    stayed = len(told) - len(right)
    said = (
        f"{len(right)} of 24 solutions were replaced by an answer of the model, {stayed} stayed, 0"
    )
    assert said in (out / "rounds.txt").read_text()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("TASK=maths", "TASK is 'maths', but must be one of: math maze"),
        ("FROM=first", "FROM is 'first', but must be one of: base last"),
        ("STOP=1", "STOP is '1', but must be one of: yes no"),
        ("ROUNDS=0", "ROUNDS is '0', but must be a whole number from 1"),
        ("ROUNDS=08", "ROUNDS is '08', but must be a whole number from 1"),
        ("three", "'three' is no setting such as ROUNDS=2"),
        ("ACCELERATE=/no/file", "there is no file /no/file"),
        ("BIN=/nowhere", "there is no /nowhere/llmpipe: make setup"),
        ("N=0", "N is '0', but must be a whole number from 1"),
        ("HELD_OUT=some", "HELD_OUT is 'some', but must be a whole number from 1"),
        ("TASK=maze WARM_START=0", "WARM_START is '0', but must be a whole number from 1"),
        ("TASK=maze SIZES=4x4", "SIZES is '4x4', but must be numbers such as '4 5'"),
        ("TASK=maze SIZES=4,5", "SIZES is '4,5', but must be numbers such as '4 5'"),
        ("EPOCHS=two", "EPOCHS is 'two', but must be a number over 0"),
        ("EPOCHS=1.2.3", "EPOCHS is '1.2.3', but must be a number over 0"),
        ("LEARNING_RATE=0e-5", "LEARNING_RATE is '0e-5', but must be a number over 0"),
        ("TEMPERATURE=hot", "TEMPERATURE is 'hot', but must be a number over 0"),
        ("SCORE_N=99999999999", "SCORE_N is '99999999999', but must be a whole number from 1"),
        ("LEARNING_RATE=0.0", "LEARNING_RATE is '0.0', but must be a number over 0"),
        ("MICRO_BATCH=0", "MICRO_BATCH is '0', but must be a whole number from 1"),
        ("K=1;8", "K is '1;8', but must be numbers such as '1,8'"),
        ("K=1,16", "K asks for pass@16, but SCORE_N is 8: no more answers"),
        ("SOLUTIONS=mine", "SOLUTIONS is 'mine', but must be one of: own all"),
        ("HOLD_OUT=9", "there is no setting HOLD_OUT, but ACCELERATE ACCUMULATION BIN"),
        ("UID=5", "there is no setting UID, but ACCELERATE ACCUMULATION BIN"),
    ],
)
def test_settings_that_mean_nothing_are_refused(setting: str, said: str, tmp_path: Path) -> None:
    script = ["bash", str(ROOT / "pipelines/rft.sh"), f"OUT={tmp_path}"]
    environment = {**os.environ, "BIN": str(Path(sys.executable).parent)}
    done = subprocess.run(
        [*script, *setting.split()], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rft.sh: {said}")
    assert done.stderr.count("\n") == 1
    assert not [*tmp_path.iterdir()]


def an_eval(
    out: Path, right: Sequence[int], *, other: str = "wrong", k: tuple[int, ...] = (1, 8)
) -> Path:
    """Of problems with so many right answers of eight."""
    asked = [problem(f"p{i}") for i in range(len(right))]
    given = [
        (rollout(each.id, s, f"{s}."), "correct" if s < c else other)
        for each, c in zip(asked, right, strict=True)
        for s in range(8)
    ]
    verdicts = verdicts_of(out.with_name(f"of-{out.name}"), given, problems=asked)
    score.run(score.Config(k=k), verdicts, out, Mode())
    return out


def rounds(command: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, str(ROOT / "pipelines/rounds.py"), command, *map(str, paths)]
    return subprocess.run(script, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("k", [(1, 8), (8,)], ids=str)
@pytest.mark.parametrize(
    ("before", "after", "code", "said"),
    [
        ([2] * 20, [4] * 20, 0, "+25.0 points"),
        ([4] * 20, [2] * 20, 3, "-25.0 points"),
        ([8] * 20, [0] * 20, 3, ": a loss"),
        # Six of eight problems won, and yet it may be chance.
        ([4] * 8, [5, 5, 5, 5, 5, 5, 4, 0], 3, "+3.1 points"),
    ],
)
def test_what_counts_as_a_gain(
    before: Sequence[int],
    after: Sequence[int],
    code: int,
    said: str,
    k: tuple[int, ...],
    tmp_path: Path,
) -> None:
    evals = [an_eval(tmp_path / "a", before, k=k), an_eval(tmp_path / "b", after, k=k)]
    done = rounds("gained", *evals)
    assert done.returncode == code, done.stderr
    assert said in done.stderr


def test_an_eval_without_a_figure_is_no_gain(tmp_path: Path) -> None:
    evals = [an_eval(tmp_path / "a", [2]), an_eval(tmp_path / "b", [0], other="error")]
    for given in (evals, evals[::-1]):
        done = rounds("gained", *given)
        assert (done.returncode, done.stdout) == (3, "")
        said = "pass@1 can't be said, as all answers to a held-out problem are errors: no gain for"
        assert f"{given[1].name} to {given[0].name}: {said}" in done.stderr


@pytest.mark.slow
def test_held_out_problems_that_cannot_be_answered_leave_a_report(tmp_path: Path) -> None:
    """The larger mazes are too long for the model."""
    out, tiny = tmp_path / "out", make_tiny_model(tmp_path / "tiny")
    sample = "--engine-arg p_correct=0.7 --engine-arg context=93"
    said = finish(start(out, tiny, ROUNDS="1", SIZES="3 10", SAMPLE=sample))
    assert "Attention: 24 of 48 samples failed" in said  # those of the larger mazes to train on
    assert "round-1 to round-0: pass@1 can't be said" in said
    assert "What can be said of these rounds:" in said
    assert (out / "report/report.html").is_file()
    assert f"The report: {out}/report/report.html" in (out / "rounds.txt").read_text()


def test_evals_that_are_not_there_are_said_in_one_line(tmp_path: Path) -> None:
    for command in ("gained", "table"):
        done = rounds(command, tmp_path / "a", tmp_path / "b")
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(rf"rounds.py: .*{tmp_path}.*\n(  Try: .*\n)?", done.stderr)
    cut = [an_eval(tmp_path / name, [1, 2]) for name in ("cut", "empty")]
    (cut[0] / "results.json").write_text('{"metrics"')
    (cut[1] / "results.json").write_text('{"metrics": {}}')
    for path in cut:
        done = rounds("table", tmp_path, path)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch("rounds.py: these are no whole evals: .*\n", done.stderr)
    done = rounds("sum", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "rounds.py gained EVAL_BEFORE EVAL_AFTER" in done.stderr


def test_rounds_in_a_table(tmp_path: Path) -> None:
    evals = [an_eval(tmp_path / f"round-{r}", [r] * 20) for r in (1, 4)]
    for path, right in zip(evals, (2, 6), strict=True):
        an_eval(path.with_name(f"{path.name}-last-number"), [right] * 20)
    # Two problems to train on are held out, and one isn't.
    held_out = make_artifact(tmp_path / "held-out", [problem("p0"), problem("p1")])
    source = make_artifact(tmp_path / "all", [problem(f"p{i}") for i in (0, 1, 20)])
    dedupe.run(dedupe.Config(), [source], tmp_path / "clean", Mode(), against=[held_out])
    done = rounds("table", tmp_path, *evals)
    assert done.returncode == 0, done.stderr
    lines = [re.findall(r"[0-9.]+(?= \()", line) for line in done.stdout.splitlines()[4:6]]
    assert lines == [["12.5", "100.0", "25.0", "100.0"], ["50.0", "100.0", "75.0", "100.0"]]
    assert "of 3 problems to train on, dedupe dropped 2 as held out" in done.stdout
    assert "of the 1 left, 0 are held out" in done.stdout
    assert "20 held-out problems, 8 answers to each." in done.stdout


def test_errors_are_in_the_table(tmp_path: Path) -> None:
    evals = [an_eval(tmp_path / "a", [4, 4]), an_eval(tmp_path / "b", [8, 0], other="error")]
    done = rounds("table", tmp_path, *evals)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "2 held-out problems, 8 or 0 to 8 answers to each."
    assert lines[3].endswith("cut off  errors")
    assert lines[4].split()[-2:] == ["0.0%", "0.0%"]
    assert lines[5].split() == ["b", "-", "-", "0.0%", "50.0%"]
