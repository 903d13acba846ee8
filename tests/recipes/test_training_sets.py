r"""Training sets: laid out as on the hub, through `prepare`, to the exact problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from layouts import VERL, configs, convert, lay_out, prepared, reasons, verl

from llmpipe.core.records import Problem

NUMINA = pa.schema(
    [
        *((name, pa.string()) for name in ("problem", "solution", "answer", "problem_type")),
        *((n, pa.string()) for n in ("question_type", "problem_is_valid", "solution_is_valid")),
        ("source", pa.string()),
        ("synthetic", pa.bool_()),
    ]
)


def numina(**changed: Any) -> dict[str, Any]:
    return {
        "problem": "How many pairs add to 8?",
        "solution": "Four and one: 5.",
        "answer": "5",
        "problem_type": "Number Theory",
        "question_type": "math-word-problem",
        "problem_is_valid": "Yes",
        "solution_is_valid": "Yes",
        "source": "olympiads",
        "synthetic": False,
        **changed,
    }


@pytest.mark.parametrize("repo", ["AI-MO/NuminaMath-1.5", "project-numina/NuminaMath-1.5"])
def test_numina_math(tmp_path: Path, repo: str) -> None:
    rows = [
        numina(),
        numina(answer="proof"),
        numina(answer="5", question_type="proof"),
        numina(answer="notfound"),
        numina(answer=None),
        numina(problem_is_valid="Incomplete"),
        numina(solution_is_valid="Problem not solved"),
        numina(solution_is_valid=None),
        numina(problem=" "),
        numina(question_type="MCQ", answer="B", synthetic=True),
    ]
    files = {
        "data/train-00000-of-00002.parquet": rows[:4],
        "data/train-00001-of-00002.parquet": rows[4:],
    }
    lay_out(tmp_path, repo, files, NUMINA)
    problems, dropped = prepared(tmp_path, repo)
    assert problems[0] == Problem.make(
        task="math",
        source="numina-math/olympiads",
        prompt="How many pairs add to 8?",
        answer="5",
        solution="Four and one: 5.",
        subject="Number Theory",
    )
    assert [p.answer for p in problems] == ["5", "B"]
    assert reasons(dropped) == [
        ("row 2", "proof"),
        ("row 3", "proof"),
        ("row 4", "no_answer"),
        ("row 5", "no_answer"),
        ("row 6", "invalid_problem"),
        ("row 7", "invalid_solution"),
        ("row 8", "invalid_solution"),
        ("row 9", "empty_prompt"),
    ]


DAPO = (
    "Solve the following math problem step by step. The last line of your response should be of "
    "the form Answer: $Answer (without quotes) where $Answer is the answer to the problem.\n\n"
    '{}\n\nRemember to put your answer on its own line after "Answer:".'
)


def test_dapo_math_comes_once_and_without_its_instruction(tmp_path: Path) -> None:
    once = [
        verl(DAPO.format("What is $2^{5}$?"), "32", "a"),
        verl(DAPO.format("求 $3^{2}$."), "9", "b"),
        verl(DAPO.format("What is $2^{5}$?"), "31", "c"),
        verl("Bare: what is 1?", "1", "d"),
    ]
    again = [{**row, "extra_info": {"index": f"again {i}"}} for i, row in enumerate(once)]
    lay_out(
        tmp_path,
        "BytedTsinghua-SIA/DAPO-Math-17k",
        {"data/dapo-math-17k.parquet": once + again * 20},
        VERL,
    )
    problems, dropped = prepared(tmp_path, "dapo-math")
    assert [(p.prompt, p.answer) for p in problems] == [
        ("What is $2^{5}$?", "32"),
        ("求 $3^{2}$.", "9"),
        ("What is $2^{5}$?", "31"),  # another answer to the same problem is for dedupe
        ("Bare: what is 1?", "1"),
    ]
    assert {p.source for p in problems} == {"dapo-math"}
    assert len(dropped) == 80
    assert {reason for _, reason, _ in dropped} == {"repeated_row"}
    assert dropped[1] == ("row 6", "repeated_row", "the same as row 2")
    _, dropped = prepared(tmp_path, "dapo-math", holdout=1)
    assert len([reason for _, reason, _ in dropped if reason == "repeated_row"]) == 80
    first, _ = prepared(tmp_path, "dapo-math", limit=4)
    assert first == problems


@pytest.mark.parametrize(
    ("repo", "file"),
    [
        ("Open-Reasoner-Zero/orz_math_57k_collection", "orz_math_57k_collection.json"),
        ("Tonic/OpenReasonerZero", "orz_math_57k_collected.json"),
    ],
)
def test_orz_math_is_a_list_of_pairs(tmp_path: Path, repo: str, file: str) -> None:
    def pair(value: Any, truth: Any) -> list[dict[str, Any]]:
        answer = {"value": truth, "pass_at_n": 0.25}
        return [
            {"from": "human", "value": value},
            {"from": "assistant", "ground_truth": answer},
        ]

    rows = [pair("4. (7 points) What is 007 + 1?", "8"), pair("What is 1?", None)]
    lay_out(tmp_path, repo, {file: [*rows, [{"from": "human", "value": "Alone?"}]]})
    problems, dropped = prepared(tmp_path, repo)
    assert problems == [
        Problem.make(
            task="math", source="orz-math", prompt="4. (7 points) What is 007 + 1?", answer="8"
        )
    ]
    assert reasons(dropped) == [("row 2", "no_answer"), ("row 3", "no_answer")]


def test_deepscaler(tmp_path: Path) -> None:
    rows = [
        {"problem": "Find the slope.", "answer": "-\\frac{2}{3}", "solution": "Rise over run."},
        {"problem": "Find the area.", "answer": "12", "solution": ""},
        {"problem": "Find it.", "answer": "", "solution": ""},
    ]
    lay_out(tmp_path, "agentica-org/DeepScaleR-Preview-Dataset", {"deepscaler.json": rows})
    problems, dropped = prepared(tmp_path, "deepscaler")
    assert problems == [
        Problem.make(
            task="math",
            source="deepscaler",
            prompt="Find the slope.",
            answer="-\\frac{2}{3}",
            solution="Rise over run.",
        ),
        Problem.make(task="math", source="deepscaler", prompt="Find the area.", answer="12"),
    ]
    assert reasons(dropped) == [("row 3", "no_answer")]


def test_skywork_or1_reads_the_split_math(tmp_path: Path) -> None:
    models = [f"DeepSeek-R1-Distill-Qwen-{size}" for size in ("1.5B", "32B", "7B")]
    difficulty = pa.struct([(model, pa.int64()) for model in models])
    extra = pa.struct([("index", pa.int64()), ("model_difficulty", difficulty)])
    schema = VERL.set(4, pa.field("extra_info", extra))
    failed = dict(zip(models, (16, 0, 4), strict=True))

    def row(truth: str | None, failed: dict[str, int] | None = failed) -> dict[str, Any]:
        return verl("Find $k$.", truth, 1, model_difficulty=failed)

    rows = [
        row(json.dumps(["\\frac{1}{2}"])),
        row("[]"),
        row('["1", "2"]'),
        row('["7"]', None),
        row("[12]"),
        row(None),
        row("15"),
        row("null"),
        row('["a'),
    ]
    lay_out(
        tmp_path,
        "Skywork/Skywork-OR1-RL-Data",
        {"data/math-00000-of-00001.parquet": rows, "data/code-00000-of-00001.parquet": rows[:1]},
        schema,
        configs(default={"math": "data/math-*", "code": "data/code-*"}),
    )
    problems, dropped = prepared(tmp_path, "skywork-or1")
    assert problems[0] == Problem.make(
        task="math",
        source="skywork-or1/somewhere",
        prompt="Find $k$.",
        answer="\\frac{1}{2}",
        difficulty=0.25,
        pass_rate=0.75,
    )
    assert [p.answer for p in problems] == ["\\frac{1}{2}", "7", "12", "15"]
    assert (problems[1].difficulty, problems[1].pass_rate) == (None, None)
    assert reasons(dropped) == [
        ("row 2", "no_answer"),
        ("row 3", "several_answers"),
        ("row 6", "no_answer"),
        ("row 8", "no_answer"),
        ("row 9", "no_answer"),
    ]


def test_still_3(tmp_path: Path) -> None:
    rows = [{"question": "What is 6 times 7?", "answer": "$42$"}]
    lay_out(
        tmp_path,
        "RUC-AIBOX/STILL-3-Preview-RL-Data",
        {"data/train-00000-of-00001.parquet": rows},
    )
    assert prepared(tmp_path, "still-3")[0] == [
        Problem.make(task="math", source="still-3", prompt="What is 6 times 7?", answer="42")
    ]
    listed = convert("still-3", {"question": "What?", "answer": ["42", "42"]})
    assert listed.answer == "42"


def test_big_math(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("problem", pa.string()),
            ("answer", pa.string()),
            ("source", pa.string()),
            ("domain", pa.list_(pa.string())),
            ("llama8b_solve_rate", pa.float64()),
        ]
    )
    row = {
        "problem": "How many apples?",
        "answer": "11",
        "source": "orca_math",
        "domain": ["Mathematics -> Applied Mathematics -> Word Problems"],
        "llama8b_solve_rate": 0.328125,
    }
    rows = [row, {**row, "domain": None, "llama8b_solve_rate": None}]
    lay_out(
        tmp_path,
        "SynthLabsAI/Big-Math-RL-Verified",
        {"data/train-00000-of-00001.parquet": rows},
        schema,
    )
    problems, _ = prepared(tmp_path, "big-math")
    assert problems[0] == Problem.make(
        task="math",
        source="big-math/orca_math",
        prompt="How many apples?",
        answer="11",
        subject="Applied Mathematics -> Word Problems",
        pass_rate=0.328125,
    )
    assert (problems[1].subject, problems[1].pass_rate) == (None, None)


OPENR1 = pa.schema(
    [
        *(NUMINA.field(n) for n in ("problem", "solution", "answer", "problem_type")),
        *(NUMINA.field(n) for n in ("question_type", "source")),
        ("generations", pa.list_(pa.string())),
        ("correctness_math_verify", pa.list_(pa.bool_())),
        ("correctness_llama", pa.list_(pa.bool_())),
    ]
)


@pytest.mark.parametrize(
    ("by_rule", "by_model", "rate"),
    [
        ([True, False], None, 0.5),
        ([True, True], None, 1.0),
        ([False, False], [True, False], 0.5),
        ([False, True, False, False], [True, None, None, None], 0.5),
        ([None, None], [True, True], 1.0),
        ([], None, None),
        (None, None, None),
    ],
)
def test_openr1_math_keeps_the_gold_solution_and_how_often_r1_was_right(
    tmp_path: Path, by_rule: Any, by_model: Any, rate: float | None
) -> None:
    row = numina(generations=["<think>"] * 2)
    row |= {"correctness_math_verify": by_rule, "correctness_llama": by_model}
    lay_out(
        tmp_path,
        "open-r1/OpenR1-Math-220k",
        {
            "data/train-00000-of-00001.parquet": [row, {**row, "answer": "proof"}],
            "extended/train-00000-of-00001.parquet": [{**row, "answer": "6"}],
        },
        OPENR1,
        configs(
            all={"train": "*/train-*"},
            default={"train": "data/train-*"},
            extended={"train": "extended/train-*"},
        ),
    )
    problems, dropped = prepared(tmp_path, "openr1-math")
    assert problems == [
        Problem.make(
            task="math",
            source="openr1-math/olympiads",
            prompt="How many pairs add to 8?",
            answer="5",
            solution="Four and one: 5.",
            subject="Number Theory",
            pass_rate=rate,
        )
    ]
    assert reasons(dropped) == [("row 2", "proof")]


@pytest.mark.parametrize(
    "tail",
    [
        " Let's think step by step and output the final answer within \\boxed{}.",
        "\nPlease reason step by step, and put your final answer within \\boxed{}.",
    ],
)
def test_an_instruction_after_the_problem_is_taken_off(tail: str) -> None:
    row = {"problem": f"What is $1 + 1$?{tail}", "answer": "2"}
    assert convert("deepscaler", row).prompt == "What is $1 + 1$?"
    assert convert("dapo-math", verl(row["problem"], "2")).prompt == "What is $1 + 1$?"
