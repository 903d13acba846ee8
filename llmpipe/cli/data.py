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
    max_workers: Annotated[int, typer.Option(min=1, max=64, help="Files fetched at a time.")] = 8,
    retries: Annotated[
        int,
        typer.Option(
            min=0, max=1000, help="Times a file is asked for again before the next endpoint."
        ),
    ] = 4,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=3600, help="Seconds without a byte before a try is given up."),
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


def _say_recipes(wanted: bool) -> None:
    if not wanted:
        return
    from llmpipe.core.plugins import about, names

    for name in names("recipes"):
        typer.echo(f"{name}: {about('recipes', name)}")
    raise typer.Exit


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
    list_recipes: Annotated[
        bool,
        typer.Option(
            "--list-recipes", callback=_say_recipes, is_eager=True, help="Say which there are."
        ),
    ] = False,
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
    size: Annotated[
        list[int] | None, typer.Option(help="Cells along a side; may be repeated.")
    ] = None,
    count: Annotated[
        int | None, typer.Option(help="Mazes of each size.", show_default="1000")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="passk: sizes and counts of Pass@k Training, as OUT/train and OUT/test."),
    ] = None,
    solution_style: Annotated[
        Literal["moves", "coordinates", "search", "spelled"],
        typer.Option(
            help="How the worked answers are told; spelled: cell by cell, for small models."
        ),
    ] = "moves",
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
        from llmpipe.stages.maze import Config, run, run_preset

        if preset:
            if size or count:
                raise UserError(
                    "a preset has its own sizes and counts", "leave --size and --count out"
                )
            parts = run_preset(
                preset,
                out,
                stage.mode,
                seed=seed,
                solution_style=solution_style,
                exclude=exclude or (),
            )
            stage.finish_all(list(parts))
        if not size:
            raise UserError("no size is given", "--size 9, or --preset passk")
        config = Config(
            sizes=tuple(sorted(set(size))),
            count=1000 if count is None else count,
            seed=seed,
            solution_style=solution_style,
        )
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
    pass_rate: Annotated[
        str | None,
        typer.Option(
            help="Pass rates to keep, A < rate < B as A:B, the ends not among them; where one is "
            "left out it is 0 or 1. What the model always or never solves goes. Needs --verdicts."
        ),
    ] = None,
    verdicts: Annotated[
        Path | None, typer.Option(help="Verdicts on a rollout of these problems.")
    ] = None,
    min_samples: Annotated[
        int | None,
        typer.Option(
            help="The fewest judged samples to go by (by default as many as were asked for)."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="A rule to drop rows by, not all of them; may be repeated. Rules: malformed, "
            "prompt_too_long, answer_unparsable, answer_unverifiable, and for task math "
            "multiple_choice, multiple_choice_value, proof, answer_empty, multi_question, "
            "open_ended, needs_figure, answer_impossible, answer_prose."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="A rule not to drop rows by; may be repeated. With multiple_choice_value the "
            "options are cut off such problems, which get another id."
        ),
    ] = None,
    max_prompt_tokens: Annotated[
        int | None,
        typer.Option(help="The longest problem in tokens (8,000 characters by default)."),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="The folder or id of the model that counts tokens.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Keep problems that can be checked and are of the wanted level and difficulty."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.core.paths import find_model
        from llmpipe.stages.filter import RULES, Config, run

        config = Config(
            levels=level,
            difficulty=difficulty,
            pass_rate=pass_rate,
            min_samples=min_samples,
            drop=tuple(drop or RULES),
            keep=tuple(keep or ()),
            max_prompt_tokens=max_prompt_tokens,
        )
        folder = None if tokenizer is None else find_model(tokenizer)
        stage.finish(run(config, problems, out, stage.mode, verdicts=verdicts, tokenizer=folder))


def dedupe(
    problems: Annotated[list[Path], typer.Argument(help="Problems; the first has precedence.")],
    out: Out,
    near: Annotated[
        bool, typer.Option(help="Find problems said in other words, too, with the same numbers.")
    ] = True,
    threshold: Annotated[
        float, typer.Option(help="The share of their words that such problems have in common.")
    ] = 0.6,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Held-out problems that must not be among them; may be repeated."),
    ] = None,
    keep_conflicts: Annotated[
        bool,
        typer.Option(
            "--keep-conflicts", help="Keep one row of a problem whose answers contradict."
        ),
    ] = False,
    drop_templates: Annotated[
        bool,
        typer.Option(
            "--drop-templates", help="Drop held-out problems with other numbers in them, too."
        ),
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Merge problem sets, each problem once, none of them held out."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.stages.dedupe import Config, run

        config = Config(
            near=near,
            threshold=threshold,
            keep_conflicts=keep_conflicts,
            drop_templates=drop_templates,
        )
        stage.finish(run(config, problems, out, stage.mode, against=against or ()))
