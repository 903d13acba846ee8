from __future__ import annotations

import importlib
import json
import logging
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from helpers import make_artifact, rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load, names
from llmpipe.core.protocols import Exporter
from llmpipe.core.records import RECORDS, Conversation, PackedRow, Pair, Problem
from llmpipe.core.run import Mode, Result
from llmpipe.stages.export import Config, run
from llmpipe.stages.pack import Config as Packing

GRID = "S.*\n.E*\n***"


def chat(name: str, trains: str, *, system: bool = False, **rest: Any) -> Conversation:
    """A conversation of one question and answer a letter: ``t`` for an answer that is trained."""
    messages: list[Any] = [{"role": "system", "content": "Be brief.", "train": False}] * system
    for i, letter in enumerate(trains):
        messages.append({"role": "user", "content": f"Question {name}{i}?", "train": False})
        messages.append({"role": "assistant", "content": f"It is {i}.", "train": letter == "t"})
    return Conversation(id=name, problem_id=None, source="made", messages=messages, **rest)


def exported(
    tmp_path: Path, to: str, *rows: Any, **more: Any
) -> tuple[Result, list[dict[str, Any]]]:
    source = make_artifact(tmp_path / "rows", rows)
    result = run(Config(to=to, **more), source, tmp_path / "out", Mode())
    [file] = sorted((tmp_path / "out" / "data").iterdir())
    if file.suffix == ".jsonl":
        return result, [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return result, pq.read_table(file).to_pylist()


def plain(row: Conversation) -> list[dict[str, Any]]:
    return [{"role": m["role"], "content": m["content"]} for m in row.messages]


def readme(tmp_path: Path) -> str:
    return (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


PACKED = PackedRow(
    input_ids=[5, 6, 7, 8],
    labels=[-100, 6, -100, 8],
    position_ids=[0, 1, 0, 1],
    seq_lengths=[2, 2],
    loss_weights=[0.0, 1.0, 0.0, 1.0],
)


def test_trl_is_given_what_it_learns_from_the_answer_alone(tmp_path: Path) -> None:
    one = chat("a", "t", system=True)
    _, [row] = exported(tmp_path, "trl", one)
    assert row == {"prompt": plain(one)[:2], "completion": plain(one)[2:]}
    assert "trl sft --model_name_or_path MODEL --dataset_name out" in readme(tmp_path)


def test_trl_is_given_messages_where_every_turn_is_trained(tmp_path: Path) -> None:
    rows = [chat("a", "tt"), chat("b", "t")]
    _, made = exported(tmp_path, "trl", *rows)
    assert made == [{"messages": plain(row)} for row in rows]
    assert "--assistant_only_loss" in readme(tmp_path)


def test_trl_is_given_the_last_answer_where_only_that_is_trained(tmp_path: Path) -> None:
    retry = chat("a", "-t")
    _, [row] = exported(tmp_path, "trl", retry)
    assert row == {"prompt": plain(retry)[:3], "completion": plain(retry)[3:]}


def test_what_a_form_cannot_say_is_dropped_by_its_reason(tmp_path: Path) -> None:
    masked = chat("d", "tt", token_ids=[1, 2], loss_mask=[0, 1])
    rows = [chat("a", "tt"), chat("b", "ttt"), chat("c", "-t"), masked]
    result, made = exported(tmp_path, "trl", *rows)
    assert len(made) == 2
    assert result.dropped == {"loss_elsewhere": 1, "single_tokens_masked": 1}
    assert [(name, reason) for name, reason, _ in rejects(tmp_path / "out")] == [
        ("c", "loss_elsewhere"),
        ("d", "single_tokens_masked"),
    ]


def test_tools_are_a_column_only_where_there_are_any(tmp_path: Path) -> None:
    tools = json.dumps([{"type": "function", "function": {"name": "add"}}])
    _, made = exported(tmp_path, "trl", chat("a", "tt", tools=tools), chat("b", "tt"))
    assert [row["tools"] for row in made] == [tools, None]


@pytest.mark.parametrize("to", ["verl-sft", "openrlhf"])
def test_tools_are_dropped_where_the_trainer_takes_none(tmp_path: Path, to: str) -> None:
    result, made = exported(tmp_path, to, chat("a", "tt", tools="[]"), chat("b", "tt"))
    assert len(made) == 1
    assert result.dropped == {"tools_not_taken": 1}


def test_trl_packed_has_the_columns_of_its_own_packing(tmp_path: Path) -> None:
    _, [row] = exported(tmp_path, "trl-packed", PACKED)
    assert row == {
        "input_ids": PACKED.input_ids,
        "labels": PACKED.labels,
        "seq_lengths": PACKED.seq_lengths,
    }
    assert "skip_prepare_dataset" in readme(tmp_path)


def test_loss_weights_that_a_trainer_does_not_take_are_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    weighted = Packing(max_length=4, loss_weights=True)
    source = make_artifact(tmp_path / "rows", [PACKED], config=weighted)
    with caplog.at_level(logging.WARNING, logger="llmpipe"):
        run(Config(to="jsonl"), source, tmp_path / "jsonl", Mode())
        assert "loss weights" not in caplog.text
        run(Config(to="trl-packed"), source, tmp_path / "out", Mode())
    assert "trl-packed takes no loss weights" in caplog.text


def test_llama_factory_finds_its_columns_by_dataset_info(tmp_path: Path) -> None:
    row = chat("a", "tt", system=True, tools="[]")
    exported(tmp_path, "llama-factory", row)
    [(name, entry)] = json.loads((tmp_path / "out" / "dataset_info.json").read_text()).items()
    assert name == "out"
    assert entry["columns"] == {"messages": "messages", "tools": "tools"}
    assert entry["tags"]["assistant_tag"] == "assistant"
    assert (tmp_path / "out" / entry["file_name"]).is_dir()
    assert "--mask_history" not in readme(tmp_path)


def test_llama_factory_is_told_to_learn_from_the_last_turn(tmp_path: Path) -> None:
    exported(tmp_path, "llama-factory", chat("a", "-t"), chat("b", "--t"))
    assert "--mask_history" in readme(tmp_path)


def test_ms_swift_is_told_of_each_turn(tmp_path: Path) -> None:
    result, [row] = exported(tmp_path, "ms-swift", chat("a", "t-t"))
    assert [m["loss"] for m in row["messages"]] == [None, True, None, False, None, True]
    assert not result.dropped


def test_axolotl_is_told_of_each_turn_and_has_its_configuration(tmp_path: Path) -> None:
    _, [row] = exported(tmp_path, "axolotl", chat("a", "t-"))
    assert [m["train"] for m in row["messages"]] == [False, True, False, False]
    text = (tmp_path / "out" / "axolotl.yaml").read_text(encoding="utf-8")
    yaml = importlib.import_module("yaml")
    [entry] = yaml.safe_load(text)["datasets"]
    assert entry["message_field_training"] == "train"
    assert entry["type"] == "chat_template"


def test_verl_has_a_string_to_judge_by_and_for_a_maze_its_grid(tmp_path: Path) -> None:
    math = Problem.make(task="math", source="set", prompt="1+1?", answer="2", level="3")
    maze = Problem.make(task="maze", source="set", prompt=GRID, answer="DR", payload={"maze": GRID})
    _, made = exported(tmp_path, "verl", math, maze, system="Think.")
    assert [row["reward_model"] for row in made] == [
        {"style": "rule", "ground_truth": "2"},
        {"style": "rule", "ground_truth": GRID},
    ]
    assert [m["role"] for m in made[0]["prompt"]] == ["system", "user"]
    assert made[0]["prompt"][1]["content"].startswith("1+1?")
    assert made[1]["extra_info"] == {
        "split": "train",
        "index": 1,
        "id": maze.id,
        "task": "maze",
        "level": None,
    }


def test_verl_rows_are_scored_by_the_reward_that_the_readme_names(tmp_path: Path) -> None:
    from llmpipe.rewards import compute_score

    maze = Problem.make(task="maze", source="set", prompt=GRID, answer="DR", payload={"maze": GRID})
    math = Problem.make(task="math", source="set", prompt="1+1?", answer="2")
    _, made = exported(tmp_path, "verl", maze, math)

    def score(row: Mapping[str, Any], answer: str) -> float:
        truth = row["reward_model"]["ground_truth"]
        return compute_score(row["data_source"], answer, truth, row["extra_info"])

    answers = [r"\boxed{DR}", r"\boxed{RD}", r"\boxed{RR}"]  # the other way is right, too
    assert [score(made[0], answer) for answer in answers] == [1.0, 1.0, 0.0]
    assert [score(made[1], r"\boxed{2}"), score(made[1], r"\boxed{3}")] == [1.0, 0.0]
    assert "compute_score" in readme(tmp_path)


def test_trl_problems_are_what_the_rewards_ask_for(tmp_path: Path) -> None:
    from llmpipe.rewards import outcome_reward

    problem = Problem.make(task="math", source="set", prompt="1+1?", answer="2")
    _, [row] = exported(tmp_path, "trl", problem)
    columns = {name: [row[name]] for name in ("answer", "task", "payload")}
    assert outcome_reward([[{"role": "assistant", "content": r"\boxed{2}"}]], **columns) == [1.0]


PAIR = Pair(
    id="p",
    problem_id="q",
    source="set",
    prompt=[{"role": "user", "content": "1+1?"}],
    chosen=[{"role": "assistant", "content": "2"}],
    rejected=[{"role": "assistant", "content": "3"}],
)


@pytest.mark.parametrize("to", ["trl", "openrlhf"])
def test_pairs_are_three_lists_of_messages(tmp_path: Path, to: str) -> None:
    _, [row] = exported(tmp_path, to, PAIR)
    assert row == {name: PAIR.as_row()[name] for name in ("prompt", "chosen", "rejected")}
    assert "dpo" in readme(tmp_path)


@pytest.mark.parametrize("to", ["llama-factory", "axolotl"])
def test_pairs_are_messages_and_two_answers(tmp_path: Path, to: str) -> None:
    _, [row] = exported(tmp_path, to, PAIR)
    assert row == {"messages": PAIR.prompt, "chosen": PAIR.chosen[0], "rejected": PAIR.rejected[0]}


def test_ms_swift_takes_a_pair_as_a_rejected_response(tmp_path: Path) -> None:
    _, [row] = exported(tmp_path, "ms-swift", PAIR)
    assert row == {"messages": [*PAIR.prompt, *PAIR.chosen], "rejected_response": "3"}


@pytest.mark.parametrize(
    ("to", "program"),
    [
        ("trl", "trl"),
        ("llama-factory", "llamafactory-cli"),
        ("ms-swift", "swift"),
        ("axolotl", "axolotl"),
        ("verl-sft", "torchrun"),
        ("openrlhf", "deepspeed"),
    ],
)
def test_the_command_of_a_readme_finds_a_folder_of_any_name(
    tmp_path: Path, to: str, program: str
) -> None:
    name = "it's my data"
    source = make_artifact(tmp_path / "rows", [chat("a", "t")])
    run(Config(to=to), source, tmp_path / name, Mode())
    text = (tmp_path / name / "README.md").read_text(encoding="utf-8")
    command = text[text.index(f"    {program} ") :].split("\n\n")[0]
    script = f"{program}() {{ printf '%s\\n' \"$@\"; }}\n{command}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    paths = [word.strip("[]").partition("=")[2] or word for word in done.stdout.splitlines()]
    paths = [path.strip("[]") for path in paths if name in path]
    assert paths
    assert all((tmp_path / path).exists() for path in paths)


def test_jsonl_is_any_row_as_it_is(tmp_path: Path) -> None:
    problem = Problem.make(task="math", source="set", prompt="½ + ½ = ?", answer="1")
    _, [row] = exported(tmp_path, "jsonl", problem)
    assert row == problem.as_row()
    assert "½" in (tmp_path / "out" / "data" / "train.jsonl").read_text(encoding="utf-8")


def test_the_hub_s_library_reads_an_export(tmp_path: Path) -> None:
    import datasets

    exported(tmp_path, "trl", chat("a", "t"), chat("b", "t"))
    rows = datasets.load_dataset(
        str(tmp_path / "out"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert len(rows) == 2
    assert rows.column_names == ["prompt", "completion"]


def test_files_carry_no_library_s_own_metadata(tmp_path: Path) -> None:
    """What datasets 4 writes of its features, datasets 3 can't read."""
    exported(tmp_path, "axolotl", chat("a", "t"))
    [file] = (tmp_path / "out" / "data").iterdir()
    assert pq.read_schema(file).metadata is None


def test_rows_that_a_trainer_has_no_form_for_are_refused_with_those_that_have(
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError) as e:
        exported(tmp_path, "verl", chat("a", "t"))
    assert "no form for the Conversation rows" in e.value.message
    assert "verl-sft" in str(e.value.hint)
    assert "jsonl" in str(e.value.hint)


def test_an_unknown_trainer_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no exporter is called 'tlr'") as e:
        exported(tmp_path, "tlr", chat("a", "t"))
    assert "trl" in str(e.value.hint)


def test_problems_are_put_as_a_template_says(tmp_path: Path) -> None:
    problem = Problem.make(task="math", source="set", prompt=r"\frac{1}{2}?", answer="2")
    template = "Q: {prompt} Answer in a box."
    _, [row] = exported(tmp_path, "trl", problem, prompt_template=template)
    asked = {"role": "user", "content": r"Q: \frac{1}{2}? Answer in a box."}
    assert row["prompt"] == [asked]


def test_a_system_message_is_for_problems_only(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--system and --prompt-template are for problems"):
        exported(tmp_path, "trl", chat("a", "t"), system="Think.")


def test_nothing_that_fits_ends_with_attention(tmp_path: Path) -> None:
    result, made = exported(tmp_path, "verl-sft", chat("a", "-t"))
    assert made == []
    assert result.exit_code == 3


def test_an_export_is_no_input_of_other_stages(tmp_path: Path) -> None:
    exported(tmp_path, "trl", chat("a", "t"))
    with pytest.raises(UserError, match="holds Foreign rows"):
        Artifact.open(tmp_path / "out", Conversation)
    with pytest.raises(UserError, match="no form for the Foreign rows") as e:
        run(Config(to="jsonl"), tmp_path / "out", tmp_path / "again", Mode())
    assert e.value.hint == f"export what it was made from: llmpipe show {tmp_path / 'out'}"


@pytest.mark.parametrize("name", names("exporters"))
def test_every_exporter_says_what_it_takes(name: str) -> None:
    exporter: Exporter = load("exporters", name)
    assert exporter.shapes
    for shape in exporter.shapes:
        assert shape.record in RECORDS
        assert (shape.loss is not None) == (shape.record == "Conversation") or exporter.lines
