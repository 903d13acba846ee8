"""Commands that choose among answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from llmpipe.cli.options import AsJson, DryRun, Force, Out, Problems, Rollouts, Seed, values
from llmpipe.cli.output import Stage

_PANEL = "Training data"
_LINES = 12  # of a table by level or source

Drop = Annotated[
    list[str] | None,
    typer.Option(
        help="A rule to drop right answers by, not all of them; may be repeated. Rules: "
        "several_boxes, loops, other_script."
    ),
]
Keep = Annotated[
    list[str] | None, typer.Option(help="A rule not to drop answers by; may be repeated.")
]


def register(app: typer.Typer) -> None:
    app.command("select", rich_help_panel=_PANEL)(select)
    app.command("build-pairs", rich_help_panel=_PANEL)(build_pairs)


def select(
    verdicts: Annotated[Path, typer.Argument(help="Verdicts.")],
    out: Out,
    per_problem: Annotated[
        int | None, typer.Option(help="The most answers to keep of a problem (all by default).")
    ] = None,
    prefer: Annotated[
        Literal["shortest", "longest", "random", "diverse", "reward"] | None,
        typer.Option(
            help="Which ones. diverse: no two near-identical, each the least like those before.",
            show_default="shortest; reward with --replace",
        ),
    ] = None,
    reward_weight: Annotated[
        list[str] | None,
        typer.Option(
            help="For reward and diverse: outcome, format, length or action=WEIGHT; may be "
            "repeated (the sum of all by default)."
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="For diverse: how alike near-identical answers are, 0 to 1.")
    ] = 0.8,
    pass_rate: Annotated[
        str | None,
        typer.Option(help="Only problems solved so often: A < rate < B as A:B, as in filter."),
    ] = None,
    per_bin: Annotated[
        int | None, typer.Option(help="The most problems of each tenth of the pass rate.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(help="The most answers in all, those of rarely solved problems first."),
    ] = None,
    drop: Drop = None,
    keep: Keep = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Make problems instead: all of them, the best answer in the place of the set's "
            "own solution, which stays where no answer was right.",
        ),
    ] = False,
    keep_old: Annotated[
        bool,
        typer.Option(help="With --replace: whether it stays there, or such problems have none."),
    ] = True,
    seed: Seed = 0,
    rollouts: Rollouts = None,
    problems: Problems = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Rejection sampling: keep the right, complete answers."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.stages.select import RULES, Config, run

        config = Config(
            per_problem=per_problem,
            prefer=prefer or ("reward" if replace else "shortest"),
            seed=seed,
            reward_weights=values(reward_weight, "--reward-weight") or None,
            threshold=threshold,
            pass_rate=pass_rate,
            per_bin=per_bin,
            limit=limit,
            drop=tuple(drop or RULES),
            keep=tuple(keep or ()),
            replace=replace,
            keep_old=keep_old,
        )
        result = run(config, verdicts, out, stage.mode, rollouts=rollouts, problems=problems)
        for line in _coverage(result.figures):
            typer.echo(line, err=True)
        stage.finish(result)


def build_pairs(
    verdicts: Annotated[Path, typer.Argument(help="Verdicts.")],
    out: Out,
    per_problem: Annotated[
        int | None, typer.Option(help="The most pairs of a problem (all by default).")
    ] = None,
    max_length_ratio: Annotated[
        float, typer.Option(help="How many times as long as the other an answer may be.")
    ] = 1.5,
    rejected: Annotated[
        list[str] | None,
        typer.Option(
            help="What may be rejected: wrong (read, and wrong) or no_answer; may be repeated.",
            show_default="wrong",
        ),
    ] = None,
    drop: Drop = None,
    keep: Keep = None,
    rollouts: Rollouts = None,
    problems: Problems = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Preference pairs for DPO: a right answer over a wrong one of like length."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.stages.build_pairs import RULES, Config, run

        config = Config(
            per_problem=per_problem,
            max_length_ratio=max_length_ratio,
            rejected=tuple(rejected or ("wrong",)),
            drop=tuple(drop or RULES),
            keep=tuple(keep or ()),
        )
        stage.finish(run(config, verdicts, out, stage.mode, rollouts=rollouts, problems=problems))


def _coverage(figures: Mapping[str, Any]) -> Iterator[str]:
    """How many problems are left after each step, and of which kind they are."""
    steps = {
        "right": "with a right answer",
        "pass_rate": "with a pass rate in range",
        "complete": "with one that ended by itself",
        "faultless": "with one that no rule drops",
        "per_bin": "within their tenth's share",
        "limit": "within the limit",
    }
    left = figures.get("problems", 0)
    if not left:
        return
    yield f"{left:>9} problems"
    for step, count in figures["by_step"].items():
        yield f"{count:>9} {steps[step]}" + (f" ({count - left})" if count < left else "")
        left = count
    for key in ("by_level", "by_source", "by_pass_rate"):
        counts = figures.get(key, {})
        if len(counts) > 1:
            yield f"{'problems':>9} {'solved':>7} {'kept':>7}  {key.replace('_', ' ')}"
            for name, count in list(counts.items())[:_LINES]:
                yield f"{count['problems']:>9} {count['solved']:>7} {count['kept']:>7}  {name}"
            if len(counts) > _LINES:
                yield f"{'...':>9} {len(counts) - _LINES} more in the manifest"
