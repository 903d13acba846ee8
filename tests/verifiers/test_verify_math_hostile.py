"""What is made to hang, to blow up or to be run: every response gets a verdict, none is right."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from llmpipe import Score, verify_math
from llmpipe.core.pool import Failure, WorkerPool
from llmpipe.verifiers.math import same_answer

CPU_SECONDS = 2


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    target = "llmpipe.verifiers.math:verify_math"
    warm_up = [("1", r"\boxed{\sum_{k=1}^3 k}")]
    with WorkerPool(target, workers=1, cpu_seconds=CPU_SECONDS, warm_up=warm_up) as pool:
        yield pool


TOO_LARGE = [
    "9^{9^{9^9}}",
    "9**9**9**9",
    "2**30**5",
    "((100!)!)!",
    r"10^{10^{10}}!",
    r"\binom{10^9}{5\cdot10^8}",
    r"\lfloor 10^{10^7} \rfloor",
    r"\begin{pmatrix}2&1\\1&1\end{pmatrix}^{1000000}",
    "1" * 10_000,
    "(" * 300 + "1" + ")" * 300,
    r"\sqrt{" * 300 + "2" + "}" * 300,
    r"\sin(10^{10^{10}})",
    "1," * 1500,
    r"\pm1" * 30,
]


@pytest.mark.parametrize("answer", TOO_LARGE)
def test_the_huge_is_an_error_without_being_computed(answer: str) -> None:
    # In this process: were any of them computed, it would not end, or with a killed worker.
    score = verify_math("x^2+y^2=1" if answer.startswith("1,") else "5", f"\\boxed{{{answer}}}")
    assert score.status in ("error", "wrong")
    assert score.status == "error" or "numbers" not in score.detail


HARD = [
    r"\int_0^1 x^{x^{x^{x}}} dx",
    r"\sum_{k=1}^{10^9} k",
    r"\prod_{k=1}^{10^9} k",
    "x^{1000000}",
    "{" * 10_000,
    "|" * 999,
    "5" + "!" * 999,
    "-" * 5000 + "1",
    "1/" * 900 + "1",
    "x=" * 900 + "1",
    r"\frac" * 500,
    "a " * 900,
    r"[0,1]\cup" * 200 + "[0,1]",
]


def test_the_hard_ends_within_the_limit(pool: WorkerPool) -> None:
    golds = ["5", "x^2+y^2=1"]
    calls = [(gold, f"\\boxed{{{answer}}}") for answer in HARD for gold in golds]
    for call, result in zip(calls, pool.map(calls), strict=True):
        good = isinstance(result, Score) and result.status in ("wrong", "error", "no_answer")
        assert good or (isinstance(result, Failure) and result.kind in ("timeout", "memory")), call


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch pwned')",
        "[__import__('os').getpid(), 2]",
        "exec(open('/etc/passwd').read())",
        "().__class__.__mro__[1].__subclasses__()",
        "lambda: 1",
        "{i for i in range(10)}",
        "1 if True else 2",
    ],
)
def test_text_is_never_run(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for response in (f"\\boxed{{{text}}}", f"<answer>{text}</answer>", f"The answer is ${text}$."):
        for gold in ("2", "(1, 2)", r"\begin{pmatrix}1\\2\end{pmatrix}"):
            assert verify_math(gold, response).status != "correct"
            verify_math(text, f"\\boxed{{{gold}}}")
    assert not list(tmp_path.iterdir())


def test_from_threads_and_coroutines() -> None:
    pairs = [(r"\sqrt{8}", r"\boxed{2\sqrt{2}}"), (r"\sqrt{8}", r"\boxed{3\sqrt{2}}")] * 8
    found: dict[int, str] = {}

    def judge(number: int) -> None:
        gold, response = pairs[number]
        same_answer.cache_clear()
        found[number] = verify_math(gold, response).status

    threads = [threading.Thread(target=judge, args=(n,)) for n in range(len(pairs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[n] for n in range(len(pairs))] == ["correct", "wrong"] * 8

    async def judged() -> list[Score]:
        return await asyncio.gather(*(asyncio.to_thread(verify_math, *p) for p in pairs[:4]))

    assert [s.status for s in asyncio.run(judged())] == ["correct", "wrong"] * 2


_TOKENS = (
    r"\frac \sqrt { } ^ _ x y 1 23 0.5 + - = , ; ( ) [ ] | ! ' < > \{ \} \pi e i \le \cup \in "
    r"\infty \pm \% \text{ and} \begin{pmatrix} \end{pmatrix} & \\ \sin \log f( : \mathbb{R} cm"
)
latex = st.lists(st.sampled_from([*_TOKENS.split(), " "]), max_size=14).map("".join)
answers = latex | st.text(max_size=30)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(gold=answers, answer=answers)
def test_a_verdict_always_comes(pool: WorkerPool, gold: str, answer: str) -> None:
    """It never raises, and what takes too long or too much is ended by the pool."""
    for result in pool.map([(gold, answer), (gold, f"\\boxed{{{answer}}}")]):
        assert isinstance(result, Score) or result.kind in ("timeout", "memory")


numbers = st.integers(-50, 50).map(str) | st.sampled_from(["0.5", "1/3", r"\pi", "2%", r"\sqrt2"])
formulas = st.recursive(
    numbers | st.sampled_from(["x", "y", "n", "e", r"30^\circ"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: f"({p[0]}+{p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"{p[0]} \\cdot {p[1]}"),
        st.tuples(inner, inner).map(lambda p: f"\\frac{{{p[0]}}}{{{p[1]}}}"),
        inner.map(lambda t: f"\\sqrt{{{t}}}"),
        inner.map(lambda t: f"({t})^2"),
    ),
    max_leaves=4,
)
whole = st.one_of(
    formulas,
    st.lists(formulas, min_size=2, max_size=3).map(", ".join),
    st.lists(formulas, min_size=2, max_size=3).map(lambda x: f"\\{{{', '.join(x)}\\}}"),
    st.tuples(formulas, formulas).map(lambda p: f"({p[0]}, {p[1]})"),
    st.tuples(numbers, numbers).map(lambda p: f"[{p[0]}, {p[1]})"),
    formulas.map(lambda t: f"x = {t}"),
    numbers.map(lambda t: f"x \\le {t}"),
    st.tuples(numbers, numbers).map(lambda p: f"{p[0]} \\pm {p[1]}"),
)


@settings(max_examples=200, deadline=None)
@given(whole, whole)
@example("[0, 0.5)", r"\{0, 0 \cdot \sqrt{-1}\}")  # zero with an imaginary part of zero
def test_it_makes_no_difference_which_is_the_gold_answer(one: str, other: str) -> None:
    assert (same_answer(one, other)[0] is True) == (same_answer(other, one)[0] is True)


@settings(max_examples=100, deadline=None)
@given(whole)
def test_an_answer_is_itself(answer: str) -> None:
    assert same_answer(answer, answer.replace(" ", "  "))[0] is True
