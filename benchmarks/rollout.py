"""Throughput of the vllm engine's stream() against bare LLM.generate, on the same requests.

Both sides have the same settings and seeds; each runs in a fresh process, in alternating order.
The clock of stream() includes rendering and tokenizing the prompts; LLM.generate gets token ids.
CPU seconds are those of the one process: on a busy machine without a GPU they are the fair measure.

    python benchmarks/rollout.py [--model M] [--requests N] [--max-tokens T] [--rounds R]
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from llmpipe.core.paths import find_model
from llmpipe.core.protocols import Request, Sampling
from llmpipe.core.records import Problem
from llmpipe.core.seeds import sample_seed

SAMPLES = 8
SHOT = "What is 3 + 4? Put the final answer in \\boxed{}."
REPLY = "3 + 4 = 7. The answer is \\boxed{7}."


def requests(count: int) -> list[Request]:
    """Sums, eight samples each, with a worked example before the question."""
    draw = random.Random(0)
    made: list[Request] = []
    while len(made) < count:
        a, b, c = (draw.randrange(1, 100) for _ in range(3))
        problem = Problem.make(
            task="math",
            source="benchmark",
            prompt=f"What is {a} + {b} + {c}? Put the final answer in \\boxed{{}}.",
            answer=str(a + b + c),
        )
        messages = [
            {"role": "user", "content": SHOT},
            {"role": "assistant", "content": REPLY},
            {"role": "user", "content": problem.prompt},
        ]
        made += [
            Request(
                problem=problem, sample=i, seed=sample_seed(0, problem.id, i), messages=messages
            )
            for i in range(SAMPLES)
        ]
    return made[:count]


def ours(model: str, sampling: Sampling, wanted: list[Request]) -> dict[str, float]:
    from llmpipe.engines.vllm import VllmEngine

    clock = time.monotonic()
    engine = VllmEngine(model, sampling, {})
    load = time.monotonic() - clock
    clock, cpu = time.monotonic(), time.process_time()
    tokens = sum(g.completion_tokens for g in engine.stream(wanted))
    seconds, cpu = time.monotonic() - clock, time.process_time() - cpu
    engine.close()
    return {"tokens": tokens, "seconds": seconds, "cpu": cpu, "load": load}


def bare(model: str, sampling: Sampling, wanted: list[Request]) -> dict[str, float]:
    from llmpipe.engines.vllm import prepare

    folder = find_model(model)
    clock = time.monotonic()
    arguments = prepare(folder, sampling)
    from vllm import LLM, SamplingParams

    from llmpipe.algo.prompts import Prompts, load_tokenizer

    llm = LLM(str(folder), **arguments)
    load = time.monotonic() - clock
    prompts = Prompts(load_tokenizer(folder), llm.llm_engine.model_config.max_model_len)
    ids = [{"prompt_token_ids": prompts.token_ids(r.messages)} for r in wanted]
    params = [
        SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            seed=r.seed,
        )
        for r in wanted
    ]
    clock, cpu = time.monotonic(), time.process_time()
    outputs = llm.generate(ids, params, use_tqdm=False)
    seconds, cpu = time.monotonic() - clock, time.process_time() - cpu
    tokens = sum(len(o.outputs[0].token_ids) for o in outputs)
    return {"tokens": tokens, "seconds": seconds, "cpu": cpu, "load": load}


SIDES: dict[str, Callable[[str, Sampling, list[Request]], dict[str, float]]] = {
    "stream": ours,
    "generate": bare,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="models/HuggingFaceTB/SmolLM2-135M-Instruct")
    parser.add_argument("--requests", type=int, default=512)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        sampling = Sampling(temperature=0.8, max_tokens=options.max_tokens)
        print(json.dumps(SIDES[options.side](options.model, sampling, requests(options.requests))))
        return
    totals = {side: collections.Counter() for side in SIDES}
    print(f"{options.requests} requests, at most {options.max_tokens} tokens each")
    for number in range(options.rounds):
        for side in sorted(SIDES, reverse=number % 2 == 0):
            done = subprocess.run(
                [sys.executable, *sys.argv, "--side", side], stdout=subprocess.PIPE, check=True
            )
            result = json.loads(done.stdout.splitlines()[-1])
            totals[side].update(result)
            print(f"round {number + 1} {line(side, result)}", flush=True)
    for side, total in totals.items():
        print(f"all     {line(side, total)}")
    mine, other = totals["stream"], totals["generate"]
    for unit, name in (("seconds", "tokens/s"), ("cpu", "tokens/CPU s")):
        ratio = mine["tokens"] / mine[unit] / (other["tokens"] / other[unit])
        print(f"stream / generate in {name}: {ratio:.3f}")


def line(side: str, result: Mapping[str, float]) -> str:
    tokens, seconds, cpu = (result[k] for k in ("tokens", "seconds", "cpu"))
    return (
        f"{side:8} {tokens:7} tokens in {seconds:6.1f} s, {cpu:6.1f} CPU s: "
        f"{tokens / seconds:7.1f} tokens/s (loaded in {result['load']:.1f} s)"
    )


if __name__ == "__main__":
    main()
