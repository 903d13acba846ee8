from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import rejects
from layouts import VERL, verl

from llmpipe.core.artifact import Artifact, Manifest
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, Rollout, Verdict, problem_id
from llmpipe.core.run import Mode
from llmpipe.stages import generations, verify
from llmpipe.stages.generations import Config

GRID = "S.E\n.*."


def jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def taken(path: Path, config: Config | None = None) -> tuple[list[Problem], list[Rollout]]:
    out = path.parent / "out"
    generations.run(config or Config(), path, out, Mode())
    problems = Artifact.open(out / "problems", Problem)
    rollouts = Artifact.open(out / "rollouts", Rollout)
    return list(problems.iter_rows(Problem)), list(rollouts.iter_rows(Rollout))


def judged(path: Path, config: Config | None = None) -> list[str]:
    taken(path, config)
    out = path.parent / "out"
    verify.run(verify.Config(), out / "rollouts", out, Mode())
    return [v.status for v in Artifact.open(out, Verdict).iter_rows(Verdict)]


def test_verl_rollouts(tmp_path: Path) -> None:
    schema = VERL.append(pa.field("responses", pa.list_(pa.string())))
    rows = [
        {**verl("1+1?", "2"), "responses": [r"\boxed{2}", r"\boxed{3}"]},
        {**verl("Go.", GRID), "responses": ["\\boxed{RR}", "\\boxed{DRR}"]},
        {**verl("1/2?", '["0.5"]'), "responses": ["$0.5$", "none"]},
    ]
    path = tmp_path / "gen.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    problems, rollouts = taken(path)
    assert [(p.task, p.prompt, p.answer, p.source) for p in problems] == [
        ("math", "1+1?", "2", "gen"),
        ("maze", "Go.", "RR", "gen"),
        ("math", "1/2?", "0.5", "gen"),
    ]
    assert json.loads(problems[1].payload) == {"maze": GRID}
    assert [p.level for p in problems] == [None, "2x3", None]
    assert [p.id for p in problems] == [
        *[problem_id("math", "1+1?"), problem_id("maze", "Go."), problem_id("math", "1/2?")]
    ]
    assert rollouts[1] == Rollout(
        problem_id=problems[0].id,
        sample=1,
        seed=0,
        messages=[
            {"role": "user", "content": "1+1?"},
            {"role": "assistant", "content": r"\boxed{3}"},
        ],
        completion=r"\boxed{3}",
        finish_reason="stop",
        prompt_tokens=0,
        completion_tokens=0,
    )
    assert judged(path) == ["correct", "wrong", "correct", "wrong", "correct", "no_answer"]


def test_nemo_skills_output_of_several_seeds(tmp_path: Path) -> None:
    folder = tmp_path / "nemo"
    folder.mkdir()
    for seed, answers in enumerate([("2", "5"), ("3", "4")]):
        jsonl(
            folder / f"output-rs{seed}.jsonl",
            [
                {
                    "problem": problem,
                    "expected_answer": gold,
                    "generation": rf"so \boxed{{{answer}}}",
                    "num_generated_tokens": 10 * seed + 5,
                }
                for problem, gold, answer in zip(("1+1?", "2+2?"), (2, 4), answers, strict=True)
            ],
        )
    problems, rollouts = taken(folder)
    assert [(p.prompt, p.answer) for p in problems] == [("1+1?", "2"), ("2+2?", "4")]
    assert [(r.problem_id, r.sample, r.completion_tokens) for r in rollouts] == [
        *[(problems[0].id, 0, 5), (problems[1].id, 0, 5)],
        *[(problems[0].id, 1, 15), (problems[1].id, 1, 15)],
    ]
    assert judged(folder) == ["correct", "wrong", "wrong", "correct"]


def test_verl_s_dump_of_its_own_rollouts(tmp_path: Path) -> None:
    asked = "user\n1+1?\nassistant\n"  # the chat template's words without its special tokens
    rows = [
        {"input": asked, "output": text, "gts": gts, "score": score, "step": 20, "acc": score}
        for text, gts, score in [(r"\boxed{2}", "2", 1.0), ("3", "2", 0.0), ("2", None, 0.0)]
    ]
    path = jsonl(tmp_path / "20.jsonl", rows)
    problems, rollouts = taken(path)
    assert [(p.prompt, p.answer) for p in problems] == [(asked, "2")]
    assert [(r.sample, r.completion) for r in rollouts] == [(0, r"\boxed{2}"), (1, "3")]
    assert rejects(tmp_path / "out/rollouts") == [("row 3", "no_answer", "gts: null")]
    assert judged(path) == ["correct", "wrong"]


def test_a_null_among_responses_counts_as_a_sample_that_failed(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "x.jsonl", [{"gt": "2", "responses": [r"\boxed{2}", None, "3"]}])
    assert judged(path) == ["correct", "error", "wrong"]
    _, rollouts = taken(path)
    assert (rollouts[1].finish_reason, rollouts[1].error) == ("error", "no text")
    assert rejects(tmp_path / "out/rollouts") == []


def lm_eval(question: str, target: str, text: str, which: str) -> dict[str, Any]:
    chat = json.dumps([{"role": "user", "content": f"Q: {question}"}])
    return {
        "doc_id": 0,
        "doc": {"question": question, "answer": target},
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": [chat], "arg_1": {"until": ["Q:"]}}},
        "resps": [[text]],
        "filtered_resps": [text],
        "filter": which,
        "exact_match": 1.0,
    }


def test_lm_eval_samples_count_once_whatever_the_filters(tmp_path: Path) -> None:
    gold = "6*3=<<6*3=18>>18\n#### 18"
    path = jsonl(
        tmp_path / "samples_gsm8k.jsonl",
        [
            lm_eval("6*3?", gold, "The answer is 18.", "strict-match"),
            lm_eval("1+1?", "#### 2", "3", "strict-match"),
            lm_eval("6*3?", gold, "The answer is 18.", "flexible-extract"),
            lm_eval("1+1?", "#### 2", "3", "flexible-extract"),
        ],
    )
    assert judged(path) == ["correct", "wrong"]
    problems, rollouts = taken(path)
    assert [(p.prompt, p.answer) for p in problems] == [("6*3?", "18"), ("1+1?", "2")]
    assert rejects(tmp_path / "out/rollouts") == [
        ("row 3", "other_filter", "flexible-extract: taken from strict-match"),
        ("row 4", "other_filter", "flexible-extract: taken from strict-match"),
    ]
    assert Manifest.read(tmp_path / "out/rollouts").attention is None
    assert len(rollouts) == 2


def test_lm_eval_rows_without_a_known_question_have_their_prompt(tmp_path: Path) -> None:
    row = lm_eval("1+1?", "2", "2", "none")
    row["doc"] = {"stem": "1+1?"}
    problems, rollouts = taken(jsonl(tmp_path / "samples.jsonl", [row]))
    assert problems[0].prompt == "Q: 1+1?"
    assert rollouts[0].messages[0] == {"role": "user", "content": "Q: 1+1?"}


def test_evalscope_reviews(tmp_path: Path) -> None:
    rows = [
        {
            "index": i,
            "input": "1+1?",
            "target": "2",
            "sample_score": {
                "score": {"value": {"acc": 1.0}, "extracted_prediction": "2", "prediction": text},
                "sample_id": i,
                "group_id": 0,
            },
        }
        for i, text in enumerate([r"\boxed{2}", "it is 3"])
    ]
    assert judged(jsonl(tmp_path / "math.jsonl", rows)) == ["correct", "wrong"]


def test_any_file_with_its_keys_named(tmp_path: Path) -> None:
    rows = [
        {"meta": {"gt": 2}, "texts": ["2", "3"], "q": "1+1?", "finish_reason": ["stop", "length"]}
    ]
    path = jsonl(tmp_path / "x.jsonl", rows)
    config = Config(answer_key="meta.gt", response_key="texts", prompt_key="q")
    assert judged(path, config) == ["correct", "truncated"]


def test_a_csv_file_has_a_response_a_row(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as f:
        csv.writer(f).writerows(
            [["question", "answer", "response"], ["1+1?", "2", "2"], ["1+1?", "2", "3"]]
        )
    problems, rollouts = taken(path)
    assert len(problems) == 1
    assert [(r.problem_id, r.sample) for r in rollouts] == [
        (problems[0].id, 0),
        (problems[0].id, 1),
    ]


def test_without_prompts_each_row_is_a_problem(tmp_path: Path) -> None:
    rows = [{"gt": "2", "response": ["2", "3"]}, {"gt": "2", "response": "2"}]
    problems, rollouts = taken(jsonl(tmp_path / "x.jsonl", rows))
    assert [p.prompt for p in problems] == ["", ""]
    assert len({p.id for p in problems}) == 2
    assert [(r.problem_id, r.sample) for r in rollouts] == [
        *[(problems[0].id, 0), (problems[0].id, 1), (problems[1].id, 0)]
    ]
    assert rollouts[0].messages == [{"role": "assistant", "content": "2"}]
    assert judged(tmp_path / "x.jsonl") == ["correct", "wrong", "correct"]


def test_rows_that_cannot_be_judged_are_rejected_by_reason(tmp_path: Path) -> None:
    rows = [
        {"question": "1+1?", "answer": "2", "response": "2"},
        {"question": "1+1?", "answer": "3", "response": "2"},
        {"question": "2+2?", "answer": None, "response": "2"},
        {"question": "2+2?", "answer": "4", "response": None},
        {"question": None, "answer": "4", "response": "4"},
        {"question": "Go.", "answer": "S*\n*E", "response": "R"},
    ]
    path = jsonl(tmp_path / "x.jsonl", rows)
    problems, rollouts = taken(path)
    assert (len(problems), len(rollouts)) == (1, 1)
    assert [(row, reason) for row, reason, _ in rejects(tmp_path / "out/rollouts")] == [
        ("row 2", "other_answer"),
        ("row 3", "no_answer"),
        ("row 4", "no_response"),
        ("row 5", "no_prompt"),
        ("row 6", "malformed"),
    ]
    manifest = Manifest.read(tmp_path / "out/rollouts")
    assert manifest.counts["read"] == 6
    assert manifest.attention == "5 of 6 rows can't be judged (rejects.parquet says why)"


def test_a_second_run_finds_it_done_and_other_keys_are_refused(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "x.jsonl", [{"question": "1+1?", "answer": "2", "b": "3", "response": "2"}]
    )
    taken(path)
    again = generations.run(Config(), path, tmp_path / "out", Mode())
    assert [result.up_to_date for result in again] == [True, True]
    with pytest.raises(UserError, match="answer_key was null"):
        generations.run(Config(answer_key="b"), path, tmp_path / "out", Mode())
    planned = generations.run(Config(), path, tmp_path / "other", Mode(dry_run=True))
    assert [bool(result.plan) for result in planned] == [True]
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("config", "message", "hint"),
    [
        (Config(answer_key="gold"), "no column 'gold'", "--answer-key q|response"),
        (Config(), "no column with a usual answer name", "--answer-key q|response"),
        (Config(answer_key="q", response_key="x"), "no column 'x'", "--response-key q|response"),
    ],
)
def test_missing_columns_are_named(tmp_path: Path, config: Config, message: str, hint: str) -> None:
    path = jsonl(tmp_path / "x.jsonl", [{"q": "1+1?", "response": "2"}])
    with pytest.raises(UserError, match=message) as error:
        taken(path, config)
    assert hint in (error.value.hint or "")


def test_nothing_is_written_among_other_files(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "x.jsonl", [{"question": "1+1?", "answer": "2", "response": "2"}])
    with pytest.raises(UserError, match="was not made by llmpipe"):
        generations.run(Config(), path, tmp_path, Mode())
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("answer,response\n")
    with pytest.raises(UserError, match="has no rows"):
        taken(path)
