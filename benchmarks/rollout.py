"""What `llmpipe rollout` adds to vLLM, and what seeds cost: tokens a second beside LLM.generate.

Two processes load the model once each, and take turns: one runs the whole stage (seeds, prompts,
the journal, the final table), the other vLLM's own `LLM.generate` on the same prompts, seeds and
lengths, which gets token ids. An answer's length is given (no end token stops it), the same for all
or long-tailed, so that all sides draw the same number of tokens. The sides:

    generate   one request a sample, each with its seed
    rollout    the same by the stage
    chunks     generate for --chunk problems, and again for the next when the last answer is there
    n=8        one request a problem, without seeds
    no-seeds   the stage with --no-sample-seeds

LLM.generate has an engine process of its own, as is vLLM's default; not on the CPU, where that
takes a core for waiting. Ratios are of medians over the rounds. CPU seconds are those of a side's
processes: on a busy machine without a GPU they are the fair measure.

    python benchmarks/rollout.py [--model M] [--problems N] [--tokens T] [--seats S] [--rounds R]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.machinery
import importlib.util
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llmpipe.core import gpu
from llmpipe.core.artifact import Artifact
from llmpipe.core.paths import find_model
from llmpipe.core.protocols import Request, Sampling
from llmpipe.core.records import Problem
from llmpipe.core.run import Mode
from llmpipe.core.seeds import sample_seed
from llmpipe.tasks import opening

SAMPLES = 8
LONGEST = 8  # times the mean: the longest answer of the long-tailed lengths
SIDES = {
    "generate": "bare",
    "rollout": "ours",
    "n=8": "bare",
    "no-seeds": "ours",
    "chunks": "bare",
}
LENGTHS = ("equal", "long-tailed")


def length_of(problem: str, sample: int, kind: str, mean: int) -> int:
    """Tokens of an answer. Long-tailed: log-normal, cut at eight times the mean."""
    if kind == "equal":
        return mean
    drawn = random.Random(f"{problem}/{sample}").lognormvariate(0, 1) * mean / 1.6  # 1.6: its mean
    return max(1, min(round(drawn), LONGEST * mean))


def engine_arguments(options: argparse.Namespace) -> dict[str, str]:
    arguments = {"max_num_seqs": str(options.seats)}
    if options.gpu_share:
        arguments["gpu_memory_utilization"] = str(options.gpu_share)
    return arguments


def sampling(options: argparse.Namespace) -> Sampling:
    return Sampling(max_tokens=LONGEST * options.tokens, extra={"ignore_eos": True})


Side = Callable[[str, str], dict[str, float]]
"""Draws all answers by side and lengths: tokens, seconds and CPU seconds."""


def ours(options: argparse.Namespace, problems: Path, scratch: Path) -> Side:
    from llmpipe.engines.vllm import VllmEngine
    from llmpipe.stages import rollout

    lengths = "equal"

    class Loaded(VllmEngine):
        """The engine as it is, but for a length an answer; it stays loaded between two runs."""

        def _add(self, key: str, request: Request) -> str | None:
            length = length_of(request.problem.id, request.sample, lengths, options.tokens)
            self._params = functools.partial(params, max_tokens=length)
            return super()._add(key, request)

        def close(self) -> None:
            self._engine.reset_prefix_cache()

    engine = Loaded(options.model, sampling(options), engine_arguments(options))
    params = engine._params

    class Stand(VllmEngine):
        def __new__(cls, _model: str, wanted: Sampling, _options: Mapping[str, str]) -> Any:
            engine._seeds = wanted.seeds
            return engine

    # Found by its name, as every engine is.
    spec = importlib.machinery.ModuleSpec("llmpipe.engines.loaded", None)
    sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.modules[spec.name].ENGINE = Stand  # type: ignore[attr-defined]
    numbers = itertools.count()

    def run(side: str, kind: str) -> dict[str, float]:
        nonlocal lengths
        lengths = kind
        config = rollout.plan(
            engine="loaded",
            model=options.model,
            n=SAMPLES,
            max_tokens=LONGEST * options.tokens,
            sample_seeds=side == "rollout",
            sampling_args={"ignore_eos": True},
        )
        with clock() as timed:
            made = rollout.run(config, problems, scratch / f"{next(numbers)}", Mode())
        timed["tokens"] = made.figures["completion_tokens"]
        return timed

    return run


def bare(options: argparse.Namespace, problems: Path, _scratch: Path) -> Side:
    from llmpipe.engines.vllm import prepare

    folder = find_model(options.model)
    wanted = sampling(options)
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1" if options.engine_process else "0"
    arguments = prepare(folder, wanted)
    from vllm import LLM, SamplingParams

    from llmpipe.algo.prompts import Prompts, load_tokenizer

    given = {k: json.loads(v) for k, v in engine_arguments(options).items()}
    llm = LLM(str(folder), **{**arguments, **given})
    prompts = Prompts(load_tokenizer(folder), llm.llm_engine.model_config.max_model_len)

    def params(length: int, **rest: Any) -> Any:
        return SamplingParams(
            temperature=wanted.temperature,
            top_p=wanted.top_p,
            max_tokens=length,
            ignore_eos=True,
            **rest,
        )

    def run(side: str, kind: str) -> dict[str, float]:
        asked: list[list[tuple[Any, Any]]] = []
        for problem in Artifact.open(problems).iter_rows(Problem):
            prompt = {"prompt_token_ids": prompts.token_ids(opening(problem))}
            if side == "n=8":
                asked.append([(prompt, params(options.tokens, n=SAMPLES))])
                continue
            each = [
                params(
                    length_of(problem.id, i, kind, options.tokens),
                    seed=sample_seed(0, problem.id, i),
                )
                for i in range(SAMPLES)
            ]
            asked.append([(prompt, one) for one in each])
        size = options.chunk if side == "chunks" else len(asked)
        tokens = 0
        with clock() as timed:
            for start in range(0, len(asked), size):
                chunk = [pair for problem in asked[start : start + size] for pair in problem]
                outputs = llm.generate(*map(list, zip(*chunk, strict=True)), use_tqdm=False)
                tokens += sum(len(a.token_ids) for o in outputs for a in o.outputs)
        llm.reset_prefix_cache()
        timed["tokens"] = tokens
        return timed

    return run


@contextlib.contextmanager
def clock() -> Iterator[dict[str, float]]:
    timed: dict[str, float] = {}
    wall, cpu = time.monotonic(), cpu_seconds()
    yield timed
    timed |= {"seconds": time.monotonic() - wall, "cpu": cpu_seconds() - cpu}


def cpu_seconds() -> float:
    """Of this process and those it started."""
    import psutil

    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(t.user + t.system for t in times)


def child(options: argparse.Namespace) -> None:
    """Answer each line of stdin, a side and its lengths, with a line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    make = {"ours": ours, "bare": bare}[options.child]
    with tempfile.TemporaryDirectory() as scratch:
        run = make(options, options.problems_folder, Path(scratch))
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(run(*line.split())), file=answers, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="models/HuggingFaceTB/SmolLM2-135M-Instruct")
    parser.add_argument("--problems", type=int, default=12, help="eight samples each")
    parser.add_argument("--tokens", type=int, default=24, help="mean length of an answer")
    parser.add_argument("--seats", type=int, default=16, help="vLLM's max_num_seqs")
    parser.add_argument("--chunk", type=int, default=4, help="problems in a chunk")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gpu-share", type=float, help="gpu_memory_utilization of each process")
    parser.add_argument(
        "--engine-process",
        action=argparse.BooleanOptionalAction,
        default=gpu.present(),
        help="an engine process of its own for generate",
    )
    parser.add_argument("--least", type=float, default=0, help="ratio of rollout to be reached")
    parser.add_argument("--child", choices=("ours", "bare"), help=argparse.SUPPRESS)
    parser.add_argument("--problems-folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    with tempfile.TemporaryDirectory() as scratch:
        problems = draw_problems(options.problems, Path(scratch))
        results = measure(problems, options.rounds)
    report(results, options)
    for kind in LENGTHS:
        ratio = rate(results["rollout", kind]) / rate(results["generate", kind])
        if ratio < options.least:
            sys.exit(f"rollout reaches {ratio:.3f} of generate on {kind} lengths")


def draw_problems(count: int, scratch: Path) -> Path:
    draw = random.Random(0)
    sums: set[tuple[int, ...]] = set()
    while len(sums) < count:
        sums.add(tuple(draw.randrange(1, 100) for _ in range(3)))
    rows = [
        {"q": f"What is {' + '.join(map(str, terms))}?", "a": str(sum(terms))} for terms in sums
    ]
    file = scratch / "sums.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-m", "llmpipe", "prepare", file, "-o", scratch / "problems"]
    command += ["--prompt-key", "q", "--answer-key", "a"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return scratch / "problems"


def measure(problems: Path, rounds: int) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Every side at both lengths, in turning order; the first round, of two, only warms up."""
    results: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    with contextlib.ExitStack() as stack:
        children = {}
        for name in ("bare", "ours"):
            command = [sys.executable, *sys.argv, "--child", name, "--problems-folder", problems]
            children[name] = stack.enter_context(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
                )
            )
            stack.callback(children[name].stdin.close)
            wait(children[name])
        runs = [(side, kind) for kind in LENGTHS for side in SIDES]
        runs.remove(("chunks", "equal"))
        runs.remove(("n=8", "long-tailed"))  # a request for several has one length
        for number in range(rounds + 1):
            warm_up = number == 0
            for side, kind in runs[::-1] if number % 2 else runs:
                if warm_up and (kind, side) not in (("equal", "generate"), ("equal", "rollout")):
                    continue
                process = children[SIDES[side]]
                print(side, kind, file=process.stdin, flush=True)
                made = json.loads(wait(process))
                if not warm_up:
                    results[side, kind].append(made)
                    print(f"round {number} {kind:11} {side:9} {line(made)}", flush=True)
    return results


def wait(process: subprocess.Popen[str]) -> str:
    said = process.stdout.readline()
    if not said:
        sys.exit(f"a process ended with {process.wait()}")
    return said


def line(made: Mapping[str, float]) -> str:
    tokens, seconds, cpu = (made[k] for k in ("tokens", "seconds", "cpu"))
    return (
        f"{tokens:8.0f} tokens {seconds:7.2f} s {cpu:7.2f} CPU s {tokens / seconds:8.1f} tokens/s"
    )


def report(
    results: Mapping[tuple[str, str], list[dict[str, float]]], options: argparse.Namespace
) -> None:
    print(
        f"\n{options.problems * SAMPLES} answers of {options.tokens} tokens on average, "
        f"{options.seats} at once; medians of {options.rounds} rounds, and their ratio to generate"
    )
    print(f"{'lengths':11} {'side':9} {'tokens/s':>9} {'ratio':>6} {'tok/CPU s':>10} {'ratio':>6}")
    for (side, kind), runs in sorted(results.items(), key=lambda item: item[0][1]):
        cells = []
        for unit, width in (("seconds", 9), ("cpu", 10)):
            own, base = rate(runs, unit), rate(results["generate", kind], unit)
            cells.append(f"{own:{width}.1f} {own / base:6.3f}")
        print(f"{kind:11} {side:9} {' '.join(cells)}")


def rate(runs: Sequence[Mapping[str, float]], unit: str = "seconds") -> float:
    return statistics.median(made["tokens"] / made[unit] for made in runs)


if __name__ == "__main__":
    main()
