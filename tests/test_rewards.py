"""The reward functions as trainers call them."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import multiprocessing
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import make_artifact

import llmpipe.rewards
from llmpipe import tasks
from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Problem, Rollout, Verdict
from llmpipe.core.run import Mode
from llmpipe.rewards import (
    action_reward,
    compute_score,
    format_reward,
    length_reward,
    outcome_reward,
)
from llmpipe.stages import verify
from llmpipe.tasks import _shared

GRID = "S.E\n.*."
HANGS = r"\boxed{\int_0^1 e^{-x^2}\sin(x^3)dx}"  # sympy takes 12 s for it


def says(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers that are killed after a second."""
    monkeypatch.setattr(tasks, "CPU_SECONDS", 1.0)
    _shared._judges.close()
    yield
    _shared._judges.close()


def test_outcomes_of_texts_and_of_messages() -> None:
    texts = [r"so \boxed{\frac12}", r"so \boxed{0.25}", "no idea"]
    assert outcome_reward(texts, ["1/2"] * 3) == [1.0, 0.0, 0.0]
    assert outcome_reward([says(t) for t in texts], answer=["1/2"] * 3) == [1.0, 0.0, 0.0]
    assert outcome_reward([], []) == []


def test_a_trainer_passes_what_else_it_has() -> None:
    rewards = outcome_reward(
        prompts=["1+1?"],
        completions=["it is 2"],
        completion_ids=[[1, 2]],
        answer=["2"],
        level=["easy"],
        trainer_state=None,
        log_extra=print,
    )
    assert rewards == [1.0]
    boxed = functools.partial(outcome_reward, extract="boxed")
    assert boxed(["it is 2"], ["2"]) == [0.0]


def test_mazes_by_their_grid_or_their_payload() -> None:
    moves = [r"\boxed{RR}", r"\boxed{DRR}"]
    assert outcome_reward(moves, [GRID] * 2) == [1.0, 0.0]
    problem = Problem.make(
        task="maze", source="t", prompt="Go.", answer="RR", payload={"maze": GRID}
    ).as_row()
    columns = {key: [problem[key]] * 2 for key in ("answer", "task", "payload", "level")}
    assert outcome_reward(moves, **columns) == [1.0, 0.0]


def test_a_row_without_a_gold_answer_gets_no_reward(caplog: Any) -> None:
    assert outcome_reward(["2", "None", "2"], ["2", None, "3"]) == [1.0, None, 0.0]
    assert outcome_reward(["2"], [None]) == [None]
    assert caplog.text == ""  # it asks for that
    assert outcome_reward(["2", "2", ""], ["", float("nan"), ["1", "2"]]) == [None] * 3
    assert "no gold answer (empty)" in caplog.text
    assert "no gold answer (2 answers)" in caplog.text
    grid = f'{{"maze": {GRID!r}}}'.replace("'", '"')
    columns = {"task": ["maze", None], "payload": [grid, None]}
    assert outcome_reward([r"\boxed{RR}", "2"], [None, None], **columns) == [1.0, None]


def test_gold_answers_as_data_sets_have_them() -> None:
    golds = ["6*3=<<6*3=18>>18\n#### 18", 18, ["18"], np.int64(18), np.array(["18"]), '["18"]']
    assert outcome_reward(["So 18."] * 6, golds) == [1.0] * 6


def test_a_completion_in_parts_is_read() -> None:
    parts = [{"type": "text", "text": "it is "}, {"type": "text", "text": "2"}]
    message: dict[str, Any] = {"role": "assistant", "content": parts}
    assert outcome_reward([[message]], ["2"]) == [1.0]
    image = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "<think>"}]}
    assert format_reward([r"\boxed{2}"], prompts=[[image]]) == [0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": ["chess"]}, "task is 'chess'"),
        ({"extract": "all"}, "extract is auto or boxed"),
        ({"maze_rules": "lax"}, "strict or passk"),
        ({"answer": ["1", "2"]}, "argument"),
    ],
)
def test_what_is_wrong_with_the_call_itself_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        outcome_reward(["2"], **{"answer": ["2"], **options})


@pytest.mark.usefixtures("impatient")
def test_a_verdict_that_fails_is_none_and_the_others_stand(caplog: Any) -> None:
    texts = [r"\boxed{x+1}", HANGS, r"\boxed{1+x}"]
    assert outcome_reward(texts, ["x+1"] * 3) == [1.0, None, 1.0]
    assert "no verdict: timeout: over 1 s of CPU time" in caplog.text
    assert compute_score("math", HANGS, "x+1") == 0.0
    assert outcome_reward(texts[:1], ["x+1"]) == [1.0]


@pytest.mark.usefixtures("impatient")
def test_threads_judge_side_by_side_and_one_that_hangs_holds_up_nobody() -> None:
    def score(number: int) -> float:
        text = HANGS if number == 3 else rf"\boxed{{{number}+x}}"
        return compute_score("math", text, f"x+{number if number % 2 else 0}")

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(score, range(40)))
    assert found == [float(n == 0 or (n % 2 == 1 and n != 3)) for n in range(40)]
    assert len(_shared._judges._small) <= len(_shared.os.sched_getaffinity(0))


def test_batches_from_several_threads() -> None:
    with ThreadPoolExecutor(4) as threads:
        batches = threads.map(
            lambda gold: outcome_reward([r"\boxed{1}", r"\boxed{2}"], [gold] * 2), "1212"
        )
        assert list(batches) == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]


def test_async_code_may_call_it() -> None:
    async def main() -> list[Any]:
        inside = outcome_reward(["it is 2"], ["2"])
        outside = await asyncio.gather(
            *(asyncio.to_thread(compute_score, "math", f"it is {i}", "2") for i in range(4))
        )
        return [*inside, *outside]

    assert asyncio.run(main()) == [1.0, 0.0, 0.0, 1.0, 0.0]


def test_a_forked_process_has_its_own_workers() -> None:
    assert compute_score("math", "it is 2", "2") == 1.0
    with multiprocessing.get_context("fork").Pool(2) as pool:
        scores = pool.starmap(compute_score, [("math", f"it is {i}", "2") for i in range(4)])
    assert scores == [0.0, 0.0, 1.0, 0.0]
    assert compute_score("math", "it is 2", "2") == 1.0


def test_workers_end_with_the_process() -> None:
    script = textwrap.dedent(
        """
        from llmpipe.rewards import compute_score, outcome_reward
        from llmpipe.tasks import _shared
        compute_score("math", "2", "2"), outcome_reward(["2", "2"], ["2", "2"])
        pools = [*_shared._judges._small, _shared._judges._big]
        print(*(w._process.pid for pool in pools for w in pool._workers))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    workers = [Path("/proc", pid) for pid in done.stdout.split()]
    assert len(workers) >= 2
    assert not any(worker.exists() for worker in workers)


@pytest.mark.parametrize(
    ("source", "truth", "info", "score"),
    [
        ("math_dapo", "1/2", None, 1.0),
        ("openai/gsm8k", 0.5, {"index": 0}, 1.0),
        ("openai/gsm8k", "1", {}, 0.0),
        ("anything", "1/2", {"task": "math"}, 1.0),
        ("Skywork", '["1/2"]', None, 1.0),
        ("DeepScaleR", np.array(["1/2"], object), None, 1.0),
    ],
)
def test_verl_scores(source: str, truth: Any, info: Any, score: float) -> None:
    found = compute_score(
        data_source=source,
        solution_str=r"so \boxed{0.5}",
        ground_truth=truth,
        extra_info=info,
        reward_router_address=None,  # what verl's reward loop adds
    )
    assert found == score
    assert type(found) is float


def test_verl_has_0_and_a_warning_where_there_is_no_gold_answer(caplog: Any) -> None:
    for number, truth in enumerate([None, "", {"target": "2"}], 1):
        assert compute_score("math", "None", truth) == 0.0
        assert caplog.text.count("no verdict: no gold answer (") == number


def test_verl_mazes() -> None:
    right, wrong = r"\boxed{RR}", r"\boxed{DRR}"
    assert compute_score("RUC-AIBOX/Passk_Training_Maze", right, GRID) == 1.0
    assert compute_score("mine", wrong, GRID, {"task": "maze"}) == 0.0
    assert compute_score("mine", right, GRID) == 1.0
    with pytest.raises(ValueError, match="task is 'chess'"):
        compute_score("mine", right, GRID, {"task": "chess"})


def test_verl_loads_the_file_by_its_path() -> None:
    # As verl.utils.import_utils does it: under a name that is no package's.
    spec = importlib.util.spec_from_file_location("custom_module", llmpipe.rewards.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.compute_score("math", "it is 2", "2") == 1.0


def test_formats() -> None:
    texts = [r"\boxed{2}", "2", r"<think>a</think> \boxed{2}"]
    assert format_reward(texts) == [1.0, 0.0, 1.0]
    asking = ["Think in <think> tags.", "q", "…<think>\n"]
    assert format_reward([says(t) for t in texts], prompts=asking) == [0.0, 0.0, 1.0]
    messages = [[{"role": "system", "content": "Use <think>."}]] * 3
    assert format_reward(texts, prompts=messages) == [0.0, 0.0, 1.0]


def test_lengths_count_among_the_completions_of_a_prompt() -> None:
    texts = ["a", "aaa", "bb", "aa", "bb"]
    prompts = [
        "p",
        "p",
        [{"role": "user", "content": "q"}],
        "p",
        [{"role": "user", "content": "q"}],
    ]
    assert length_reward(texts, prompts) == [0.0, 1.0, 0.0, 0.5, 0.0]
    ids = [[0] * n for n in (9, 5, 1, 6, 3)]
    assert length_reward(texts, prompts, completion_ids=ids) == [1.0, 0.0, 0.0, 0.25, 1.0]


def test_actions() -> None:
    assert action_reward([says("Wait. It is 2."), says("It is 2.")]) == [0.5, 0.0]
    assert action_reward([[{"role": "tool", "content": "wait"}]]) == [0.0]


def test_they_are_the_rewards_that_verify_gives(tmp_path: Path) -> None:
    problem = Problem.make(task="math", source="t", prompt="1+1?", answer="2")
    texts = [r"Wait. So \boxed{2}", r"\boxed{3}", "It is 2.", "no idea", r"\boxed{2} \boxed{2}"]
    user = {"role": "user", "content": "1+1?"}
    make_artifact(tmp_path / "p", [problem])
    rollouts = [
        Rollout(
            problem_id=problem.id,
            sample=i,
            seed=i,
            messages=[user, {"role": "assistant", "content": text}],  # type: ignore[list-item]
            completion=text,
            finish_reason="stop",
            prompt_tokens=1,
            completion_tokens=len(text),
        )
        for i, text in enumerate(texts)
    ]
    make_artifact(tmp_path / "r", rollouts, inputs={"problems": tmp_path / "p"})
    verify.run(verify.Config(), tmp_path / "r", tmp_path / "v", Mode())
    verdicts = list(Artifact.open(tmp_path / "v", Verdict).iter_rows(Verdict))
    prompts = [[user]] * len(texts)
    assert [v.rewards.outcome for v in verdicts] == outcome_reward(texts, ["2"] * len(texts))
    assert [v.rewards.format for v in verdicts] == format_reward(texts, prompts)
    assert [v.rewards.length for v in verdicts] == pytest.approx(length_reward(texts, prompts))
    assert [v.rewards.action for v in verdicts] == pytest.approx(action_reward(texts))
