"""The command that scores models: what is missing is brought, sampled and judged."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    Out,
    Problems,
    PromptTemplate,
    Rollouts,
    SampleSeeds,
    SamplingArg,
    Seed,
    System,
    Temperature,
    TensorParallel,
    TopP,
    Track,
    engine_args,
    integers,
    json_object,
    values,
)
from llmpipe.cli.output import Stage, stops_short
from llmpipe.cli.presets import Preset, say_presets
from llmpipe.cli.reporting import report_eval
from llmpipe.cli.sampling import rollout
from llmpipe.core.errors import UserError

if TYPE_CHECKING:
    from llmpipe.core.run import Result

_NOT_FOR_SAMPLING = {"problems", "out", "track", "force", "as_json", "dry_run"}


def register(app: typer.Typer) -> None:
    app.command("eval", rich_help_panel="Answers")(eval_)


def eval_(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="A recipe or problems (with --model), rollouts, verdicts, or a file of answers "
            "that another tool sampled; several in a comma list."
        ),
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
    preset: Annotated[
        str | None,
        typer.Option(help="Sample as a paper does (--list-presets); what you say besides wins."),
    ] = None,
    list_presets: Annotated[
        bool,
        typer.Option(
            "--list-presets", callback=say_presets, is_eager=True, help="Say what they fix."
        ),
    ] = False,
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
    answer_key: Annotated[
        str | None, typer.Option(help="Of a file: its column of gold answers.")
    ] = None,
    response_key: Annotated[
        str | None, typer.Option(help="Of a file: its column of responses, one or a list.")
    ] = None,
    prompt_key: Annotated[
        str | None, typer.Option(help="Of a file: its column of problems.")
    ] = None,
    problems: Problems = None,
    rollouts: Rollouts = None,
    track: Track = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Score a model by unbiased pass@k. What is missing is brought, sampled and judged inside OUT.

    Another k or another way to read the answers scores the same samples again. Of several sources
    each has its own folder in OUT.
    """
    moot = _for_sampling(locals())
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        import llmpipe.stages.rollout as sampling
        import llmpipe.stages.score as scoring
        import llmpipe.stages.verify as judging
        from llmpipe.cli import eval_sources
        from llmpipe.cli.scores import say_scores, say_table
        from llmpipe.core.records import Problem, Rollout, Verdict

        stage.end_within(max_time)
        chosen = Preset(context, preset)
        told: dict[str, Any] = {"source": source, "model": model, "preset": preset, "k": k, "n": n}
        told |= {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
        stage.track(track, job="eval", out=out, config={**told, "seed": seed, "extract": extract})
        # Judging and scoring cost seconds: other settings make them again, and refuse nothing.
        cheap = dataclasses.replace(stage.mode, remake=True)
        keys = eval_sources.Keys(answer=answer_key, response=response_key, prompt=prompt_key)

        def evaluate(source: str, out: Path) -> list[Result]:
            options = chosen.for_source(source)
            heat: float = options.choose("temperature", temperature)
            only_one = heat == 0 and not options.said("k")
            ks = integers(_listed(options.choose("k", "1" if only_one else k)), "--k")
            rules = options.choose("maze-rules", maze_rules)
            samples: int | None = options.choose("n", n)
            if samples is None:
                samples = 1 if heat == 0 else 2 * max(ks)
            elif options.said("n") and options.says("k"):  # a preset's k are as far as they go
                ks = tuple(each for each in ks if each <= samples) or (1,)
            results: list[Result] = []
            path, record = eval_sources.begin(source, out, stage.mode, results, model, keys)
            if record is Problem:
                _check_samples(samples, ks, heat)
            if record is Problem and not stops_short(results):
                given = values(sampling_arg, "--sampling-arg")
                config = sampling.plan(
                    engine=engine,
                    model=_needed(model),
                    n=samples,
                    limit=limit,
                    temperature=heat,
                    top_p=options.choose("top-p", top_p),
                    max_tokens=options.choose("max-tokens", max_tokens),
                    seed=seed,
                    system=system,
                    max_turns=max_turns,
                    few_shot=few_shot,
                    prompt_template=prompt_template,
                    logprobs=logprobs,
                    sample_seeds=sample_seeds,
                    sampling_args={**options.held("sampling-arg"), **given},
                    chat_template=chat_template,
                    chat_template_kwargs=json_object(
                        chat_template_kwargs, "--chat-template-kwargs"
                    ),
                    engine_args=engine_args(tensor_parallel_size, base_url, engine_arg),
                    gpus=gpus,
                )
                results.append(sampling.run(config, path, out / "rollouts", stage.mode))
                path, record = out / "rollouts", Rollout
            elif record is not Problem and moot:
                typer.echo(
                    f"{source} was sampled already: sampling options have no effect ({moot})",
                    err=True,
                )
            if record is Rollout and not stops_short(results):
                judge = judging.Config(extract=extract, maze_rules=rules)
                results.append(judging.run(judge, path, out / "verdicts", cheap, problems=problems))
                path = out / "verdicts"
            elif record is Verdict and (extract, maze_rules) != ("auto", "strict"):
                typer.echo(
                    f"{source} was judged already: --extract and --maze-rules have no effect",
                    err=True,
                )
            if not stops_short(results):
                score = scoring.Config(k=ks)
                results.append(
                    scoring.run(score, path, out, cheap, problems=problems, rollouts=rollouts)
                )
                if not stops_short(results):
                    report_eval(out, again=not results[-1].up_to_date)
            return results

        sources = eval_sources.split(source)
        if len(sources) == 1:
            results = evaluate(sources[0], out)
            if not as_json and not stops_short(results):
                say_scores(results[-1].out)
            stage.finish(*results)
        done: list[Result] = []
        failed: list[dict[str, Any]] = []
        for name, folder in eval_sources.folders(sources, out).items():
            try:
                results = evaluate(name, folder)
            except UserError as e:
                failed.append(stage.say_failed(name, e))
                continue
            attention = next((r.attention for r in reversed(results) if r.attention), None)
            done.append(dataclasses.replace(results[-1], attention=attention))
            if not all(result.complete for result in results):
                break  # the time is over
        if not as_json:
            say_table([result.out for result in done if not stops_short([result])])
        stage.finish_all(done, failed)


def _for_sampling(given: Mapping[str, Any]) -> str:
    """The options of `eval_` that matter to sampling alone, as far as they aren't the defaults."""
    names = (inspect.signature(rollout).parameters.keys() | {"preset"}) - _NOT_FOR_SAMPLING
    options = inspect.signature(eval_).parameters
    return ", ".join(
        f"--{name.replace('_', '-')}"
        for name in options
        if name in names and (given[name] or None) != (options[name].default or None)
    )


def _listed(k: Any) -> str:
    return k if isinstance(k, str) else ",".join(map(str, k))


def _check_samples(n: int, ks: tuple[int, ...], temperature: float) -> None:
    if temperature == 0 and max(n, *ks) > 1:
        raise UserError(
            "greedy samples of a problem are all the same: n and k can only be 1",
            "-n 1 --k 1, or --temperature 1.0",
        )
    if n < (most := max(ks)):
        raise UserError(f"pass@{most} needs {most} samples a problem", f"-n {most}")


def _needed(model: str | None) -> str:
    if model is None:
        raise UserError("problems are scored with a model", "--model ORG/NAME")
    return model
