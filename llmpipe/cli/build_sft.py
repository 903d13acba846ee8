"""The build-sft command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from llmpipe.cli.options import (
    AsJson,
    DryRun,
    Force,
    Out,
    Problems,
    PromptTemplate,
    Rollouts,
    Seed,
    System,
)
from llmpipe.cli.output import Stage

_ROWS = "Rows that llmpipe did not write"
_MASK = "Masking by token"


def build_sft(
    source: Annotated[
        Path,
        typer.Argument(
            help="Selected rollouts, problems with solutions, or a file or folder of chats."
        ),
    ],
    out: Out,
    turns: Annotated[
        Literal["merged", "split", "last"],
        typer.Option(
            help="merged: one sample, loss on every assistant turn; split: one sample a turn; "
            "last: one sample, loss on the last turn."
        ),
    ] = "merged",
    style: Annotated[
        Literal["single", "retry", "chain"],
        typer.Option(
            help="retry: a wrong answer and its feedback before the right one; chain: several "
            "problems of rising difficulty."
        ),
    ] = "single",
    chain_length: Annotated[int, typer.Option(help="Problems of a chain.")] = 3,
    seed: Seed = 0,
    system: System = None,
    keep_few_shot: Annotated[
        bool, typer.Option("--keep-few-shot", help="Keep the rollout's worked examples.")
    ] = False,
    prompt_template: PromptTemplate = None,
    fallback: Annotated[
        Literal["gold"] | None,
        typer.Option(help="gold: add the set's own solution where no answer was right."),
    ] = None,
    problems: Problems = None,
    rollouts: Rollouts = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(help="Where the verdicts are now, if they were moved.", show_default=False),
    ] = None,
    mask_mastered: Annotated[
        float | None,
        typer.Option(
            help="No loss on tokens that the model gave at least this probability, such as 0.99.",
            rich_help_panel=_MASK,
        ),
    ] = None,
    target_entropy: Annotated[
        float | None,
        typer.Option(
            help="But only if the set's entropy is under this, in nats a token, such as 0.2.",
            rich_help_panel=_MASK,
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="The folder or id of the model that was sampled.", rich_help_panel=_MASK),
    ] = None,
    messages_key: Annotated[
        str | None, typer.Option(help="The column with all turns.", rich_help_panel=_ROWS)
    ] = None,
    prompt_key: Annotated[
        str | None, typer.Option(help="The column with the prompt.", rich_help_panel=_ROWS)
    ] = None,
    response_key: Annotated[
        str | None, typer.Option(help="The column with the response.", rich_help_panel=_ROWS)
    ] = None,
    system_key: Annotated[
        str | None, typer.Option(help="The column with a system message.", rich_help_panel=_ROWS)
    ] = None,
    tools_key: Annotated[
        str | None, typer.Option(help="The column with tools.", rich_help_panel=_ROWS)
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="The split to read.", rich_help_panel=_ROWS)
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Build conversations with a loss mask by turn."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.core.paths import find_model
        from llmpipe.core.prompt_files import read_prompt_template
        from llmpipe.stages.build_sft import Config, run

        keys = {
            "messages": messages_key,
            "prompt": prompt_key,
            "response": response_key,
            "system": system_key,
            "tools": tools_key,
        }
        config = Config(
            turns=turns,
            style=style,
            chain_length=chain_length,
            seed=seed,
            system=system,
            keep_few_shot=keep_few_shot,
            prompt_template=read_prompt_template(prompt_template),
            fallback=fallback,
            mask_mastered=mask_mastered,
            target_entropy=target_entropy,
            keys={name: key for name, key in keys.items() if key},
            split=split,
        )
        result = run(
            config,
            source,
            out,
            stage.mode,
            problems=problems,
            verdicts=verdicts,
            rollouts=rollouts,
            tokenizer=None if tokenizer is None else find_model(tokenizer),
        )
        stage.finish(result)
