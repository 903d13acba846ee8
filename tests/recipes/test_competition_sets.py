r"""Competition sets: laid out as on the hub, through `prepare`, to the exact problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from layouts import configs, convert, lay_out, prepared, reasons

from llmpipe.core.protocols import Drop
from llmpipe.core.records import Problem

SUBJECTS = (
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
)


def competition(subject: str, number: int = 3, level: str = "Level 4") -> dict[str, Any]:
    return {
        "problem": f"In {subject}, what is ${number} + {number}$?\n",
        "level": level,
        "type": subject.title(),
        "solution": f"Doubling, $\\boxed{{{number}}}$ becomes $\\boxed{{{2 * number}}}$.",
    }


def subject_files(split: str, number: int) -> dict[str, list[dict[str, Any]]]:
    return {
        f"{subject}/{split}-00000-of-00001.parquet": [competition(subject, number)]
        for subject in SUBJECTS
    }


def test_math_reads_its_seven_subjects_in_order(tmp_path: Path) -> None:
    files = subject_files("train", 3) | subject_files("test", 5)
    card = {s: {"train": f"{s}/train-*", "test": f"{s}/test-*"} for s in SUBJECTS}
    lay_out(tmp_path, "EleutherAI/hendrycks_math", files, card=configs(**card))
    problems, dropped = prepared(tmp_path, "math")
    assert dropped == []
    assert [p.subject for p in problems] == [s.title() for s in SUBJECTS]
    assert problems[0] == Problem.make(
        task="math",
        source="math",
        prompt="In algebra, what is $3 + 3$?",
        answer="6",
        solution="Doubling, $\\boxed{3}$ becomes $\\boxed{6}$.",
        level="4",
        subject="Algebra",
        difficulty=0.75,
    )
    tested, _ = prepared(tmp_path, "math", split="test")
    assert [p.answer for p in tested] == ["10"] * 7


def test_a_subject_that_was_not_downloaded_is_an_error(tmp_path: Path) -> None:
    files = subject_files("train", 3)
    del files["geometry/train-00000-of-00001.parquet"]
    folder = lay_out(tmp_path, "EleutherAI/hendrycks_math", files)
    with pytest.raises(Exception, match=f"{folder}/geometry does not exist"):
        prepared(tmp_path, "math")


def test_math_lighteval_reads_the_whole_table_only(tmp_path: Path) -> None:
    files = {"data/train-00000-of-00001.parquet": [competition("geometry", 4)]}
    card = {"algebra": {"train": "algebra/train-*"}, "default": {"train": "data/train-*"}}
    lay_out(
        tmp_path,
        "DigitalLearningGmbH/MATH-lighteval",
        files | subject_files("train", 3),
        card=configs(**card),
    )
    problems, dropped = prepared(tmp_path, "math-lighteval")
    assert dropped == []
    assert [(p.source, p.subject, p.answer) for p in problems] == [
        ("math-lighteval", "Geometry", "8")
    ]


@pytest.mark.parametrize("name", ["math", "math-lighteval"])
@pytest.mark.parametrize(
    ("solution", "level", "expected"),
    [
        (r"It is \boxed 7.", "Level 1", ("7", "1", 0.0)),
        (r"It is \fbox{7}.", "Level 5", ("7", "5", 1.0)),
        (r"It is \boxed{\frac{1}{\sqrt{2}}}.", "Level 3", (r"\frac{1}{\sqrt{2}}", "3", 0.5)),
        (r"\boxed{1} and \boxed{2}", "Level ?", ("1, 2", None, None)),
    ],
)
def test_math_answers_and_levels(
    name: str, solution: str, level: str, expected: tuple[str, str | None, float | None]
) -> None:
    problem = convert(name, {"problem": "What?", "solution": solution, "level": level})
    assert (problem.answer, problem.level, problem.difficulty) == expected


@pytest.mark.parametrize("solution", [r"There are $\boxed{}$ primes.", "It is 7.", None, ""])
def test_math_rows_without_a_boxed_answer_are_dropped(solution: str | None) -> None:
    dropped = convert("math", {"problem": "What?", "solution": solution, "level": "Level 2"})
    assert isinstance(dropped, Drop)
    assert dropped.reason == "no_final_answer"


def test_math_500(tmp_path: Path) -> None:
    row = {
        "problem": "How many edges has a cube?",
        "solution": "Four above, four below, four between: $\\boxed{12}$.",
        "answer": "12",
        "subject": "Geometry",
        "level": 2,
        "unique_id": "test/geometry/1.json",
    }
    lay_out(tmp_path, "HuggingFaceH4/MATH-500", {"test.jsonl": [row]})
    assert prepared(tmp_path, "math-500")[0] == [
        Problem.make(
            task="math",
            source="math-500",
            prompt="How many edges has a cube?",
            answer="12",
            solution=row["solution"],
            level="2",
            subject="Geometry",
            difficulty=0.25,
        )
    ]


def test_aime_2024(tmp_path: Path) -> None:
    def row(n: int, answer: str | None) -> dict[str, Any]:
        return {
            "id": n,
            "problem": f"Find the remainder, {n}.",
            "solution": "By division.",
            "answer": answer,
            "url": "https://example.org",
            "year": "2024",
        }

    rows = [row(1, "073"), row(2, "000"), row(3, "204"), row(4, None)]
    lay_out(tmp_path, "HuggingFaceH4/aime_2024", {"data/train-00000-of-00001.parquet": rows})
    problems, dropped = prepared(tmp_path, "aime-2024")
    assert [p.answer for p in problems] == ["73", "0", "204"]
    assert problems[0] == Problem.make(
        task="math",
        source="aime-2024",
        prompt="Find the remainder, 1.",
        answer="73",
        solution="By division.",
    )
    assert reasons(dropped) == [("row 4", "no_answer")]


def test_aime_2025_is_both_papers_in_order(tmp_path: Path) -> None:
    files = {
        f"aime2025-{paper}.jsonl": [{"question": f"Paper {paper}, {n}?", "answer": f"{n}"}]
        for paper, n in (("II", 2), ("I", 1))
    }
    card = configs(**{f"AIME2025-{p}": {"test": f"aime2025-{p}.jsonl"} for p in ("I", "II")})
    lay_out(tmp_path, "opencompass/AIME2025", files, card=card)
    problems, _ = prepared(tmp_path, "aime-2025")
    assert [(p.prompt, p.answer, p.source) for p in problems] == [
        ("Paper I, 1?", "1", "aime-2025"),
        ("Paper II, 2?", "2", "aime-2025"),
    ]
    with pytest.raises(Exception, match="has no split 'test'"):
        prepared(tmp_path, "aime-2025", split="test")


@pytest.mark.parametrize(
    ("answer", "read"), [("27", "27"), (27.0, "27"), ("27.0", "27"), (2.5, "2.5")]
)
def test_amc_23(tmp_path: Path, answer: str | float, read: str) -> None:
    rows = [{"id": 0, "question": "How far?", "answer": answer, "url": "https://example.org"}]
    lay_out(tmp_path, "math-ai/amc23", {"test-00000-of-00001.parquet": rows})
    assert prepared(tmp_path, "amc-23")[0] == [
        Problem.make(task="math", source="amc-23", prompt="How far?", answer=read)
    ]


def test_omni_math(tmp_path: Path) -> None:
    row = {
        "domain": [
            "Mathematics -> Algebra -> Equations",
            "Mathematics -> Geometry -> Plane Geometry",
        ],
        "difficulty": 7.5,
        "problem": "Solve $x^2 = 4$ for $x > 0$.",
        "solution": "Take the root.",
        "answer": "$2$",
        "source": "a_shortlist",
    }
    lay_out(tmp_path, "KbsdJames/Omni-MATH", {"test.jsonl": [row, {**row, "answer": ""}]})
    problems, dropped = prepared(tmp_path, "omni-math")
    assert problems == [
        Problem.make(
            task="math",
            source="omni-math/a_shortlist",
            prompt="Solve $x^2 = 4$ for $x > 0$.",
            answer="2",
            solution="Take the root.",
            level="7.5",
            subject="Algebra -> Equations; Geometry -> Plane Geometry",
            difficulty=0.75,
        )
    ]
    assert reasons(dropped) == [("row 2", "no_answer")]


OLYMPIAD = pa.schema(
    [
        ("id", pa.int64()),
        ("question", pa.string()),
        ("solution", pa.list_(pa.string())),
        ("final_answer", pa.list_(pa.string())),
        ("context", pa.string()),
        ("modality", pa.string()),
        ("is_multiple_answer", pa.bool_()),
        ("answer_type", pa.string()),
        ("question_type", pa.string()),
        ("subfield", pa.string()),
    ]
)


def olympiad(**changed: Any) -> dict[str, Any]:
    return {
        "id": 1,
        "question": "Find all $n$.",
        "solution": ["First way.", "Second way."],
        "final_answer": ["$\\frac{1}{2}$"],
        "context": None,
        "modality": "Text-only",
        "is_multiple_answer": False,
        "answer_type": "Numerical",
        "question_type": "Open-ended",
        "subfield": "Algebra",
        **changed,
    }


def test_olympiadbench(tmp_path: Path) -> None:
    rows = [
        olympiad(),
        olympiad(final_answer=["$1,2$"], is_multiple_answer=True),
        olympiad(final_answer=["$1$", "$2$"], is_multiple_answer=True, context="Let $n > 0$."),
        olympiad(final_answer=["1", "2"]),
        olympiad(question="See <img_33>. Find $n$."),
        olympiad(modality="Multimodal"),
        olympiad(question_type="Theorem proof", final_answer=None),
        olympiad(answer_type="Need_human_evaluate"),
        olympiad(final_answer=[]),
        olympiad(question=None, context="Let $n > 0$."),
    ]
    config = "OE_TO_maths_en_COMP"
    file = f"OlympiadBench/{config}/{config}.parquet"
    card = configs(**{config: {"train": file}, "OE_MM_maths_en_COMP": {"train": "none.parquet"}})
    lay_out(tmp_path, "Hothan/OlympiadBench", {file: rows}, OLYMPIAD, card)
    problems, dropped = prepared(tmp_path, "olympiadbench")
    assert problems[0] == Problem.make(
        task="math",
        source="olympiadbench",
        prompt="Find all $n$.",
        answer=r"\frac{1}{2}",
        solution="First way.",
        subject="Algebra",
    )
    assert [p.answer for p in problems[1:]] == ["1,2", "1, 2"]
    assert problems[2].prompt == "Let $n > 0$.\n\nFind all $n$."
    assert [reason for _, reason in reasons(dropped)] == [
        "several_answers",
        "has_image",
        "has_image",
        "proof",
        "needs_human_judge",
        "no_answer",
        "empty_prompt",
    ]


def test_minerva_math(tmp_path: Path) -> None:
    rows = [{"question": "What is the image's size in cm?", "answer": "\\boxed{1.6}"}]
    lay_out(tmp_path, "math-ai/minervamath", {"test.jsonl": rows})
    assert prepared(tmp_path, "minerva-math")[0] == [
        Problem.make(
            task="math",
            source="minerva-math",
            prompt="What is the image's size in cm?",
            answer="1.6",
        )
    ]


@pytest.mark.parametrize("repo", ["MathArena/hmmt_feb_2025", "MathArena/hmmt_feb_2026"])
def test_hmmt_and_the_next_year_by_its_id(tmp_path: Path, repo: str) -> None:
    row = {
        "problem_idx": 1,
        "problem": "Compute the area.",
        "answer": "$3\\sqrt{2}$",
        "problem_type": ["Algebra", "Geometry"],
    }
    lay_out(tmp_path, repo, {"data/train-00000-of-00001.parquet": [row]})
    assert prepared(tmp_path, repo)[0] == [
        Problem.make(
            task="math",
            source="hmmt",
            prompt="Compute the area.",
            answer="3\\sqrt{2}",
            subject="Algebra; Geometry",
        )
    ]


@pytest.mark.parametrize("split", ["train", "test", "2024"])
def test_liveaopsbench_whatever_its_split_is_called(tmp_path: Path, split: str) -> None:
    rows = [
        {"question": "How many?", "solution": "Count.", "answer": ["4"]},
        {"question": "How many?", "solution": "Count.", "answer": ["4", "5"]},
    ]
    card = configs(default={split: f"data/{split}-*"})
    lay_out(
        tmp_path,
        "jojo23333/LiveAoPSBench-2024",
        {f"data/{split}-00000-of-00001.parquet": rows},
        card=card,
    )
    problems, dropped = prepared(tmp_path, "liveaopsbench")
    assert problems == [
        Problem.make(
            task="math",
            source="liveaopsbench",
            prompt="How many?",
            answer="4",
            solution="Count.",
        )
    ]
    assert reasons(dropped) == [("row 2", "several_answers")]
