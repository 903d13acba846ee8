"""What an eval starts from: recipes, problems, answers, verdicts, one or several."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import llmpipe.stages.download as download
import llmpipe.stages.generations as generations
import llmpipe.stages.prepare as prepare
from llmpipe.cli.output import stops_short
from llmpipe.cli.presets import recipe_name
from llmpipe.core.artifact import MANIFEST, Artifact, record_of
from llmpipe.core.errors import UserError
from llmpipe.core.paths import downloaded_repo
from llmpipe.core.plugins import load, names
from llmpipe.core.protocols import Recipe
from llmpipe.core.records import Problem, Rollout, Verdict
from llmpipe.core.run import Mode, Result, check_out
from llmpipe.recipes import resolve


@dataclasses.dataclass(frozen=True, kw_only=True)
class Keys:
    """Columns of a file that no stage made; those that are None go by its layout."""

    answer: str | None = None
    response: str | None = None
    prompt: str | None = None


def split(text: str) -> list[str]:
    """The sources in a comma list; a path may have commas in its name."""
    if text and Path(text).exists():
        return [text]
    sources = [part.strip() for part in text.split(",") if part.strip()]
    if not sources:
        raise UserError("no source is given", "llmpipe eval aime24,math500 -o OUT --model M")
    return sources


def folders(sources: list[str], out: Path) -> dict[str, Path]:
    """Where each of several sources is scored: in a folder of its own name.

    Raises:
        UserError: two would have the same, or there is an eval of one source already.
    """
    if (out / MANIFEST).is_file():
        raise UserError(f"{out} is no folder for several evals", "choose another -o")
    found: dict[str, Path] = {}
    for source in sources:
        path = Path(source)
        path = out / (path.resolve() if path.exists() else Path(recipe_name(source))).name
        if path in found.values():
            raise UserError(f"two sources would be scored in {path}", "give them one by one")
        found[source] = path
    return found


def begin(
    source: str, out: Path, mode: Mode, results: list[Result], model: str | None, keys: Keys
) -> tuple[Path, type[object]]:
    """The artifact that is to be sampled, judged or scored, and what it holds.

    A recipe's data set is brought where it is missing, and its problems are made; so are those of
    a file, if there is a model to answer them. Without one it holds answers, and problems and
    rollouts are made of it. What was done is added to ``results``.
    """
    check_out(out, "score", force=mode.force)  # before anything is sampled into it
    path = Path(source)
    if (path / MANIFEST).is_file():
        if keys != Keys():
            raise UserError(f"{source} is an artifact: it takes no keys", "leave them out")
        artifact = Artifact.open(path, Problem, Rollout, Verdict)
        return artifact.path, record_of(artifact)
    repo = downloaded_repo(path) if path.is_dir() else None
    if path.exists() and repo is None and model is None:
        taken = generations.Config(
            answer_key=keys.answer, response_key=keys.response, prompt_key=keys.prompt
        )
        results += generations.run(taken, path, out, mode, stage="score")
        return out / "rollouts", Rollout
    name, recipe = _recipe(repo or source)
    unfinished = path.parent / f"{path.name}.partial"
    if recipe is None and (model is None or unfinished.exists()):
        if not path.exists() and not unfinished.exists() and "/" not in source:
            resolve(source)  # says which recipes have such a name
        Artifact.open(path)  # says what is wrong with it
    if model is None:
        raise UserError("problems are scored with a model", "--model ORG/NAME")
    if keys.response:
        raise UserError(f"{source} is answered by --model", "leave --response-key out")
    if recipe and recipe.repo and repo is None:
        # Its own repo, or another of the same layout that was named.
        _bring(source if source == name and "/" in source else recipe.repo, mode, results)
    if not stops_short(results):
        config = prepare.Config(
            source=source if path.exists() else name,
            # The split that others are scored on, where the data set has one.
            split=recipe.test_split if recipe else None,
            prompt_key=keys.prompt,
            answer_key=keys.answer,
        )
        results.append(prepare.run(config, out / "problems", mode))
    return out / "problems", Problem


def _recipe(source: str) -> tuple[str, Recipe | None]:
    """A recipe by its name, or by a repo that it reads; the name that `prepare` knows it by."""
    word = recipe_name(source).replace("_", "-")
    known = names("recipes")
    if word in known:
        return word, load("recipes", word)
    for each in known:
        recipe: Recipe = load("recipes", each)
        if source in (recipe.repo, *recipe.also):
            return source, recipe
    return source, None


def _bring(repo: str, mode: Mode, results: list[Result]) -> None:
    """Download a data set that is missing or unfinished; what is there is left alone."""
    folder = Path("datasets", repo)
    ours = folder / ".llmpipe"
    if folder.is_dir() and (not ours.is_dir() or (ours / MANIFEST).is_file()):
        return
    config = download.Config(repo=repo, repo_type="dataset")
    results.append(download.run(config, dataclasses.replace(mode, force=False, remake=False)))
