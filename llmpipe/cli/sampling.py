"""Commands that sample answers, judge them, and score them."""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    Rollouts,
    Samples,
    SampleSeeds,
    SamplingArg,
    Seed,
    System,
    Temperature,
    TensorParallel,
    TopP,
    Track,
    integers,
    json_object,
    pairs,
    values,
)
from llmpipe.cli.output import Stage
from llmpipe.core.errors import UserError

if TYPE_CHECKING:
    from llmpipe.core.run import Result

_PANEL = "Answers"
_OF_EVERY_STAGE = {"out", "track", "force", "as_json", "dry_run"}


def register(app: typer.Typer) -> None:
    app.command("rollout", rich_help_panel=_PANEL)(rollout)
    app.command("verify", rich_help_panel=_PANEL)(verify)
    app.command("eval", rich_help_panel=_PANEL)(eval_)


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
            engine_args=_engine_args(tensor_parallel_size, base_url, engine_arg),
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
        if not _stops_short(results):
            dropped = [result.dropped for result in results]
            judged = run(config, rollouts, out, stage.mode, problems=problems)
            # The rows of the file that could not be judged are news to whoever reads the last word.
            all_dropped = dict(sum(map(Counter, [*dropped, judged.dropped]), Counter()))
            results.append(dataclasses.replace(judged, dropped=all_dropped))
            if few := judged.figures.get("under_adv_k"):
                _say_few(few, judged.figures["problems"], adv_k)
        stage.finish(*results)


def eval_(
    source: Annotated[
        str, typer.Argument(help="A recipe or problems (with --model), rollouts, or verdicts.")
    ],
    out: Out,
    model: Annotated[
        str | None, typer.Option(help="A model's folder, or its hub id once downloaded.")
    ] = None,
    k: Annotated[str, typer.Option(help="The k of pass@k; a comma list.")] = "1,8",
    n: Annotated[
        int | None,
        typer.Option(
            "--n", "-n", help="Samples for each problem (twice the largest k by default)."
        ),
    ] = None,
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
    extract: Extract = "auto",
    maze_rules: MazeRules = "strict",
    problems: Problems = None,
    rollouts: Rollouts = None,
    track: Track = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Score a model by unbiased pass@k. What is missing is sampled and judged inside OUT.

    Another k or another way to read the answers scores the same samples again.
    """
    moot = _for_sampling(locals())
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        import llmpipe.stages.rollout as sampling
        import llmpipe.stages.score as scoring
        import llmpipe.stages.verify as judging
        from llmpipe.core.records import Problem, Rollout, Verdict

        stage.end_within(max_time)
        ks = integers(k, "--k")
        n = 2 * max(ks) if n is None else n
        settings = {"source": source, "model": model, "k": ks, "n": n, "temperature": temperature}
        settings |= {"top_p": top_p, "max_tokens": max_tokens, "seed": seed, "extract": extract}
        stage.track(track, job="eval", out=out, config=settings)
        results: list[Result] = []
        path, record = _source(source, out, stage, results)
        # Judging and scoring cost seconds: other settings make them again, and refuse nothing.
        cheap = dataclasses.replace(stage.mode, remake=True)
        if record is Problem and n < (most := max(ks)):
            raise UserError(f"pass@{most} needs {most} samples a problem", f"-n {most}")
        if record is Problem and not _stops_short(results):
            config = sampling.plan(
                engine=engine,
                model=_needed(model),
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
                engine_args=_engine_args(tensor_parallel_size, base_url, engine_arg),
                gpus=gpus,
            )
            results.append(sampling.run(config, path, out / "rollouts", stage.mode))
            path, record = out / "rollouts", Rollout
        elif record is not Problem and moot:
            typer.echo(
                f"{source} was sampled already: sampling options have no effect ({moot})", err=True
            )
        if record is Rollout and not _stops_short(results):
            judge = judging.Config(extract=extract, maze_rules=maze_rules)
            results.append(judging.run(judge, path, out / "verdicts", cheap, problems=problems))
            path = out / "verdicts"
        elif record is Verdict and (extract, maze_rules) != ("auto", "strict"):
            typer.echo(
                f"{source} was judged already: --extract and --maze-rules have no effect", err=True
            )
        if not _stops_short(results):
            score = scoring.Config(k=ks)
            made = scoring.run(score, path, out, cheap, problems=problems, rollouts=rollouts)
            results.append(made)
            if not as_json and not made.plan:
                _say_scores(made)
        stage.finish(*results)


def _say_few(few: int, problems: int, adv_k: int) -> None:
    """Why advantages are null; `eval` has no use for them, and doesn't say it."""
    typer.echo(
        f"advantages.passk is null for {few} of {problems} problems: "
        f"they have fewer than {adv_k} judged answers (--adv-k)",
        err=True,
    )


def _say_scores(made: Result) -> None:
    scores = {k: v for k, v in made.figures.items() if k.startswith("pass@")}
    for name, value in scores.items():
        typer.echo(f"{name:8} {'-' if value is None else f'{value:.4f}'}")
    n, errors = made.figures["n"], made.figures["verdict_errors"]
    counted = f"{n['min']} to {n['max']}" if isinstance(n, dict) else n
    left_out = f" ({errors} with status error left out)" if errors else ""
    typer.echo(f"{made.figures['problems']} problems, n {counted}{left_out}")


def _source(
    source: str, out: Path, stage: Stage, results: list[Result]
) -> tuple[Path, type[object]]:
    """What the score starts from; a recipe's problems are made first."""
    from llmpipe.core.artifact import MANIFEST, Artifact, record_of
    from llmpipe.core.plugins import load, names
    from llmpipe.core.records import Problem, ProblemScore, Rollout, Verdict

    if (out / MANIFEST).is_file() and not stage.mode.force:
        Artifact.open(out, ProblemScore)  # before anything is sampled into another's folder
    if source in names("recipes") and not Path(source).exists():
        import llmpipe.stages.prepare as prepare

        # The split that others are scored on, where the data set has one.
        config = prepare.Config(source=source, split=load("recipes", source).test_split)
        results.append(prepare.run(config, out / "problems", stage.mode))
        return out / "problems", Problem
    artifact = Artifact.open(Path(source), Problem, Rollout, Verdict)
    return artifact.path, record_of(artifact)


def _stops_short(results: list[Result]) -> bool:
    """Whether a dry run, or the end of the time, came before what the next step needs."""
    return any(result.plan or not result.complete for result in results)


def _for_sampling(given: Mapping[str, Any]) -> str:
    """The options of `eval_` that matter to sampling alone, as far as they aren't the defaults."""
    sampling = inspect.signature(rollout).parameters.keys() - _OF_EVERY_STAGE
    options = inspect.signature(eval_).parameters
    return ", ".join(
        f"--{name.replace('_', '-')}"
        for name in options
        if name in sampling and (given[name] or None) != (options[name].default or None)
    )


def _needed(model: str | None) -> str:
    if model is None:
        raise UserError("problems are scored with a model", "--model ORG/NAME")
    return model


def _engine_args(
    tensor_parallel_size: int | None,
    base_url: str | None,
    rest: list[str] | None,
) -> dict[str, str]:
    if tensor_parallel_size is not None and tensor_parallel_size < 1:
        raise UserError(
            f"--tensor-parallel-size is {tensor_parallel_size}, but must be at least 1",
            "--tensor-parallel-size 1",
        )
    named = {"tensor_parallel_size": tensor_parallel_size, "base_url": base_url}
    own = [f"{name}={value}" for name, value in named.items() if value is not None]
    return pairs([*(rest or []), *own], "--engine-arg")
