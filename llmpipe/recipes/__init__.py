"""Data sets, one a file, each with a ``RECIPE``; and what a source's name stands for."""

from __future__ import annotations

import difflib
import logging
from dataclasses import dataclass
from pathlib import Path

from llmpipe.core import plugins
from llmpipe.core.errors import UserError
from llmpipe.core.paths import downloaded_repo
from llmpipe.core.protocols import Recipe
from llmpipe.core.sources import refuse_root

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A recipe, a path, or both: a data set's recipe and the folder it reads."""

    name: str | None = None
    recipe: Recipe | None = None
    path: Path | None = None


def resolve(source: str, root: Path = Path(), *, plain: bool = False) -> Origin:
    """What ``source`` stands for: a recipe's name, a path, or the id of a repo on the hub.

    One bare word that names a recipe is the recipe, even where a path is called so; otherwise a
    path wins. A folder that ``llmpipe download`` filled is read by its repo's recipe, unless it is
    to be read as ``plain`` rows. Data sets are looked for at ``root/datasets/ORG/NAME``.

    Raises:
        UserError: it stands for nothing, or for a data set that isn't there.
    """
    if not source:
        raise UserError("the source's name is empty", "llmpipe prepare gsm8k -o OUT")
    path, word = Path(source), source.replace("_", "-")
    names = plugins.names("recipes")
    if word in names:
        if path.exists():
            log.info("taking the recipe %s; the path is ./%s", word, source)
        return _of_recipe(word, root)
    by_repo = {repo: name for name in names for repo in _repos(plugins.load("recipes", name))}
    if path.exists():
        repo = downloaded_repo(path)
        if plain or repo is None or repo not in by_repo:
            refuse_root(path)
            return Origin(path=path)
        log.info("%s is %s: taking its recipe", path, repo)
        return _of_recipe(by_repo[repo], root, path)
    if source in by_repo:
        return _of_recipe(by_repo[source], root, repo=source)
    return Origin(path=_by_id(source, root, names))


def _by_id(source: str, root: Path, recipes: list[str]) -> Path:
    """The folder of a downloaded data set that has no recipe."""
    if source.count("/") == 1 and not source.startswith((".", "/", "~")):
        folder = root / "datasets" / source
        if folder.is_dir():
            return folder
        raise UserError(
            f"neither {source} nor {folder} exists",
            f"check the path, or llmpipe download {source} --repo-type dataset",
        )
    near = difflib.get_close_matches(source.replace("_", "-"), recipes, n=3)
    raise UserError(
        f"{source} is neither a recipe nor a file or folder",
        (f"{' or '.join(near)}; " if near else "") + "llmpipe prepare --list-recipes says all",
    )


def _repos(recipe: Recipe) -> list[str]:
    return [recipe.repo, *recipe.also] if recipe.repo else []


def _of_recipe(
    name: str, root: Path, path: Path | None = None, *, repo: str | None = None
) -> Origin:
    """The recipe with the folder it reads: ``path``, or that of ``repo`` or its own repo."""
    recipe: Recipe = plugins.load("recipes", name)
    if recipe.repo is None:
        return Origin(name=name, recipe=recipe)
    repo = repo or recipe.repo
    folder = path or root / "datasets" / repo
    if not folder.is_dir():
        raise UserError(
            f"the recipe {name} reads {folder}, which does not exist",
            f"llmpipe download {repo} --repo-type dataset",
        )
    downloaded_repo(folder)
    return Origin(name=name, recipe=recipe, path=folder)
