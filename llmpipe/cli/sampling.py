"""Commands that sample answers and judge them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from llmpipe.cli.options import (
    AsJson,
    BaseUrl,
    ChatTemplate,
    ChatTemplateKwargs,
    DryRun,
    Engine,
    EngineArg,
    Extract,
    FewShot,
    Force,
    Gpus,
    Limit,
    LogProbs,
    MaxTime,
    MaxTokens,
    MaxTurns,
    MazeRules,
    Model,
    Out,
    Problems,
    PromptTemplate,
    Samples,
    SampleSeeds,
    SamplingArg,
    Seed,
    System,
    Temperature,
    TensorParallel,
    TopP,
    Track,
    engine_args,
    json_object,
    values,
)
from llmpipe.cli.output import Stage, stops_short
from llmpipe.core.errors import UserError

if TYPE_CHECKING:
    from llmpipe.core.run import Result

_PANEL = "Answers"


def register(app: typer.Typer) -> None:
    app.command("rollout", rich_help_panel=_PANEL)(rollout)
    app.command("verify", rich_help_panel=_PANEL)(verify)


def rollout(
    problems: Annotated[Path, typer.Argument(help="Problems.")],
    out: Out,
    model: Model,
    n: Samples = 8,
    temperature: Temperature = 1.0,
    top_p: TopP = 0.95,
    max_tokens: MaxTokens = 2048,
    seed: Seed = 0,
    engine: Engine = "vllm",
    gpus: Gpus = None,
    tensor_parallel_size: TensorParallel = None,
    engine_arg: EngineArg = None,
    base_url: BaseUrl = None,
    sampling_arg: SamplingArg = None,
    sample_seeds: SampleSeeds = True,
    logprobs: LogProbs = False,
    chat_template: ChatTemplate = None,
    chat_template_kwargs: ChatTemplateKwargs = None,
    few_shot: FewShot = None,
    prompt_template: PromptTemplate = None,
    system: System = None,
    max_turns: MaxTurns = 1,
    limit: Limit = None,
    max_time: MaxTime = None,
    track: Track = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Sample answers to every problem. Killed, it goes on; a larger n adds to what is there."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.stages.rollout import plan, run

        stage.end_within(max_time)
        config = plan(
            engine=engine,
            model=model,
            n=n,
            limit=limit,
            temperature=temperature,
            top_p=top_p,
            max_tokens=max_tokens,
            seed=seed,
            system=system,
            max_turns=max_turns,
            few_shot=few_shot,
            prompt_template=prompt_template,
            logprobs=logprobs,
            sample_seeds=sample_seeds,
            sampling_args=values(sampling_arg, "--sampling-arg"),
            chat_template=chat_template,
            chat_template_kwargs=json_object(chat_template_kwargs, "--chat-template-kwargs"),
            engine_args=engine_args(tensor_parallel_size, base_url, engine_arg),
            gpus=gpus,
        )
        stage.track(track, job="rollout", out=out, config=config)
        stage.finish(run(config, problems, out, stage.mode))


def verify(
    rollouts: Annotated[
        Path, typer.Argument(help="Rollouts, or a file of answers that another tool sampled.")
    ],
    out: Out,
    extract: Extract = "auto",
    maze_rules: MazeRules = "strict",
    adv_k: Annotated[int, typer.Option(help="The k of the advantages for pass@k.")] = 4,
    answer_key: Annotated[
        str | None,
        typer.Option(help="Of a file: its column of gold answers; a.b is the b inside a."),
    ] = None,
    response_key: Annotated[
        str | None, typer.Option(help="Of a file: its column of responses, one or a list.")
    ] = None,
    prompt_key: Annotated[
        str | None, typer.Option(help="Of a file: its column of problems, a text or messages.")
    ] = None,
    engine: Annotated[
        Literal["local", "ray"],
        typer.Option(help="Where the judges run; ray: on all cores of a cluster."),
    ] = "local",
    problems: Problems = None,
    track: Track = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Judge every answer by its task's rule: a status, the answer read, a reason, rewards.

    A file of verl, NeMo-Skills, lm-evaluation-harness or evalscope needs no keys; its problems and
    rollouts are put inside OUT.
    """
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        import llmpipe.stages.generations as taking
        from llmpipe.core.artifact import Artifact
        from llmpipe.core.records import Rollout
        from llmpipe.core.sources import is_foreign
        from llmpipe.stages.verify import Config, run

        keys = taking.Config(
            answer_key=answer_key, response_key=response_key, prompt_key=prompt_key
        )
        config = Config(extract=extract, maze_rules=maze_rules, adv_k=adv_k, engine=engine)
        stage.track(track, job="verify", out=out, config=config)
        results: list[Result] = []
        if is_foreign(rollouts):
            if problems:
                raise UserError(
                    f"{rollouts} is no artifact: --problems has no effect", "leave --problems out"
                )
            results += taking.run(keys, rollouts, out, stage.mode)
            rollouts = out / "rollouts"
        elif keys != taking.Config():
            Artifact.open(rollouts, Rollout)  # if nothing is there, that is what's wrong
            raise UserError(f"{rollouts} is no file of answers: it takes no keys", "leave them out")
        if not stops_short(results):
            dropped = [result.dropped for result in results]
            judged = run(config, rollouts, out, stage.mode, problems=problems)
            # The rows of the file that could not be judged are news to whoever reads the last word.
            all_dropped = dict(sum(map(Counter, [*dropped, judged.dropped]), Counter()))
            results.append(dataclasses.replace(judged, dropped=all_dropped))
            if few := judged.figures.get("under_adv_k"):
                _say_few(few, judged.figures["problems"], adv_k)
        stage.finish(*results)


def _say_few(few: int, problems: int, adv_k: int) -> None:
    """Why advantages are null; `eval` has no use for them, and doesn't say it."""
    typer.echo(
        f"advantages.passk is null for {few} of {problems} problems: "
        f"they have fewer than {adv_k} judged answers (--adv-k)",
        err=True,
    )
