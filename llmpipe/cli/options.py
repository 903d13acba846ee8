"""Options that several commands share, each written once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from llmpipe.core.errors import UserError
from llmpipe.core.options import read_value
from llmpipe.core.surrogates import has_half

Out = Annotated[Path, typer.Option("--out", "-o", help="The folder to make.")]
Force = Annotated[bool, typer.Option("--force", help="Make it again, whatever is there.")]
AsJson = Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and stop.")]
Seed = Annotated[int, typer.Option(help="The seed of everything random.")]
Problems = Annotated[
    Path | None,
    typer.Option(help="Where the problems are now, if they were moved.", show_default=False),
]
Rollouts = Annotated[
    Path | None,
    typer.Option(help="Where the rollouts are now, if they were moved.", show_default=False),
]

Model = Annotated[str, typer.Option(help="A model's folder, or its hub id once downloaded.")]
Samples = Annotated[int, typer.Option("--n", "-n", help="Samples for each problem.")]
Temperature = Annotated[float, typer.Option(help="Sampling temperature; 0 is greedy.")]
TopP = Annotated[float, typer.Option(help="Nucleus sampling: the share of probability kept.")]
MaxTokens = Annotated[int, typer.Option(help="The most tokens of one answer.")]
Engine = Annotated[str, typer.Option(help="vllm, transformers, openai (a server) or ray.")]
Gpus = Annotated[
    str | None,
    typer.Option(help="GPUs to use, such as 0,1, or all: a copy of the model on each of them."),
]
TensorParallel = Annotated[int | None, typer.Option(help="GPUs that a copy of the model spans.")]
EngineArg = Annotated[
    list[str] | None,
    typer.Option(help="An option of the engine's own, key=value; may be repeated."),
]
FewShot = Annotated[
    Path | None,
    typer.Option(help="Worked examples put before each problem: JSON Lines of prompt, response."),
]
PromptTemplate = Annotated[
    Path | None,
    typer.Option(help="A text file with {prompt} and {instruction}: how a problem is put."),
]
MaxTurns = Annotated[
    int,
    typer.Option(help="The most answers in a conversation: after a wrong one the task replies."),
]
MaxTime = Annotated[
    str | None,
    typer.Option(help="End in good order within 2h, 90m or 30s; the same command goes on."),
]
System = Annotated[str | None, typer.Option(help="The system message.")]
Limit = Annotated[int | None, typer.Option(help="Only the first N problems; may grow later.")]
Extract = Annotated[
    Literal["auto", "boxed"],
    typer.Option(help="auto: a box, else what else looks final; boxed: a missing box is wrong."),
]

MazeRules = Annotated[
    Literal["strict", "passk"],
    typer.Option(help="passk judges mazes as the paper's own verifier does, to compare figures."),
]

BaseUrl = Annotated[
    str | None, typer.Option(help="Where the server of --engine openai is: http://HOST:8000/v1.")
]
LogProbs = Annotated[
    bool, typer.Option("--logprobs", help="Keep the sampled tokens' ids and log-probabilities.")
]
SampleSeeds = Annotated[
    bool,
    typer.Option(
        "--sample-seeds/--no-sample-seeds",
        help="A seed of its own for each sample; without, vLLM may sample faster.",
    ),
]
SamplingArg = Annotated[
    list[str] | None,
    typer.Option(help="A sampling parameter of the engine's, such as top_k=20; may be repeated."),
]
ChatTemplate = Annotated[
    str | None,
    typer.Option(help="A Jinja file in the place of the model's own template; none: bare text."),
]
ChatTemplateKwargs = Annotated[
    str | None,
    typer.Option(help="What the template is given: '{\"enable_thinking\": false}'."),
]

Track = Annotated[
    list[str] | None,
    typer.Option(help="Send figures to swanlab, wandb, trackio or tensorboard; may be repeated."),
]


def pairs(values: list[str] | None, flag: str) -> dict[str, str]:
    """``key=value`` options as a dictionary."""
    parsed: dict[str, str] = {}
    for value in values or []:
        key, sign, rest = value.partition("=")
        if not sign or not key:
            raise UserError(f"{flag} {value} is not of the form key=value", f"{flag} key=value")
        name = key.strip().replace("-", "_")
        if parsed.setdefault(name, rest.strip()) != rest.strip():
            raise UserError(
                f"{name} is given twice: {parsed[name]} and {rest.strip()}", f"{flag} {value}"
            )
    return parsed


def values(given: list[str] | None, flag: str) -> dict[str, Any]:
    """``key=value`` options with their values read as JSON where they are JSON."""
    read = {key: read_value(text) for key, text in pairs(given, flag).items()}
    if has_half(json.dumps(read, ensure_ascii=False)):
        raise UserError(f"{flag} holds half a character (\\ud800 to \\udfff)", "leave it out")
    return read


def engine_args(
    tensor_parallel_size: int | None, base_url: str | None, rest: list[str] | None
) -> dict[str, str]:
    """The engine's own options, with those that have a flag of their own."""
    if tensor_parallel_size is not None and tensor_parallel_size < 1:
        raise UserError(
            f"--tensor-parallel-size is {tensor_parallel_size}, but must be at least 1",
            "--tensor-parallel-size 1",
        )
    named = {"tensor_parallel_size": tensor_parallel_size, "base_url": base_url}
    own = [f"{name}={value}" for name, value in named.items() if value is not None]
    return pairs([*(rest or []), *own], "--engine-arg")


def json_object(text: str | None, flag: str) -> dict[str, Any]:
    """A JSON object given as an option."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict) or has_half(json.dumps(value, ensure_ascii=False)):
        raise UserError(f"{flag} {text!r} is no JSON object", f"{flag} '{{\"key\": true}}'")
    return value


def integers(text: str, flag: str) -> tuple[int, ...]:
    """A comma list of positive whole numbers, each once, in order."""
    try:
        numbers = sorted({int(part) for part in text.split(",") if part.strip()})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        raise UserError(f"{flag} {text!r} is no list of whole numbers from 1", f"{flag} 1,2,4,8")
    return tuple(numbers)
