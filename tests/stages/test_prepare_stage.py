"""Problems of recipes and of anybody's rows."""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
import random
import shutil
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
from helpers import rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.records import Problem, problem_id
from llmpipe.core.run import Mode, Result
from llmpipe.stages.prepare import Config, run

TASK = load("tasks", "math")


def prepare(source: Path | str, out: Path, mode: Mode | None = None, **settings: Any) -> Result:
    root = settings.pop("root", Path())
    return run(Config(source=str(source), **settings), out, mode or Mode(), root=root)


def problems(artifact: Path) -> list[Problem]:
    return list(Artifact.open(artifact, Problem).iter_rows(Problem))


def refused(source: Path | str, out: Path, **settings: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        prepare(source, out, **settings)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert not out.exists()
    assert not out.with_name(out.name + ".partial").exists()
    return caught.value


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def sums(count: int) -> list[dict[str, Any]]:
    return [{"question": f"What is {i} + {i}?", "answer": 2 * i} for i in range(count)]


def gsm8k(root: Path, count: int = 4) -> Path:
    rows = [
        {"question": f"What is {i} + 1?", "answer": f"Add.\n#### {i + 1}"} for i in range(count)
    ]
    folder = root / "datasets/openai/gsm8k/main"
    folder.mkdir(parents=True)
    datasets.Dataset.from_list(rows).to_parquet(str(folder / "train-00000-of-00001.parquet"))
    datasets.Dataset.from_list(rows[:1]).to_parquet(str(folder / "test-00000-of-00001.parquet"))
    return folder.parent


def test_text_that_is_no_unicode_is_a_reject(tmp_path: Path) -> None:
    """Half of a surrogate pair, as scraped JSON holds it, once ended the whole run."""
    file = tmp_path / "rows.jsonl"
    lines = ['"1?", "answer": "1"', '"\\ud83d?", "answer": "1"', '"2?", "answer": "\\udc00"']
    file.write_text("\n".join(f'{{"problem": {line}}}' for line in lines))
    result = prepare(file, tmp_path / "out")
    assert (result.rows, dict(result.dropped)) == (1, {"not_unicode": 2})


def test_rows_with_usual_columns_become_problems(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "mine.jsonl",
        [
            {"problem": " 1+1? ", "answer": 2, "level": 3, "subject": "sums", "solution": "So 2."},
            {"problem": "1.5+1.5?", "answer": "3.0", "source": "a book"},
        ],
    )
    result = prepare(path, tmp_path / "out")
    assert (result.rows, result.exit_code) == (2, 0)
    first, second = problems(tmp_path / "out")
    assert first == Problem.make(
        task="math", source="mine", prompt="1+1?", answer="2", level="3", subject="sums",
        solution="So 2.",
    )  # fmt: skip
    assert (second.answer, second.source) == ("3.0", "a book")
    assert first.id == problem_id("math", "1+1?")


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"q": "1+1?", "solution": "2", "answer": "no"}])
    prepare(path, tmp_path / "out", prompt_key="q", answer_key="solution")
    assert [(p.answer, p.solution) for p in problems(tmp_path / "out")] == [("2", "2")]


def test_rows_without_a_prompt_or_an_answer_are_rejected_by_their_number(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "a.jsonl",
        [
            {"question": "1+1?", "answer": "2"},
            {"question": "  ", "answer": "2"},
            {"question": "2+2?", "answer": None},
            {"question": None, "answer": "2"},
            {"question": "3+3?"},
            {"question": "4+4?", "answer": ["8"]},
        ],
    )
    result = prepare(path, tmp_path / "out")
    assert result.rows == 1
    assert [r[:2] for r in rejects(tmp_path / "out")] == [
        ("row 2", "empty_prompt"),
        ("row 3", "no_answer"),
        ("row 4", "empty_prompt"),
        ("row 5", "no_answer"),
        ("row 6", "no_answer"),
    ]
    assert Artifact.open(tmp_path / "out").manifest.counts["read"] == 6


def test_nothing_but_rejects_asks_for_attention(tmp_path: Path) -> None:
    result = prepare(
        jsonl(tmp_path / "a.jsonl", [{"question": "", "answer": ""}]), tmp_path / "out"
    )
    assert result.exit_code == 3
    assert "empty_prompt" in (result.attention or "")


def test_mazes_come_with_their_grid_or_not_at_all(tmp_path: Path) -> None:
    rows = [
        {"prompt": "Find a way.", "answer": "RD", "maze": "S.\n*E"},
        {"prompt": "Find no way.", "answer": "RD", "maze": "S*\n*E"},
        {"prompt": "Find what?", "answer": "RD"},
    ]
    prepare(jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out", task="maze")
    (made,) = problems(tmp_path / "out")
    assert json.loads(made.payload)["maze"] == "S.\n*E"
    assert (made.prompt, made.answer, made.level) == ("Find a way.", "RD", "2x2")
    assert [r[:2] for r in rejects(tmp_path / "out")] == [
        ("row 2", "malformed"),
        ("row 3", "malformed"),
    ]


def test_limit_takes_the_first_rows_of_a_file(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"question": "", "answer": ""}, *sums(50)])
    prepare(path, tmp_path / "out", limit=3)
    assert [p.answer for p in problems(tmp_path / "out")] == ["0", "2", "4"]


def test_a_file_is_up_to_date_until_it_changes(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", sums(3))
    prepare(path, tmp_path / "out")
    assert prepare(f"{tmp_path}/./a.jsonl", tmp_path / "out").up_to_date
    jsonl(path, sums(4))
    assert prepare(path, tmp_path / "out").rows == 4
    with pytest.raises(UserError, match="limit was null, is now 2"):
        prepare(path, tmp_path / "out", limit=2)


def test_an_artifact_can_be_read_as_rows(tmp_path: Path) -> None:
    prepare(jsonl(tmp_path / "a.jsonl", sums(9)), tmp_path / "one", holdout=2)
    prepare(tmp_path / "one", tmp_path / "two")
    assert problems(tmp_path / "two") == problems(tmp_path / "one")


# Recipes


def test_a_recipe_reads_its_downloaded_folder(tmp_path: Path) -> None:
    gsm8k(tmp_path)
    for i, source in enumerate(("gsm8k", "openai/gsm8k", tmp_path / "datasets/openai/gsm8k/main")):
        plain = i == 2
        keys = {"prompt_key": "question", "answer_key": "answer"} if plain else {}
        result = prepare(source, tmp_path / f"out{i}", root=tmp_path, **keys)
        assert result.rows == 4
        answers = [p.answer for p in problems(result.out)]
        assert answers == (["Add.\n#### " + str(n) for n in range(1, 5)] if plain else [*"1234"])
    assert prepare("gsm8k", tmp_path / "test", root=tmp_path, split="test").rows == 1
    manifest = Artifact.open(tmp_path / "out0").manifest
    assert list(manifest.plugins) == ["recipes/gsm8k"]


def test_a_folder_that_download_filled_is_read_by_its_recipe(tmp_path: Path) -> None:
    folder = gsm8k(tmp_path / "elsewhere")
    (folder / ".llmpipe").mkdir()
    (folder / ".llmpipe/manifest.json").write_text(json.dumps({"repo": "openai/gsm8k"}))
    prepare(folder, tmp_path / "out")
    assert {p.source for p in problems(tmp_path / "out")} == {"gsm8k"}


def test_a_downloaded_set_without_a_recipe_is_found_by_its_id(tmp_path: Path) -> None:
    folder = tmp_path / "datasets/org/sums"
    folder.mkdir(parents=True)
    jsonl(folder / "train.jsonl", sums(3))
    assert prepare("org/sums", tmp_path / "out", root=tmp_path).rows == 3


def test_a_bare_word_is_the_recipe_and_a_path_is_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.INFO, logger="llmpipe")
    gsm8k(tmp_path)
    (tmp_path / "gsm8k").mkdir()
    jsonl(tmp_path / "gsm8k/train.jsonl", sums(2))
    assert prepare("gsm8k", tmp_path / "recipe").rows == 4
    assert "./gsm8k" in caplog.text
    assert prepare("./gsm8k", tmp_path / "path").rows == 2


def test_a_generator_draws_as_many_as_asked(tmp_path: Path) -> None:
    pytest.importorskip("reasoning_gym")
    settings: dict[str, Any] = {"recipe_args": {"families": "gcd,lcm", "levels": "1:2"}}
    result = prepare("reasoning-gym", tmp_path / "out", limit=40, holdout=10, **settings)
    assert (result.rows, result.figures["held_out"]) == (40, 10)
    train, test = problems(tmp_path / "out"), problems(tmp_path / "out/test")
    assert len({p.id for p in [*train, *test]}) == 50
    again = prepare("reasoning-gym", tmp_path / "again", limit=40, holdout=10, **settings)
    assert problems(again.out) == train
    other = prepare("reasoning-gym", tmp_path / "other", limit=40, holdout=10, seed=1, **settings)
    assert problems(other.out) != train
    assert "reasoning-gym" in Artifact.open(result.out).manifest.versions


def test_a_generator_that_runs_dry_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("reasoning_gym")
    args = {"families": "products", "levels": "1"}
    assert prepare("reasoning-gym", tmp_path / "out", limit=150, recipe_args=args).rows == 100
    assert "only 100 of 150" in caplog.text


# Holding out


def test_held_out_problems_are_apart_whole_and_the_same_in_any_order(tmp_path: Path) -> None:
    rows = sums(60) + sums(30)  # half of them twice
    result = prepare(jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out", holdout=12)
    train, test = problems(tmp_path / "out"), problems(tmp_path / "out/test")
    assert len(test) == len({p.id for p in test}) == 12
    assert not {p.id for p in train} & {p.id for p in test}
    assert len({p.id for p in train}) == 48
    repeats = result.dropped["held_out_repeat"]
    assert len(train) + len(test) + repeats == 90
    assert repeats > 0

    random.Random(1).shuffle(rows)
    prepare(jsonl(tmp_path / "b.jsonl", rows), tmp_path / "shuffled", holdout=12)
    assert {p.id for p in problems(tmp_path / "shuffled/test")} == {p.id for p in test}
    prepare(tmp_path / "a.jsonl", tmp_path / "seeded", holdout=12, seed=1)
    assert {p.id for p in problems(tmp_path / "seeded/test")} != {p.id for p in test}


def test_a_held_out_problem_written_differently_is_not_trained_on(tmp_path: Path) -> None:
    rows = [{"problem": rf"Find $\dfrac{{{i}}}{{7}}$", "answer": i} for i in range(10, 40)]
    rows += [{"problem": rf"find \( \frac {{{i}}} {{7}} \)", "answer": i} for i in range(10, 40)]
    prepare(jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out", holdout=10)
    forms = [{TASK.normal_form(p) for p in problems(tmp_path / out)} for out in ("out", "out/test")]
    assert len(forms[1]) == 10
    assert not forms[0] & forms[1]


def test_the_held_out_set_is_an_artifact_of_the_same_make(tmp_path: Path) -> None:
    prepare(jsonl(tmp_path / "a.jsonl", sums(20)), tmp_path / "out", holdout=5)
    main, test = (Artifact.open(tmp_path / p, Problem) for p in ("out", "out/test"))
    assert (main.rows, test.rows) == (15, 5)
    assert test.manifest.config == main.manifest.config
    assert test.manifest.inputs["source"]["digest"] == main.manifest.inputs["source"]["digest"]
    for artifact in (main, test):
        source = artifact.path / artifact.manifest.inputs["source"]["path"]
        assert source.resolve() == (tmp_path / "a.jsonl").resolve()
    assert main.damage() is test.damage() is None
    assert datasets.load_dataset(str(tmp_path / "out"), split="train").num_rows == 15
    assert datasets.load_dataset(str(tmp_path / "out/test"), split="train").num_rows == 5


def test_a_damaged_held_out_set_is_made_again_and_an_unwanted_one_goes(tmp_path: Path) -> None:
    path, out = jsonl(tmp_path / "a.jsonl", sums(20)), tmp_path / "out"
    prepare(path, out, holdout=5)
    before = problems(out / "test")
    shutil.rmtree(out / "test")
    assert not prepare(path, out, holdout=5).up_to_date
    assert problems(out / "test") == before
    assert prepare(path, out, holdout=5).up_to_date
    prepare(path, out, Mode(force=True))
    assert not (out / "test").exists()
    assert len(problems(out)) == 20


def test_another_stage_s_artifact_inside_moves_along(tmp_path: Path) -> None:
    path, out = jsonl(tmp_path / "a.jsonl", sums(20)), tmp_path / "out"
    prepare(path, out, holdout=5)
    prepare(path, out / "copy", limit=2)
    prepare(path, out, Mode(force=True), holdout=6)
    assert len(problems(out / "test")) == 6
    assert len(problems(out / "copy")) == 2


@pytest.mark.parametrize("point", range(1, 6))
def test_a_run_that_dies_leaves_both_sets_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: int
) -> None:
    """Ended at any of its renames, the old pair or the new pair is there."""
    path, out = jsonl(tmp_path / "a.jsonl", sums(40)), tmp_path / "out"
    prepare(path, out, holdout=5)
    rename, calls = Path.rename, itertools.count(1)

    def dying(self: Path, target: Path) -> Path:
        if next(calls) == point:
            raise SystemExit
        return rename(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", dying)
        if point < 5:
            with pytest.raises(SystemExit):
                prepare(path, out, Mode(force=True), holdout=7)
        else:  # there are four
            prepare(path, out, Mode(force=True), holdout=7)
    # The next run puts a swap right that was cut short, whatever it wants itself.
    with pytest.raises(UserError, match="made with other settings"):
        prepare(path, out, holdout=6)
    sizes = (len(problems(out)), len(problems(out / "test")))
    assert sizes == ((35, 5) if point < 3 else (33, 7))


@pytest.mark.parametrize(("count", "holdout"), [(5, 6), (1, 2)])
def test_more_cannot_be_held_out_than_there_is(tmp_path: Path, count: int, holdout: int) -> None:
    path = jsonl(tmp_path / "a.jsonl", sums(count) * 3)
    assert "distinct problems" in refused(path, tmp_path / "out", holdout=holdout).message


# What can't be read


def test_an_unknown_source_names_what_is_near(tmp_path: Path) -> None:
    assert "gsm8k" in (refused("gsm8kk", tmp_path / "out").hint or "")
    assert "reasoning-gym" in (refused("reasoning_gim", tmp_path / "out").hint or "")
    unknown = refused("org/nothing", tmp_path / "out", root=tmp_path)
    assert "llmpipe download org/nothing --repo-type dataset" in (unknown.hint or "")
    missing = refused("gsm8k", tmp_path / "out", root=tmp_path)
    assert missing.hint == "llmpipe download openai/gsm8k --repo-type dataset"
    refused(tmp_path / "nothing.jsonl", tmp_path / "out")


def test_a_missing_column_lists_those_there_are(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"q": "1+1?", "a": "2"}])
    assert "--prompt-key q|a" in (refused(path, tmp_path / "out").hint or "")
    assert "--answer-key q|a" in (refused(path, tmp_path / "out", prompt_key="q").hint or "")
    wrong = refused(path, tmp_path / "out", prompt_key="q", answer_key="ans")
    assert "'ans'" in wrong.message
    folder = tmp_path / "datasets/openai/gsm8k/main"
    folder.mkdir(parents=True)
    jsonl(folder / "train.jsonl", [{"question": "1+1?", "solution": "2"}])
    odd = refused("gsm8k", tmp_path / "out", root=tmp_path)
    assert "no column answer" in odd.message
    assert "question, solution" in (odd.hint or "")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" + bytes(50))
    assert "bad.parquet" in refused(tmp_path / "bad.parquet", out).message
    (tmp_path / "bad.jsonl").write_text('{"problem": "a", "answer": 1}\n{"problem": \n')
    assert "bad.jsonl:2" in refused(tmp_path / "bad.jsonl", out).message
    (tmp_path / "empty").mkdir()
    assert "no data files" in refused(tmp_path / "empty", out).message
    (tmp_path / "empty.csv").touch()
    assert "is empty" in refused(tmp_path / "empty.csv", out).message
    (tmp_path / "header.csv").write_text("problem,answer\n")
    refused(tmp_path / "header.csv", out)
    pq.write_table(Problem.SCHEMA.empty_table(), tmp_path / "none.parquet")
    assert "no rows" in refused(tmp_path / "none.parquet", out).message
    (tmp_path / "a.docx").write_bytes(b"PK")
    assert ".jsonl" in (refused(tmp_path / "a.docx", out).hint or "")


@pytest.mark.parametrize(
    "settings",
    [
        {"limit": 0},
        {"holdout": -1},
        {"task": "chemistry"},
        {"recipe_args": {"levels": "1"}},
        {"split": "train"},
    ],
)
def test_options_that_make_no_sense_for_a_file_are_refused(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    refused(jsonl(tmp_path / "a.jsonl", sums(3)), tmp_path / "out", **settings)


@pytest.mark.parametrize(
    "settings",
    [{"prompt_key": "q"}, {"split": "train"}, {"task": "maze"}, {"recipe_args": {"sides": "6"}}],
)
def test_options_that_make_no_sense_for_a_generator_are_refused(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    pytest.importorskip("reasoning_gym")
    refused("reasoning-gym", tmp_path / "out", **settings)


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", sums(3))
    result = prepare(path, tmp_path / "out", Mode(dry_run=True))
    assert str(path) in (result.plan or "")
    assert not (tmp_path / "out").exists()


def test_a_config_can_be_written_as_json() -> None:
    config = Config(source="gsm8k", recipe_args={"levels": "1"})
    assert json.loads(json.dumps(dataclasses.asdict(config)))["recipe_args"] == {"levels": "1"}


def test_mazes_need_neither_a_prompt_nor_an_answer(tmp_path: Path) -> None:
    rows = [{"grid": "S.\n*E"}, {"grid": "S.\n.."}, {"grid": None}]
    prepare(jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out", task="maze")
    (made,) = problems(tmp_path / "out")
    assert made.prompt == "Find a path from S to E in this maze.\n\nS.\n*E"
    assert made.answer == "RD"
    other = jsonl(tmp_path / "b.jsonl", [{"text": "Go.", "board": "S.\n*E"}])
    prepare(other, tmp_path / "b", task="maze", answer_key="board", prompt_key="text")
    assert problems(tmp_path / "b")[0].prompt == "Go."
    with pytest.raises(UserError, match="no column 'maze' with the mazes") as caught:
        prepare(other, tmp_path / "c", task="maze")
    assert caught.value.hint == "say which it is: --answer-key text|board"
