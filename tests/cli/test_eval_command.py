"""What eval starts from, how presets and flags are weighed, and compare's table."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import make_artifact
from hub import Hub

from llmpipe.core.records import Problem

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]

SCRIPTED = ("--engine", "scripted", "--model", "none")


@pytest.fixture(autouse=True)
def problems(tmp_path: Path) -> Path:
    sums = [
        Problem.make(task="math", source="t", prompt=f"{i} + 1?", answer=str(i + 1))
        for i in range(6)
    ]
    return make_artifact(tmp_path / "problems", sums)


def results(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text())


def test_a_recipe_s_data_set_is_brought_where_it_is_missing(
    llmpipe: Llmpipe, tmp_path: Path
) -> None:
    served = tmp_path / "served"
    served.mkdir()
    rows = [
        {
            "id": i,
            "problem": f"{i} + 1?",
            "solution": "",
            "answer": f"{i + 1:03}",
            "url": "",
            "year": "2024",
        }
        for i in range(3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), served / "train-00000-of-00001.parquet")
    command = ("eval", "aime24", "-o", "e", "--k", 1, "-n", 2, *SCRIPTED)
    with Hub({"datasets/HuggingFaceH4/aime_2024": served}) as url:
        planned = llmpipe(*command, "--dry-run", HF_ENDPOINT=url)
        assert "HuggingFaceH4/aime_2024" in planned.stderr
        assert not (tmp_path / "datasets").exists()
        llmpipe(*command, HF_ENDPOINT=url)
    assert (results(tmp_path / "e")["problems"], results(tmp_path / "e")["n"]) == (3, 2)
    assert "up to date" in llmpipe(*command, HF_ENDPOINT="http://127.0.0.1:9").stderr


def test_somebody_s_answers_are_judged_and_scored(llmpipe: Llmpipe, tmp_path: Path) -> None:
    rows = [
        {
            "q": "1 + 1?",
            "gt": "2",
            "level": 3,
            "said": [r"\boxed{2}", r"\boxed{2.0}", r"\boxed{3}", "Well."],
        },
        {"q": "1/2?", "gt": "1/2", "said": [r"\boxed{1}"] * 4},
    ]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = ("--answer-key", "gt", "--response-key", "said", "--prompt-key", "q")
    said = llmpipe("eval", "said.jsonl", "-o", "e", "--k", "1,2", *keys)
    assert "pass@2   0.4167  new problems" in said.stdout
    assert "no answer 12.5%" in said.stdout
    assert results(tmp_path / "e")["by"]["level"]["3"]["metrics"]["pass@1"]["value"] == 0.5
    assert "2 problems, n 4" in said.stdout
    assert results(tmp_path / "e")["metrics"]["maj@4"]["value"] == 0.5
    assert "2 of 4 right: 2" in llmpipe("show", "e", "--row", 0).stdout
    refused = llmpipe("eval", "problems", "-o", "f", *keys, *SCRIPTED, code=2)
    assert "takes no keys" in refused.stderr


def test_somebody_s_problems_are_answered(llmpipe: Llmpipe, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"q": "1 + 1?", "a": 2}\n')
    keys = ("--answer-key", "a", "--prompt-key", "q")
    llmpipe("eval", "mine.jsonl", "-o", "e", "--k", 1, *keys, *SCRIPTED)
    assert results(tmp_path / "e")["problems"] == 1
    said = llmpipe("eval", "nothing.jsonl", "-o", "f", *SCRIPTED, code=2)
    assert "nothing.jsonl is neither a recipe nor a file or folder" in said.stderr


def test_several_sources_have_a_folder_each_and_one_table(llmpipe: Llmpipe, tmp_path: Path) -> None:
    llmpipe("maze", "-o", "mazes", "--size", 3, "--count", 4)
    said = llmpipe("eval", "problems,nowhere,mazes", "-o", "all", "--k", 1, *SCRIPTED, code=2)
    assert "nowhere is neither a recipe" in said.stderr
    table = [line.split() for line in said.stdout.splitlines()]
    assert table[0][:4] == ["problems", "n", "pass@1", "avg@n"]
    assert [line[:3] for line in table[1:]] == [["problems", "6", "2"], ["mazes", "4", "2"]]
    assert results(tmp_path / "all/mazes")["by"]["size"]["3x3"]["problems"] == 4
    done = llmpipe("eval", "problems,mazes", "-o", "all", "--k", 1, "--json", *SCRIPTED)
    assert [each["up_to_date"] for each in json.loads(done.stdout)["each"]] == [True, True]
    refused = llmpipe("eval", "problems,problems", "-o", "all", *SCRIPTED, code=2)
    assert "two sources would be scored in all/problems" in refused.stderr


def test_what_is_typed_wins_over_a_preset_and_that_over_the_settings_file(
    llmpipe: Llmpipe, tmp_path: Path
) -> None:
    (tmp_path / "llmpipe.toml").write_text(
        "[eval]\nn = 3\nk = 1\ntemperature = 0.5\nmax-tokens = 99\n"
    )
    # Its top_k gets as far as the engine, which has no such thing.
    refused = llmpipe("eval", "problems", "-o", "e", "--preset", "qwen3", *SCRIPTED, code=2)
    assert "no sampling parameters of its own" in refused.stderr
    llmpipe("eval", "problems", "-o", "e", "--preset", "passk", "--top-p", 0.9, *SCRIPTED)
    found = results(tmp_path / "e")
    assert (found["n"], found["settings"]["temperature"]) == (8, 1.0)
    assert (found["settings"]["top_p"], found["settings"]["max_tokens"]) == (0.9, 4096)
    assert found["settings"]["maze_rules"] == "passk"
    assert found["metrics"]["pass@8"]["value"] is not None

    (tmp_path / "llmpipe.toml").write_text('[eval]\nn = 3\nk = 1\npreset = "passk"\n')
    llmpipe("eval", "problems", "-o", "f", *SCRIPTED)
    found = results(tmp_path / "f")
    assert (found["n"], found["settings"]["max_tokens"]) == (3, 4096)

    # Of the preset's k those are left that so few samples have.
    llmpipe("eval", "problems", "-o", "g", "--preset", "passk", "-n", 4, "--k", "2", *SCRIPTED)
    assert "pass@2" in results(tmp_path / "g")["metrics"]
    (tmp_path / "llmpipe.toml").unlink()
    llmpipe("eval", "problems", "-o", "h", "--preset", "passk", "-n", 4, *SCRIPTED)
    metrics = results(tmp_path / "h")["metrics"]
    assert "pass@1" in metrics
    assert "pass@8" not in metrics
    refused = llmpipe("eval", "problems", "-o", "i", "-n", 0, "--k", 1, *SCRIPTED, code=2)
    assert "pass@1 needs 1 samples" in refused.stderr


def test_presets_are_listed_with_their_sources(llmpipe: Llmpipe) -> None:
    said = llmpipe("eval", "--list-presets").stdout
    still = said[said.index("still-3: ") :]
    assert "--k 1,8,64 -n 64 --temperature 0.6 --top-p 0.95" in still
    assert "omni-math: --k 1 -n 1 --temperature 0.0" in still
    assert "aime-2024: --k 1,8,64 -n 64 --max-tokens 38912" in said
    assert said.count("    from ") == said.count("\n    --k")
    refused = llmpipe("eval", "problems", "-o", "e", "--preset", "qwen", *SCRIPTED, code=2)
    assert "there is no preset 'qwen'" in refused.stderr


def test_greedy_says_n_1(llmpipe: Llmpipe, tmp_path: Path) -> None:
    greedy = ("eval", "problems", "-o", "e", "--temperature", 0, *SCRIPTED)
    refused = llmpipe(*greedy, "-n", 8, code=2)
    assert "greedy samples of a problem are all the same" in refused.stderr
    said = llmpipe(*greedy)
    assert "one greedy answer each" in said.stdout
    assert "6 problems, n 1" in said.stdout
    assert results(tmp_path / "e")["greedy"] is True
    assert results(tmp_path / "e")["metrics"]["pass@1"]["low_here"] is None


def test_compare_pairs_problems_and_says_what_else_differs(
    llmpipe: Llmpipe, tmp_path: Path
) -> None:
    base = ("eval", "problems", "--k", "1,2", "-n", 4, *SCRIPTED)
    llmpipe(*base, "-o", "a", "--engine-arg", "p_correct=0.1")
    llmpipe(*base, "-o", "a2", "--engine-arg", "p_correct=0.1", "--seed", 7)
    llmpipe(*base, "-o", "b", "--engine-arg", "p_correct=0.9", "--limit", 5, "--max-tokens", 65)

    said = llmpipe("compare", "a,a2", "b", "--metric", "pass@2")
    assert "5 problems that all have; differences are to a,a2" in said.stdout
    assert "by its runs" in said.stdout
    assert "max_tokens differs: 2048, 65" in said.stderr
    assert "a has 1 problems that not all have" in said.stderr
    assert "seed" not in said.stderr
    assert "n differs" not in said.stderr

    found = json.loads(llmpipe("compare", "a", "b", "--json").stdout)
    assert found["rows"].keys() == results(tmp_path / "b")["metrics"].keys()
    first, second = found["rows"]["pass@1"]
    difference = second["difference"]
    assert first["difference"] is None
    assert difference["value"] == pytest.approx(
        second["metric"]["value"] - first["metric"]["value"]
    )
    assert difference["low"] < difference["value"] < difference["high"]
    assert difference["won"] + difference["lost"] + difference["tied"] == 5
    assert (len(second["won"]), len(second["lost"])) == (difference["won"], difference["lost"])
    assert f"b won: {second['won'][0]}" in llmpipe("compare", "a", "b").stdout

    assert (
        "pass@9 can't be said" in llmpipe("compare", "a", "b", "--metric", "pass@9", code=2).stderr
    )
    assert "no metric 'best'" in llmpipe("compare", "a", "b", "--metric", "best", code=2).stderr
    assert "can't be compared" in llmpipe("compare", "a", code=2).stderr
    assert "given twice" in llmpipe("compare", "a", "a", code=2).stderr
    assert "given twice" in llmpipe("compare", "a", tmp_path / "a", code=2).stderr
    assert "a side has no eval" in llmpipe("compare", "a", ",", code=2).stderr
    assert "ProblemScore rows are needed" in llmpipe("compare", "a", "problems", code=2).stderr


def test_nothing_is_sampled_for_an_eval_that_can_t_be_made(
    llmpipe: Llmpipe, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for out, said in (
        ("mine", "was not made by llmpipe"),
        ("problems", "was made by made, not by score"),
        ("", "no folder that can be made"),
    ):
        assert said in llmpipe("eval", "problems", "-o", out, "--force", *SCRIPTED, code=2).stderr
    assert sorted(p.name for p in tmp_path.rglob("rollouts*")) == []
    assert "no source" in llmpipe("eval", "", "-o", "e", *SCRIPTED, code=2).stderr
    assert "Traceback" not in llmpipe("eval", ".", "-o", "e", *SCRIPTED, code=2).stderr


def test_an_eval_begun_anew_with_other_settings_ends(llmpipe: Llmpipe, tmp_path: Path) -> None:
    base = ("eval", "problems", "-o", "e", "--k", 1, *SCRIPTED)
    llmpipe(*base, "--engine-arg", "fail_after=3", code=1)
    llmpipe(*base, "--seed", 4, code=2)
    llmpipe(*base, "--seed", 4, "--force")
    assert results(tmp_path / "e")["problems"] == 6
    assert [*(tmp_path / "e").glob("rollouts.old-*.jsonl")]
