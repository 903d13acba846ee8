"""What a fleet costs: two engine processes from one queue, beside two bare ones on half each.

All stay loaded and take turns: a fleet (``--gpus 0,1``) that gets every request from one stream,
and two processes of vLLM's own `LLM.generate`, each of which has half of the prompts as token ids
beforehand. Without GPUs each engine has half of the cores. Every answer has ``--tokens`` tokens,
no end token stops it. Ratios are medians over the rounds of what a round had. CPU seconds are those
of all processes of a side, the one that hands out included: on a busy machine they are the fair
measure.

    python benchmarks/fleet.py [--model M] [--problems N] [--tokens T] [--seats S] [--rounds R]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from llmpipe.core.paths import find_model
from llmpipe.core.protocols import Request, Sampling
from llmpipe.core.records import Problem
from llmpipe.core.seeds import sample_seed
from llmpipe.engines._fleet import Fleet
from llmpipe.tasks import opening

SAMPLES = 8
ENGINES = 2


def requests(options: argparse.Namespace) -> list[Request]:
    made = []
    for i in range(options.problems):
        problem = Problem.make(
            task="math", source="benchmark", prompt=f"What is {i} + {7 * i}?", answer=str(8 * i)
        )
        made += [
            Request(
                problem=problem,
                sample=j,
                seed=sample_seed(0, problem.id, j),
                messages=opening(problem),
            )
            for j in range(SAMPLES)
        ]
    return made


def sampling(options: argparse.Namespace) -> Sampling:
    return Sampling(max_tokens=options.tokens, extra={"ignore_eos": True})


def arguments(options: argparse.Namespace) -> dict[str, Any]:
    # Without the prefix cache: rounds repeat their prompts.
    return {
        "max_num_seqs": options.seats,
        "enable_prefix_caching": False,
        "kv_cache_memory_bytes": options.cache << 20,
        "max_model_len": 1024 + options.tokens,
    }


def bare(options: argparse.Namespace, number: int) -> None:
    """One of the bare engines: a round a line of stdin, its CPU seconds and tokens on stdout."""
    from llmpipe.engines.vllm import prepare

    folder = find_model(options.model)
    wanted = sampling(options)
    given = {**prepare(folder, wanted), **arguments(options)}
    from vllm import LLM, SamplingParams

    from llmpipe.algo.prompts import Prompts, load_tokenizer

    llm = LLM(str(folder), **given)
    prompts = Prompts(load_tokenizer(folder), given["max_model_len"])
    mine = [r for i, r in enumerate(requests(options)) if i // SAMPLES % ENGINES == number]
    ids = [{"prompt_token_ids": prompts.token_ids(r.messages)} for r in mine]
    params = [
        SamplingParams(
            temperature=wanted.temperature,
            top_p=wanted.top_p,
            max_tokens=wanted.max_tokens,
            seed=r.seed,
            ignore_eos=True,
        )
        for r in mine
    ]
    print("ready", file=sys.__stdout__, flush=True)
    for _ in sys.stdin:
        cpu = time.process_time()
        outputs = llm.generate(ids, params, use_tqdm=False)
        tokens = sum(len(o.outputs[0].token_ids) for o in outputs)
        print(json.dumps([time.process_time() - cpu, tokens]), file=sys.__stdout__, flush=True)


class Bare:
    def __init__(self, posts: Sequence[Any]) -> None:
        self._processes = [
            subprocess.Popen(
                [*pinned(post.cores), sys.executable, *sys.argv, "--bare", str(post.number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **post.environment, "PYTHONWARNINGS": "ignore::FutureWarning"},
                text=True,
                # As a fleet's engines: Linux shares the cores out among sessions first, and beside
                # other work one in the shell's own session had nearly twice as much.
                start_new_session=True,
            )
            for post in posts
        ]
        for process in self._processes:
            while "ready" not in process.stdout.readline():
                assert process.poll() is None

    def run(self) -> dict[str, float]:
        clock = time.monotonic()
        for process in self._processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        results = [json.loads(process.stdout.readline()) for process in self._processes]
        seconds = time.monotonic() - clock
        cpu, tokens = map(sum, zip(*results, strict=True))
        return {"seconds": seconds, "cpu": cpu, "tokens": tokens}

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def pinned(cores: Sequence[int]) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, cores))] if cores else []


class Ours:
    def __init__(self, options: argparse.Namespace) -> None:
        given = {name: json.dumps(value) for name, value in arguments(options).items()}
        groups = [[str(i)] for i in range(ENGINES)]
        self.fleet = Fleet(groups, "vllm", options.model, sampling(options), given)
        self._requests = requests(options)
        while not all(process.seats for process in self.fleet._processes):
            list(self.fleet.stream(self._requests[:1]))

    def run(self) -> dict[str, float]:
        clock, cpu = time.monotonic(), self._cpu()
        tokens = sum(g.completion_tokens for g in self.fleet.stream(self._requests))
        return {"seconds": time.monotonic() - clock, "cpu": self._cpu() - cpu, "tokens": tokens}

    def _cpu(self) -> float:
        import psutil

        pids = [process._process.pid for process in self.fleet._processes]
        each = [psutil.Process(pid).cpu_times() for pid in pids]
        return time.process_time() + sum(t.user + t.system for t in each)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="models/HuggingFaceTB/SmolLM2-135M-Instruct")
    parser.add_argument("--problems", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--seats", type=int, default=32, help="max_num_seqs of each engine")
    parser.add_argument("--cache", type=int, default=512, help="MiB of KV cache of each engine")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare is not None:
        bare(options, options.bare)
        return
    ours = Ours(options)
    theirs = Bare(ours.fleet._posts)
    sides = {"fleet": ours, "bare": theirs}
    print(f"{options.problems * SAMPLES} requests of {options.tokens} tokens, {ENGINES} engines")
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    try:
        for number in range(options.rounds):
            for side in sorted(sides, reverse=number % 2 == 0):
                got = sides[side].run()
                for unit in ("seconds", "cpu"):
                    rates[side][unit].append(got["tokens"] / got[unit])
                print(
                    f"round {number + 1} {side:5} {got['tokens']:7.0f} tokens in "
                    f"{got['seconds']:6.1f} s, {got['cpu']:6.1f} CPU s",
                    flush=True,
                )
    finally:
        theirs.close()
        ours.fleet.close()
    for unit, name in (("seconds", "tokens/s"), ("cpu", "tokens/CPU s")):
        each = [rates[side][unit] for side in sides]
        ratio = statistics.median(fleet / plain for fleet, plain in zip(*each, strict=True))
        fleet, plain = map(statistics.median, each)
        print(f"fleet / bare in {name}: {fleet:.1f} / {plain:.1f}, by rounds {ratio:.3f}")


if __name__ == "__main__":
    main()
