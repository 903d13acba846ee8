"""The block of figures that a model's card has on the hub: ``model-index`` in its front matter.

The layout is the hub's (huggingface_hub's `EvalResult` and `eval_results_to_model_index` make it).
Nothing is sent anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, cast

from llmpipe.core import fs, plugins
from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Recipe
from llmpipe.reports.runs import Run, Step

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

_KEY = "model-index"
# The key at the margin, and all lines under it: indented, empty, or items of its list.
_BLOCK = re.compile(rf"^{_KEY}[ \t]*:.*\n(?:(?:[ \t]+.*|-.*|\r?)\n)*", re.MULTILINE)
_ARGS = ("temperature", "top_p", "max_tokens", "max_turns", "few_shot", "extract", "maze_rules")


def publish(runs: Sequence[Run], path: Path) -> None:
    """Write the figures to the card at ``path``; its text, and its other fields, stay as they are.

    Figures that the card has already are kept, but for those of the same data set and kind.

    Raises:
        UserError: the runs are of several models, or the card can't be read, merged or written.
    """
    models = sorted({run.model for run in runs})
    if len(models) > 1:
        raise UserError(
            f"a card is of one model, but the runs are of {', '.join(models)}",
            "give the runs of one model",
        )
    try:
        text = path.read_bytes().decode("utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"{path} can't be read: {e}", "--publish-card README.md") from None
    try:
        fs.write(path, merged(text, runs, str(path)).encode())
    except OSError as e:
        raise UserError(f"can't write {path}: {e.strerror}", "--publish-card README.md") from None


def merged(card: str, runs: Sequence[Run], what: str) -> str:
    """The text of a card with the figures of runs of one model in its head.

    Raises:
        UserError: the head of the card, ``what``, is no YAML, or has figures of several models; or
            the runs have no figure for it.
    """
    import yaml
    from huggingface_hub import CardData, ModelCard
    from huggingface_hub.repocard import REGEX_YAML_BLOCK
    from huggingface_hub.repocard_data import eval_results_to_model_index

    front = REGEX_YAML_BLOCK.match(card)
    line = "\r\n" if "\r\n" in card else "\n"
    head = front[2] + line if front else ""
    old = _model_index(head, what)
    name = old["name"] if old else PurePath(runs[0].model).name
    figures = [result for run in runs for result in eval_results(run)]
    if not figures:
        raise UserError("no pass@k can be said of these runs", "llmpipe eval ... --k 1")
    (new,) = eval_results_to_model_index(name, figures)
    if old:
        new = {**old, "results": _with(old["results"], new["results"])}
    data = CardData()
    data[_KEY] = [new]
    block = data.to_yaml(line_break=line) + line
    found = _BLOCK.search(head)
    if found:
        head = head[: found.start()] + block + head[found.end() :]
    else:
        head += block
    whole = f"---{line}{head}---{line}{card[front.end() :] if front else card}"
    try:
        if (old and not found) or ModelCard(whole).data.get("model_name") != name:
            raise ValueError("its layout is not one line a field")
    except (ValueError, yaml.YAMLError) as e:
        reason = " ".join(str(e).split())
        raise UserError(
            f"can't put figures into {what}: {reason}", "mend its front matter"
        ) from None
    return whole


def eval_results(run: Run) -> list[EvalResult]:
    """pass@k of a run, for each k that can be said, as the hub has it."""
    from huggingface_hub import EvalResult

    settings = run.results["settings"]
    args = {name: settings[name] for name in _ARGS if settings.get(name) is not None}
    tasks = sorted(run.results["by"].get("task", {}))
    dataset = _dataset(run)
    found = []
    for name, metric in run.results["metrics"].items():
        if metric["value"] is None or not name.startswith("pass@"):
            continue
        found.append(
            EvalResult(
                task_type="text-generation",
                task_name=", ".join(tasks) or None,
                **dataset,
                metric_type=name,
                metric_name=name,
                metric_value=metric["value"],
                metric_args={
                    "n": run.results["n"],
                    "problems": run.results["problems"],
                    "confidence": run.results["intervals"]["confidence"],
                    "new_problems": [metric["low"], metric["high"]],
                    **_again(metric),
                    **args,
                },
            )
        )
    return found


def _again(metric: Mapping[str, Any]) -> dict[str, Any]:
    """The interval for the same problems; greedy answers have none."""
    if metric["low_here"] is None:
        return {}
    return {"same_problems": [metric["low_here"], metric["high_here"]]}


def _dataset(run: Run) -> dict[str, Any]:
    """What the problems are, as far as the steps before say it."""
    made = [step for step in run.steps if step.stage in ("prepare", "maze") and not step.gone]
    name = ", ".join(sorted(run.results["by"].get("source", {}))) or "unknown"
    found: dict[str, Any] = {"dataset_type": name, "dataset_name": name}
    found["dataset_args"] = {"problem_set": run.results["settings"].get("problem_set")}
    if len(made) != 1:
        return found
    recipe = _recipe(made[0])
    if recipe and recipe.repo:
        found |= {"dataset_type": recipe.repo, "dataset_split": recipe.split}
    for download in made[0].downloads:
        found |= {"dataset_type": download.repo, "dataset_revision": download.commit}
    if split := made[0].config.get("split"):
        found["dataset_split"] = split
    return found


def _recipe(step: Step) -> Recipe | None:
    """The recipe that made a step's problems, if one did."""
    names = (part.partition("/") for part in step.plugins)
    name = next((name for room, _, name in names if room == "recipes"), None)
    try:
        return cast(Recipe, plugins.load("recipes", name)) if name else None
    except UserError:  # of a package that is not here
        return None


def _model_index(head: str, what: str) -> dict[str, Any] | None:
    """What the head of a card has under the key, if it has it."""
    import yaml

    try:
        loaded = yaml.safe_load(head) or {}
        listed = loaded.get(_KEY)
        if listed is None:
            return None
        (only,) = listed
        if not isinstance(only["name"], str) or not all(map(_is_result, only["results"])):
            raise TypeError
    except (yaml.YAMLError, AttributeError):
        raise UserError(
            f"the front matter of {what} is no YAML mapping", "mend it by hand"
        ) from None
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"the {_KEY} of {what} is not that of one model", "mend it by hand, or take it out"
        ) from None
    whole: dict[str, Any] = only
    return whole


def _is_result(result: Mapping[str, Any]) -> bool:
    return bool(result["dataset"]) and all("type" in metric for metric in result["metrics"])


def _with(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The results of both; of one kind of figure of one data set the new one."""
    found = [dict(result) for result in old]
    for result in new:
        same = next((r for r in found if _place(r) == _place(result)), None)
        if same is None:
            found.append(dict(result))
            continue
        types = {metric["type"] for metric in result["metrics"]}
        kept = [metric for metric in same["metrics"] if metric["type"] not in types]
        same |= {**result, "metrics": [*kept, *result["metrics"]]}
    return found


def _place(result: Mapping[str, Any]) -> tuple[Any, ...]:
    dataset = result["dataset"]
    keys = ("type", "config", "split", "revision")
    return (result.get("task", {}).get("type"), *(dataset.get(key) for key in keys))
