from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction

import pytest

from llmpipe import Score, verify_math
from llmpipe.algo.answers.clean import clean
from llmpipe.algo.answers.figures import Number, number
from llmpipe.core.pool import Failure, WorkerPool
from llmpipe.verifiers.math import same_answer


def equal(gold: str, answer: str) -> bool | None:
    return same_answer(gold, answer)[0]


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("5", "5"),
        ("5", "5.0"),
        ("5", "+5."),
        ("7425000", "7,425,000"),
        ("10000", r"10\,000"),
        ("10000", "10{,}000"),
        ("11111111100", r"11,\! 111,\! 111,\! 100"),
        ("0.4", ".4"),
        ("1/2", r"\dfrac{1}{2}"),
        ("1/2", r"\frac12"),
        ("-1/2", r"-\frac{1}{2}"),
        ("1/2", "0.5"),
        ("1/3", "0.333333"),
        ("28", r"28\%"),
        ("0.28", "28%"),
        ("$18", "18"),
        (r"\boxed{28\%}", "28.0%"),
        ("$5$", "5"),
        ("so we get $\\boxed{7}$", "7"),
        (r"\sqrt{8}", r"2\sqrt{2}"),
        ("x^2-1", "(x-1)(x+1)"),
        ("x=3", "3"),
        (r"\{1, 2\}", r"\{2, 1\}"),
        ("(1, 2)", r"\left( 1, 2 \right)"),
        (r"(-\infty, 2]", r"x \le 2"),
        (r"x \le 2", r"(-\infty, 2]"),
        (r"(-\infty, -3) \cup (3, \infty)", "(-∞, -3) ∪ (3, ∞)"),
        (r"74^\circ", "74°"),
        ("-1 + sqrt(3)", r"\sqrt{3} - 1"),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{bmatrix}1&2\\3&4\end{bmatrix}"),
        ("- c", "-c"),
        ("Yes", "yes"),
        (r"\text{Monday}", "monday"),
        ("A", r"\textbf{A}"),
        ("42", "The answer is 42 because geometry proves it"),
        ("x >= 5", r"Therefore $x \geq 5$ is the solution."),
    ],
)
def test_equal_answers(gold: str, answer: str) -> None:
    assert equal(gold, answer) is True


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("5", "6"),
        ("12", "1 2"),
        ("1000000", "1000000.5"),
        ("0.0000001", "0.0000002"),
        ("1/3", "0.33"),
        ("1/3", "1/4"),
        ("28%", "29%"),
        ("(1, 2)", "(2, 1)"),
        ("x+1", "x+2"),
        ("Dawn", "Wand"),
        ("Evelyn", "Mary"),
        ("A", "B"),
        ("32349", "32, 349"),
        ("5", ""),
        ("1/2", "1/0"),
    ],
)
def test_different_answers(gold: str, answer: str) -> None:
    assert equal(gold, answer) is False


@pytest.mark.parametrize(
    ("gold", "response"),
    [
        ("", r"\boxed{5}"),
        (r"\frac{1}{", r"\boxed{5}"),
        ("The claim holds for all even numbers.", r"\boxed{It is true for all of the primes.}"),
    ],
)
def test_a_gold_that_cannot_be_read_is_an_error(gold: str, response: str) -> None:
    score = verify_math(gold, response)
    assert score.status == "error"
    assert "can't be read" in score.detail


def test_scores_say_what_decided() -> None:
    assert verify_math("3", r"\boxed{4}") == Score(
        status="wrong", extracted="4", detail="numbers: 4 against 3"
    )
    assert verify_math("x+1", r"\boxed{1+x}").detail == "values: 1+x against x+1"
    assert verify_math("3", r"\boxed{\sum_{k=1}^{2} k}").detail.startswith("math-verify: ")
    assert verify_math("Dawn", r"\boxed{Wand}").detail == "words: Wand against Dawn"
    assert verify_math("x+1", r"\boxed{x + 1}").detail == "same text: x+1"


@pytest.mark.parametrize(
    ("response", "finish_reason", "extract", "status"),
    [
        (r"\boxed{5}", "stop", "auto", "correct"),
        (r"\boxed{5} and more", "length", "auto", "correct"),
        ("<answer>5</answer>", "length", "auto", "correct"),
        ("so it is 5", "stop", "auto", "correct"),
        ("so it is 5", "length", "auto", "truncated"),
        (r"\boxed{5", "length", "auto", "truncated"),
        (r"\boxed{5", "stop", "auto", "no_answer"),
        ("so it is 5", "stop", "boxed", "no_answer"),
        ("so it is 5", "length", "boxed", "truncated"),
        (r"<think>\boxed{5}</think> hm", "stop", "auto", "no_answer"),
        (r"\boxed{5}, no, \boxed{6}", "stop", "auto", "wrong"),
        ("no idea", "stop", "auto", "no_answer"),
        ("", "stop", "auto", "no_answer"),
    ],
)
def test_statuses(response: str, finish_reason: str, extract: str, status: str) -> None:
    score = verify_math("5", response, extract=extract, finish_reason=finish_reason)  # type: ignore[arg-type]
    assert score.status == status


def test_numbers() -> None:
    assert number(clean(r"-\dfrac{3}{4}")) == Number(Fraction(-3, 4))
    assert number("-1,000.50%") == Number(Fraction(-2001, 2), percent=True, places=2)
    assert number("1,23") is None
    assert number("3/0") is None
    assert number("1e5") is None
    assert number("1" * 5000) is None


def test_no_text_is_run_as_code() -> None:
    for text in ("__import__('os').system('false')", "exit()", "[].append(1)", "lambda: 1"):
        assert verify_math("5", f"\\boxed{{{text}}}").status == "wrong"


def test_works_in_threads() -> None:
    scores: list[Score] = []
    threads = [
        threading.Thread(target=lambda: scores.append(verify_math("x^2-1", r"\boxed{(x-1)(x+1)}")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [s.status for s in scores] == ["correct"] * 4


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    target = "llmpipe.verifiers.math:verify_math"
    warm_up = [("1", r"\boxed{x}")]
    with WorkerPool(target, workers=1, cpu_seconds=2, warm_up=warm_up) as pool:
        yield pool


@pytest.mark.parametrize("answer", ["9^{9^{9^9}}", r"10^{10^{10}}!", "(" * 20_000])
def test_what_hangs_or_breaks_it_ends_in_the_pool(pool: WorkerPool, answer: str) -> None:
    first, second = pool.map([("5", f"\\boxed{{{answer}}}"), ("5", r"\boxed{5}")])
    assert isinstance(first, Failure) or first.status == "error"
    assert second.status == "correct"
