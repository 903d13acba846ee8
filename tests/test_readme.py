"""Everything that the README shows is run, as a newcomer would type it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import needs_vllm, problem, rollout, verdicts_of
from hub import Hub

from llmpipe.core.records import Rewards

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

# Only what makes it big is made small: sizes, never commands.
SMALLER = {
    "--holdout 200": "--holdout 2",
    "--max-tokens 1024": "--max-tokens 48",
    "--max-length 4096": "--max-length 512",
}
SMALLER_SETTINGS = {
    "holdout = 200": "holdout = 2",
    "max-tokens = 1024": "max-tokens = 48",
    "max-length = 4096": "max-length = 512",
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands(containing: str) -> list[list[str]]:
    (block,) = (b for b in blocks("bash") if containing in b)
    for big, small in SMALLER.items():
        block = block.replace(big, small)
    return [shlex.split(line) for line in block.splitlines() if line.strip()]


def call(command: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    assert command[0] == "llmpipe"
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200", **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 3), f"{command}: {done.stderr[-3000:]}"
    return done


def test_the_make_targets_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"^make (\w+)$", "\n".join(blocks("bash")), re.MULTILINE))
    named |= set(re.findall(r"`make (\w+)`", README))
    assert {"demo", "test", "check"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_python_blocks_run() -> None:
    python = blocks("python")
    assert len(python) == 2
    for block in python:
        exec(compile(block, "README.md", "exec"), {})


def test_every_command_and_option_named_is_one() -> None:
    table = re.findall(r"^\| `(\w[\w-]*)", README, re.MULTILINE)
    help_text = call(["llmpipe", "--help"], ROOT).stdout
    for command in set(table) - {"core"}:
        assert f" {command} " in help_text, command
    for command in table:
        options = re.findall(rf"^\| `{command}[^|]*\|[^|]*\|", README, re.MULTILINE)
        shown = call(["llmpipe", command, "--help"], ROOT).stdout
        for option in re.findall(r"--[a-z-]+", " ".join(options)):
            assert option in shown, (command, option)


def test_the_tree_is_the_tree() -> None:
    tree = README.partition("## The tree")[2].split("```")[1]
    rooms = set(re.findall(r"^  (\w+)/", tree, re.MULTILINE))
    packages = {p.parent.name for p in (ROOT / "llmpipe").glob("*/__init__.py")}
    assert rooms == packages
    for top in re.findall(r"^(\w+)/", tree, re.MULTILINE):
        assert (ROOT / top).is_dir()


def test_your_own_problems_need_no_recipe(tmp_path: Path) -> None:
    (tmp_path / "problems.jsonl").write_text('{"question": "1 + 1?", "answer": 2}\n')
    ((command),) = commands("problems.jsonl")
    call(command, tmp_path)
    assert json.loads((tmp_path / "runs/mine/manifest.json").read_text())["rows"] == 1


def test_generations_of_somebody_else_s(tmp_path: Path) -> None:
    rows = [{"gt": "1/2", "response": r"\boxed{0.5}"}, {"gt": 2, "response": ["2", "3"]}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "generations.jsonl").write_text(lines)
    ((command),) = commands("generations.jsonl")
    call(command, tmp_path)
    statuses = pq.read_table(tmp_path / "runs/judged/data").column("status").to_pylist()
    assert statuses == ["correct", "correct", "wrong"]


def test_chats_of_somebody_else_s(tmp_path: Path) -> None:
    turns = [{"role": role, "content": "x"} for role in ["user", "assistant"] * 2]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    ((command),) = commands("chats.jsonl")
    call(command, tmp_path)
    ids = pq.read_table(tmp_path / "runs/chats/data").column("id").to_pylist()
    assert ids == ["chats-1-t0", "chats-1-t1"]


def test_choosing_among_answers(tmp_path: Path) -> None:
    problems = [problem(f"p{i}", level=f"Level {i}", solution="As is.") for i in range(3)]
    rewards = Rewards(outcome=1, format=1)
    rows = [
        (rollout(asked.id, s, f"It is {s * 977 + i}."), "wrong" if s < i else "correct")
        for i, asked in enumerate(problems)
        for s in range(4)
    ]
    given = {(row.problem_id, row.sample): rewards for row, _ in rows}
    verdicts_of(tmp_path / "runs", rows, given, problems, examples=0)
    for command in commands("--prefer diverse"):
        call(command, tmp_path)
    solutions = pq.read_table(tmp_path / "runs/replaced/data").column("solution").to_pylist()
    assert solutions == ["It is 0.", "It is 978.", "It is 1956."]
    pairs = pq.read_table(tmp_path / "runs/pairs/data").to_pylist()
    assert [pair["problem_id"] for pair in pairs] == ["p1", "p2", "p2"]
    selected = pq.read_table(tmp_path / "runs/diverse/data").column("problem_id").to_pylist()
    assert set(selected) == {"p1", "p2"}  # p0 is always solved


def test_looking_at_what_came_of_it(tmp_path: Path) -> None:
    verdicts_of(tmp_path / "runs", [(rollout("p", 0, "It is 1."), "correct")], {}, [problem("p")])
    serve, page = commands("llmpipe view")
    call(page, tmp_path)
    assert "It is 1." in (tmp_path / "verdicts.html").read_text()
    command = [sys.executable, "-m", *serve]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        with urllib.request.urlopen(server.stdout.readline().strip()) as answer:
            assert "verdicts" in answer.read().decode()
        server.terminate()


def test_evals_are_compared(tmp_path: Path) -> None:
    asked = [problem(f"p{i}") for i in range(6)]
    for name, right in (("before", 3), ("after", 6)):
        rows = [
            (rollout(each.id, s, f"It is {s}."), "correct" if s < right else "wrong")
            for each in asked
            for s in range(8)
        ]
        verdicts_of(tmp_path / "runs" / name, rows, problems=asked)
    *_, compared, listed = [call(command, tmp_path) for command in commands("--list-presets")]
    assert "+0.3750" in compared.stdout
    assert "6:0" in compared.stdout
    assert "deepseek-r1: 64 samples" in listed.stdout


@pytest.fixture(scope="module")
def hub_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows in GSM8K's layout, that a small model can sometimes answer."""
    folder = tmp_path_factory.mktemp("gsm8k")
    rows = [
        {
            "question": f"Tom has {a} apples and gets {b} more. How many does he have?",
            "answer": f"He has {a} + {b} = <<{a}+{b}={a + b}>>{a + b} apples.\n#### {a + b}",
        }
        for a, b in [(1, 2), (2, 2), (3, 1), (2, 5), (1, 1), (4, 2)]
    ]
    (folder / "main").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "main/train-00000-of-00001.parquet")
    pq.write_table(pa.Table.from_pylist(rows[:1]), folder / "main/test-00000-of-00001.parquet")
    return folder


@pytest.mark.slow
@needs_vllm
def test_the_chain_on_a_model_and_a_data_set_of_the_hub(
    tmp_path: Path, hub_folder: Path, smol_model: Path
) -> None:
    """The hub is a loopback server; a small model stands there under the README's name."""
    repos = {
        "models/Qwen/Qwen2.5-1.5B-Instruct": smol_model,
        "datasets/openai/gsm8k": hub_folder,
    }
    with Hub(repos) as url:
        for command in commands("llmpipe prepare gsm8k"):
            said = call(command, tmp_path, HF_ENDPOINT=url)
    assert "runs" not in said.stderr
    for made in (
        "problems",
        "clean",
        "rollouts",
        "verdicts",
        "selected",
        "sft",
        "packed",
        "trained",
        "eval",
    ):
        assert made in said.stdout
    results = json.loads((tmp_path / "runs/eval/results.json").read_text())
    assert (results["problems"], results["n"]) == (2, 16)
    assert results["metrics"]["pass@8"]["value"] is not None

    # The bare commands inside a project, on what was downloaded above.
    project = tmp_path / "project"
    project.mkdir()
    for shared in ("models", "datasets"):
        (project / shared).symlink_to(tmp_path / shared)
    for command in commands("llmpipe init"):
        call(command, project)
        if command[1] == "init":
            settings = (project / "llmpipe.toml").read_text()
            for big, small in SMALLER_SETTINGS.items():
                assert big in settings
                settings = settings.replace(big, small)
            (project / "llmpipe.toml").write_text(settings)
    results = json.loads((project / "runs/eval/results.json").read_text())
    assert {"pass@8", "avg@n", "maj@8", "pass^8", "coverage"} < results["metrics"].keys()


def test_downloads_by_mirrors(tmp_path: Path) -> None:
    model = tmp_path / "served/model"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(bytes(5000))
    rows = tmp_path / "served/rows/main"
    rows.mkdir(parents=True)
    (rows / "train.jsonl").write_text('{"question": "1+1?", "answer": "#### 2"}\n')
    repos = {
        "models/Qwen/Qwen2.5-1.5B-Instruct": model,
        "models/HuggingFaceTB/SmolLM2-135M-Instruct": model,
        "datasets/openai/gsm8k": rows.parent,
    }
    with Hub(repos) as mirror, Hub(repos) as hub:
        urls = {"https://hf-mirror.com": mirror, "https://huggingface.co": hub}
        for command in commands("hf-mirror.com"):
            call([urls.get(word, word) for word in command], tmp_path)
    assert (tmp_path / "models/Qwen/Qwen2.5-1.5B-Instruct/model.safetensors").exists()
    assert (tmp_path / "datasets/openai/gsm8k/main/train.jsonl").exists()


def test_mazes(tmp_path: Path) -> None:
    for command in commands("--preset passk"):
        call(command, tmp_path)
    rows = pq.read_table(tmp_path / "runs/maze-sft/data").num_rows
    assert rows > 100
    assert pq.read_table(tmp_path / "runs/mazes/train/data").num_rows == 40_000


def test_plans(tmp_path: Path, smol_model: Path) -> None:
    model = tmp_path / "models/Qwen/Qwen2.5-1.5B-Instruct"
    model.parent.mkdir(parents=True)
    model.symlink_to(smol_model)
    memory, hours = (call(command, tmp_path).stdout for command in commands("llmpipe plan"))
    assert "134,515,008 parameters" in memory
    assert "61,218,816 tokens at 40,000 a second (--rate): 0.4 hours" in hours
