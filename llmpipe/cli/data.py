"""Commands that bring problems in and clean them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from llmpipe.cli.options import AsJson, DryRun, Force, Out, Seed, pairs
from llmpipe.cli.output import Stage
from llmpipe.core.errors import UserError

if TYPE_CHECKING:
    from llmpipe.core.run import Result

_PANEL = "Problems"


def register(app: typer.Typer) -> None:
    app.command("download", rich_help_panel=_PANEL)(download)
    app.command("prepare", rich_help_panel=_PANEL)(prepare)
    app.command("maze", rich_help_panel=_PANEL)(maze)
    app.command("filter", rich_help_panel=_PANEL)(filter_)
    app.command("dedupe", rich_help_panel=_PANEL)(dedupe)


def download(
    repos: Annotated[list[str], typer.Argument(help="Repositories, each ORG/NAME.")],
    repo_type: Annotated[
        Literal["model", "dataset"], typer.Option(help="What kind of repository.")
    ] = "model",
    revision: Annotated[str, typer.Option(help="Branch, tag or commit.")] = "main",
    include: Annotated[
        list[str] | None,
        typer.Option(
            help="Only files that match a pattern; may be repeated. Without it, a model comes "
            "without the files that hold its weights in another form."
        ),
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="No files that match.")] = None,
    local_dir: Annotated[Path | None, typer.Option(help="Instead of models/ORG/NAME.")] = None,
    endpoint: Annotated[
        list[str] | None,
        typer.Option(
            help="A mirror's URL; several are tried in order, for each file. "
            "Else $LLMPIPE_ENDPOINTS, else $HF_ENDPOINT, else the hub."
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="An access token, sent to every endpoint. Else the hub's own login, to the hub.",
            show_default=False,
        ),
    ] = None,
    max_workers: Annotated[int, typer.Option(min=1, help="Files fetched at a time.")] = 8,
    retries: Annotated[
        int, typer.Option(min=0, help="Times a file is asked for again before the next endpoint.")
    ] = 4,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds without a byte before a try is given up.")
    ] = 30.0,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Bring models or data sets from the hub or a mirror, verified and locked to a commit."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.core.mirrors import Retry
        from llmpipe.stages.download import Config, Network, run

        if local_dir and len(repos) > 1:
            raise UserError("--local-dir is for one repository", "leave it out, or give one")
        network = Network(
            endpoints=endpoint or (),
            token=token,
            workers=max_workers,
            timeout=timeout,
            retry=Retry(tries=1 + retries),
        )

        def bring(repo: str) -> Result:
            config = Config(
                repo=repo,
                repo_type=repo_type,
                revision=revision,
                include=tuple(include or ()),
                exclude=tuple(exclude or ()),
            )
            return run(config, stage.mode, local_dir=local_dir, network=network)

        stage.finish_each(bring, repos)


def prepare(
    source: Annotated[str, typer.Argument(help="A recipe's name, or a file or folder of rows.")],
    out: Out,
    task: Annotated[str | None, typer.Option(help="math or maze")] = None,
    prompt_key: Annotated[str | None, typer.Option(help="The column with the problem.")] = None,
    answer_key: Annotated[str | None, typer.Option(help="The column with the answer.")] = None,
    split: Annotated[str | None, typer.Option(help="The split to read.")] = None,
    limit: Annotated[int | None, typer.Option(help="The most problems to make.")] = None,
    seed: Seed = 0,
    recipe_arg: Annotated[
        list[str] | None,
        typer.Option(help="An option of the recipe's own, key=value; may be repeated."),
    ] = None,
    holdout: Annotated[
        int, typer.Option(help="Problems to set apart in OUT/test, never in OUT itself.")
    ] = 0,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Make problems of a known data set, a generator, or your own rows."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.stages.prepare import Config, run

        config = Config(
            source=source,
            task=task,
            prompt_key=prompt_key,
            answer_key=answer_key,
            split=split,
            limit=limit,
            seed=seed,
            recipe_args=pairs(recipe_arg, "--recipe-arg"),
            holdout=holdout,
        )
        stage.finish(run(config, out, stage.mode))


def maze(
    out: Out,
    size: Annotated[list[int], typer.Option(help="Cells along a side; may be repeated.")],
    count: Annotated[int, typer.Option(help="Mazes of each size.")] = 1000,
    seed: Seed = 0,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(help="Problems whose mazes must not come again, turned or mirrored."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Generate mazes: solvable, distinct under turning and mirroring, with worked answers."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.stages.maze import Config, run

        config = Config(sizes=tuple(sorted(set(size))), count=count, seed=seed)
        stage.finish(run(config, out, stage.mode, exclude=exclude or ()))


def filter_(
    problems: Annotated[Path, typer.Argument(help="Problems.")],
    out: Out,
    level: Annotated[
        str | None, typer.Option(help="Levels to keep: a list, or A:B over the number in them.")
    ] = None,
    difficulty: Annotated[
        str | None, typer.Option(help="Difficulties to keep, A:B; either end may be left out.")
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="A rule to drop rows by; may be repeated (all of them by default)."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Keep problems that can be checked and are of the wanted level and difficulty."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.stages.filter import RULES, Config, run

        config = Config(levels=level, difficulty=difficulty, drop=tuple(drop or RULES))
        stage.finish(run(config, problems, out, stage.mode))


def dedupe(
    problems: Annotated[list[Path], typer.Argument(help="Problems; the first has precedence.")],
    out: Out,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Held-out problems that must not be among them; may be repeated."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Merge problem sets, each problem once, none of them held out."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.stages.dedupe import Config, run

        stage.finish(run(Config(), problems, out, stage.mode, against=against or ()))
