"""Rewards for trainers: the verdicts of ``llmpipe verify``, as TRL and verl ask for them.

TRL (``GRPOTrainer(reward_funcs=[outcome_reward, ...])``): functions of a batch of completions and
of the data set's columns. ``answer`` is the gold answer; ``task`` ("math" or "maze") and
``payload`` are used where there are such columns, so that a data set of llmpipe's problems fits as
it is. A maze without a payload has its grid as its answer. None means no verdict: TRL leaves that
reward out. A row whose answer is None asks for that (a mix of tasks that other rewards judge); an
answer that is there and can't be read gets it with a warning.
Options are set with `functools.partial`: ``partial(outcome_reward, extract="boxed")``.

verl (``custom_reward_function.path`` is this file, ``name`` is compute_score): see `compute_score`.

Judging runs in child processes that are killed at `llmpipe.tasks.CPU_SECONDS`, so the functions may
be called from any thread, from async code (they block: `asyncio.to_thread`) and from notebooks. A
verdict that fails never raises. The formulas are in `llmpipe.algo.rewards` and
`llmpipe.algo.actions`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llmpipe.algo.actions import action_rates
from llmpipe.algo.cells import chat, gold_text, is_grid, said
from llmpipe.algo.rewards import THINK, lengths_in_groups, outcome, well_formed
from llmpipe.core.pool import Failure
from llmpipe.core.records import Message
from llmpipe.tasks._shared import Call, judge_all, task_names

log = logging.getLogger(__name__)

Completion = str | Sequence[Message]
"""What a trainer has: a text, or the messages that the model added to a chat."""


def outcome_reward(
    completions: Sequence[Completion],
    answer: Sequence[Any],
    *,
    task: Sequence[str | None] | None = None,
    payload: Sequence[str | None] | None = None,
    extract: str = "auto",
    maze_rules: str = "strict",
    **columns: Any,
) -> list[float | None]:
    """1 for a correct completion, 0 for one that isn't, None where there is no verdict.

    An answer is a text or a number; of ``... #### 18`` (GSM8K) it is the 18, and of a list of one
    its item.

    A trainer doesn't say whether a completion was cut off: it is judged as one that ended. With
    ``extract="boxed"`` that makes no difference.

    Raises:
        ValueError: an unknown task or option, or columns of another length.
    """
    rows = zip(
        completions, answer, task or [""] * len(answer), payload or [""] * len(answer), strict=True
    )
    calls = [
        _call(_text(completion), gold, kind or "", data or "", extract, maze_rules)
        for completion, gold, kind, data in rows
    ]
    results = iter(judge_all([call for call in calls if call]))
    return [_reward(next(results)) if call else None for call in calls]


def format_reward(
    completions: Sequence[Completion], prompts: Sequence[Any] | None = None, **columns: Any
) -> list[float | None]:
    """1 for a completion with one closed box after its thinking, else 0.

    ``prompts`` (texts or messages) that say ``<think>`` ask for closed tags.
    """
    return [
        well_formed(_text(completion), asks_thinking=_asks_thinking(prompt))
        for completion, prompt in zip(completions, prompts or [()] * len(completions), strict=True)
    ]


def length_reward(
    completions: Sequence[Completion],
    prompts: Sequence[Any],
    completion_ids: Sequence[Sequence[int]] | None = None,
    **columns: Any,
) -> list[float | None]:
    """From 0 for the shortest to 1 for the longest completion of the same prompt in the batch.

    In tokens where ``completion_ids`` are given, else in characters. It pays for length alone.
    """
    keys = [json.dumps(prompt, sort_keys=True, default=str) for prompt in prompts]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    lengths = [len(c) for c in completion_ids or map(_text, completions)]
    rewards = lengths_in_groups(
        np.array([numbers[key] for key in keys], np.int64),
        np.array(lengths, np.int64),
        np.ones(len(keys), bool),
    )
    return [float(reward) for reward in rewards]


def action_reward(completions: Sequence[Completion], **columns: Any) -> list[float | None]:
    """The share of each completion's sentences that verify, reflect or backtrack."""
    return [action_rates(_text(completion)).any for completion in completions]


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    **options: Any,
) -> float:
    """verl's score of one response: 1 if it is correct, else 0.

    The task is ``extra_info["task"]`` if that is there; else it is maze where ``data_source`` says
    so or ``ground_truth`` is a grid, and math otherwise. For a maze ``ground_truth`` is the grid.
    Where there is no verdict, and where ``ground_truth`` is None, it is 0 and a warning: verl has
    nothing that means "leave this out". (All of a group get it, so that GRPO learns nothing there.)
    ``options`` may have ``extract`` and ``maze_rules`` (verl's ``reward_kwargs``); what else verl
    passes is not used.

    Raises:
        ValueError: an unknown task or option.
    """
    kind = str((extra_info or {}).get("task") or "")
    if not kind and "maze" in str(data_source).lower():
        kind = "maze"
    extract, rules = options.get("extract", "auto"), options.get("maze_rules", "strict")
    call = _call(str(solution_str), ground_truth, kind, "", extract, rules)
    if call is None:
        if ground_truth is None:
            log.warning("no verdict: no gold answer (null)")
        return 0.0
    [result] = judge_all([call])
    return _reward(result) or 0.0


def _call(text: str, answer: Any, task: str, payload: str, extract: str, rules: str) -> Call | None:
    """The arguments of a verdict, or None where there is no gold answer."""
    plain = answer.tolist() if isinstance(answer, np.ndarray | np.generic) else answer
    gold, fault = gold_text(plain)
    task = task or ("maze" if gold and is_grid(gold) else "math")
    if task not in task_names():
        raise ValueError(f"task is {task!r}, but must be one of {', '.join(task_names())}")
    if extract not in ("auto", "boxed"):
        raise ValueError(f"extract is auto or boxed, not {extract!r}")
    if rules not in ("strict", "passk"):
        raise ValueError(f"maze_rules are strict or passk, not {rules!r}")
    if task == "maze" and payload:
        gold = gold or ""  # the grid is all it takes
    if gold is None:
        if answer is not None:
            log.warning("no verdict: no gold answer (%s)", fault)
        return None
    payload = payload or json.dumps({"maze": gold} if task == "maze" else {})
    return task, gold, payload, text, "stop", extract, rules


def _reward(result: Any) -> float | None:
    if isinstance(result, Failure):
        log.warning("no verdict: %s: %s", result.kind, result.detail)
        return None
    reward = outcome(result.status)
    if reward is None:
        log.warning("no verdict: %s", result.detail)
    return reward


def _text(completion: Completion) -> str:
    """The text of a completion: of messages, the model's last one that says something."""
    if isinstance(completion, str):
        return completion
    texts = [said(message) for message in completion if message["role"] == "assistant"]
    return next((text for text in reversed(texts) if text), "")


def _asks_thinking(prompt: Any) -> bool:
    return any(THINK in m["content"] for m in chat(prompt) if m["role"] != "assistant")
