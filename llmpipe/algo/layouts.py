"""Which column of someone else's rows holds what.

The layouts that need no keys:

- verl: what ``verl.trainer.main_generation`` writes, its input's columns and a list ``responses``.
- verl's dump of rollouts: a file a step under ``trainer.rollout_data_dir`` or
  ``validation_data_dir`` (``_dump_generations`` in ``verl/trainer/ppo/ray_trainer.py``). Its
  ``input`` is the whole prompt with the chat template's words in it; files without ``gts``, of
  older versions, have no gold answers.
- NeMo-Skills: the output of ``ns generate`` (``nemo_skills/inference/generate.py``), the input's
  fields and ``generation``.
- lm-evaluation-harness: ``samples_*.jsonl`` of ``--log_samples``. It has a row a filter, with the
  same responses in each.
- evalscope: ``reviews/MODEL/*.jsonl`` (``ReviewResult`` in ``evalscope/api/evaluator/cache.py``).
  Its ``predictions`` hold no gold answers.

A key names a column, or a way into it with dots ("reward_model.ground_truth"; numbers count the
items of a list).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Where a row has its gold answer, its response or responses, and its prompt.

    Of several ``prompts`` the first that a row has is taken; none means that rows have none, and
    each is a problem of its own. ``filter`` is a column that tells apart rows that repeat the same
    responses.
    """

    name: str
    answer: str
    response: str
    prompts: tuple[str, ...] = ()
    filter: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns to read, without those that the file may lack."""
        keys = [self.answer, self.response, *self.prompts, *([self.filter] if self.filter else ())]
        return list(dict.fromkeys(keys))


# Columns that a layout is known by, and where things are.
_LAYOUTS: tuple[tuple[frozenset[str], Keys], ...] = (
    (
        frozenset({"responses", "reward_model"}),
        Keys(
            name="verl",
            answer="reward_model.ground_truth",
            response="responses",
            prompts=("prompt",),
        ),
    ),
    (
        frozenset({"input", "output", "gts", "score", "step"}),
        Keys(name="verl's rollout dump", answer="gts", response="output", prompts=("input",)),
    ),
    (
        frozenset({"generation", "expected_answer"}),
        Keys(
            name="NeMo-Skills",
            answer="expected_answer",
            response="generation",
            prompts=("problem", "question", "messages"),
        ),
    ),
    (
        frozenset({"resps", "target", "doc"}),
        Keys(
            name="lm-evaluation-harness",
            answer="target",
            response="resps",
            prompts=(
                "doc.problem",
                "doc.question",
                "doc.Problem",
                "doc.Question",
                "doc.prompt",
                "arguments.gen_args_0.arg_0",
                "arguments.0.0",
            ),
            filter="filter",
        ),
    ),
    (
        frozenset({"sample_score", "target"}),
        Keys(
            name="evalscope",
            answer="target",
            response="sample_score.score.prediction",
            prompts=("input",),
        ),
    ),
)

_ANSWERS = ("answer", "final_answer", "expected_answer", "ground_truth", "gold", "gt", "target")
_RESPONSES = (
    *("response", "responses", "generation", "generations", "completion", "completions"),
    *("output", "outputs", "prediction"),
)
_PROMPTS = ("problem", "question", "prompt", "input", "messages")


def find_keys(
    columns: Sequence[str],
    *,
    answer: str | None = None,
    response: str | None = None,
    prompt: str | None = None,
) -> Keys:
    """Where rows with these columns have what is needed: as given, by a layout, by a usual name.

    Raises:
        KeyError: "answer" or "response", which can't be found.
    """
    have = set(columns)
    found = next((keys for known, keys in _LAYOUTS if known <= have), None)
    usual = found or Keys(
        name="rows",
        answer=next((c for c in _ANSWERS if c in have), ""),
        response=next((c for c in _RESPONSES if c in have), ""),
        prompts=tuple(c for c in _PROMPTS if c in have),
    )
    keys = Keys(
        name=usual.name,
        answer=answer or usual.answer,
        response=response or usual.response,
        prompts=(prompt,) if prompt else usual.prompts,
        filter=usual.filter,
    )
    for what, key in (("answer", keys.answer), ("response", keys.response)):
        if not key or not ({key, key.partition(".")[0]} & have):
            raise KeyError(what)
    return keys


def look_up(row: Row, key: str) -> Any:
    """What a row has under a key; None where the way ends early."""
    if key in row:
        return row[key]
    value: Any = row
    for part in key.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
