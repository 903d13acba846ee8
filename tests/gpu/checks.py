"""What rollouts promise, by the real command on a real engine: see run.sh beside this.

The checks build on each other: one run is killed, ended by --max-time, resumed and grown, and its
rows are what others are compared with. Each prints its time; where one fails, the output is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from llmpipe.core import gpu
from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Rollout

_ROOT = Path(__file__).parents[2]
_LONGEST = 600.0  # seconds for one command
_LEAST_RATIO = 0.97  # of LLM.generate's tokens a second


class SkippedError(Exception):
    """Why a check can't be made here."""


class Checks:
    """The checks, in their order, and the sizes they have on this machine."""

    def __init__(self, model: Path, work: Path, cpu: bool) -> None:
        self.model, self.work, self.cpu = model, work, cpu
        self.count, self.n, self.tokens = (8, 2, 48) if cpu else (64, 8, 256)
        # Loading is most of the time of short runs, and compiling most of that.
        self.engine = ["--engine-arg", "enforce_eager=true"]
        self.engine += ["--engine-arg", f"max_num_seqs={4 if cpu else 64}"]
        self.total = self.count * self.n
        self.kept: list[dict[str, Any]] = []
        self.problems = work / "problems"
        self.out = work / "rollouts"

    def is_killed(self) -> str:
        """kill -9 while it samples"""
        _prepare(self.count, self.problems)
        clock = time.monotonic()
        process = self._start(self.out, "--logprobs")
        self._wait_for_lines(process, self.n)
        self.to_first_answers = time.monotonic() - clock
        _kill(process)
        self.kept = self._journal()
        assert len(self.kept) < self.total
        return f"{len(self.kept)} of {self.total} samples kept"

    def ends_in_time(self) -> str:
        """--max-time ends in good order"""
        seconds = self.to_first_answers + 1  # of which loading is most
        options = ["--logprobs", "--json", "--max-time", f"{seconds:.0f}s"]
        said = json.loads(self._finish(self._start(self.out, *options)).splitlines()[-1])
        assert said["complete"] is False, said
        assert not (self.out / "manifest.json").exists()
        self.kept = [*self.kept, *self._journal()]
        return f"{len(self._journal())} of {self.total} samples kept"

    def goes_on(self) -> str:
        """the same command again"""
        self._finish(self._start(self.out, "--logprobs"))
        rows = _rows(self.out)
        assert len(rows) == Artifact.open(self.out).rows == self.total
        for row in self.kept:
            assert rows[row["problem_id"], row["sample"]] == Rollout.from_row(row)
        return f"{self.total} samples, none lost and none twice"

    def has_logprobs(self) -> str:
        """token ids and log-probabilities, and vLLM's own times"""
        rows = _rows(self.out).values()
        for row in rows:
            assert row.token_ids is not None
            assert row.logprobs is not None
            assert len(row.token_ids) == len(row.logprobs) == row.completion_tokens > 0
            assert all(p <= 0 for p in row.logprobs)
        figures = Artifact.open(self.out).manifest.figures
        medians = [
            f"{name[:4]} {figures[name]['p50']:g} s" for name in ("ttft_seconds", "tpot_seconds")
        ]
        return f"{figures['tokens_per_second']:g} tokens/s, medians {', '.join(medians)}"

    def grows(self) -> str:
        """a larger n adds to what is there"""
        before = _rows(self.out)
        self._finish(self._start(self.out, "--logprobs", n=2 * self.n))
        after = _rows(self.out)
        assert len(after) == 2 * len(before)
        assert all(after[key] == row for key, row in before.items())
        return f"{len(before)} to {len(after)} samples"

    def repeats(self) -> str:
        """the same seeds in a fresh engine, --gpus 0"""
        out = self.work / "repeated"
        self._finish(self._start(out, "--logprobs", "--gpus", "0"))
        before = _rows(self.out)
        same = [row.completion == before[key].completion for key, row in _rows(out).items()]
        share = sum(same) / len(same)
        # Rounding depends on who is in the batch, so some differ; without seeds all would.
        assert share >= 0.5, f"only {share:.0%} of the answers are the same"
        return f"{share:.0%} of {len(same)} answers are the same"

    def takes_turns(self) -> str:
        """two turns a conversation, an engine process a GPU"""
        out = self.work / "turns"
        # On the CPU as many processes as are named share it.
        gpus = "0,1" if self.cpu else "all"
        self._finish(self._start(out, "--max-turns", "2", "--gpus", gpus))
        rows = _rows(out).values()
        assert len(rows) == self.total
        answers = [sum(m["role"] == "assistant" for m in row.messages) for row in rows]
        assert set(answers) <= {1, 2}
        assert 2 in answers
        return f"{answers.count(2)} of {len(answers)} conversations had a second turn"

    def runs_on_ray(self) -> str:
        """--engine ray"""
        if importlib.util.find_spec("ray") is None:
            raise SkippedError("Ray is not installed")
        out = self.work / "ray"
        self._finish(self._start(out, "--engine", "ray"))
        return f"{len(_rows(out))} samples"

    def asks_a_server(self) -> str:
        """--engine openai, of vLLM's own server"""
        out = self.work / "server"
        with self._server() as url:
            base = ["--engine", "openai", "--base-url", url]
            self._finish(self._start(out, *base, model="served", engine=[]))
        rows = _rows(out).values()
        assert not any(row.error for row in rows)
        return f"{len(rows)} samples"

    def is_as_fast(self) -> str:
        """tokens a second beside LLM.generate"""
        command = [sys.executable, _ROOT / "benchmarks/rollout.py", "--model", self.model]
        command += ["--rounds", "1"]
        if self.cpu:
            command += ["--problems", "4", "--tokens", "4", "--seats", "8", "--chunk", "2"]
        else:
            command += ["--problems", "128", "--tokens", "64", "--seats", "128", "--chunk", "32"]
            command += ["--gpu-share", "0.4", "--least", str(_LEAST_RATIO)]
        process = subprocess.Popen(
            [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        said = self._finish(process)
        table = said.partition("\n\n")[2]
        ratios = [line.split() for line in table.splitlines() if " rollout " in line]
        short = ", ".join(f"{kind} lengths {ratio}" for kind, _, _, ratio, *_ in ratios)
        return f"{short} of LLM.generate\n{table}"

    def _start(
        self,
        out: Path,
        *options: str,
        n: int | None = None,
        model: str | None = None,
        engine: list[str] | None = None,
    ) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "llmpipe", "rollout", self.problems, "-o", out]
        command += ["--model", model or self.model, "-n", n or self.n, "--max-tokens", self.tokens]
        command += [*(self.engine if engine is None else engine), *options]
        return subprocess.Popen(
            [str(c) for c in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _finish(self, process: subprocess.Popen[str]) -> str:
        """What it says on stdout, once it has ended well."""
        try:
            out, err = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise
        assert process.returncode == 0, f"exit code {process.returncode}\n{err[-4000:]}"
        return out

    def _journal(self) -> list[dict[str, Any]]:
        """The whole lines of finished samples, as another process may be adding to them."""
        path = self.out.with_name(f"{self.out.name}.partial") / "journal.jsonl"
        whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
        return [json.loads(line) for line in whole.splitlines()[1:]]

    def _wait_for_lines(self, process: subprocess.Popen[str], count: int) -> None:
        deadline = time.monotonic() + _LONGEST
        while len(self._journal()) < count:
            assert process.poll() is None, (
                f"ended before its kill\n{process.communicate()[1][-4000:]}"
            )
            assert time.monotonic() < deadline, "no samples"
            time.sleep(0.02)

    @contextlib.contextmanager
    def _server(self) -> Iterator[str]:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
        command += ["--model", str(self.model), "--served-model-name", "served"]
        command += ["--host", "127.0.0.1", "--port", str(port), "--enforce-eager"]
        command += ["--max-model-len", "2048"]
        if self.cpu:
            environment |= {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_WAIT_POLICY": "PASSIVE"}
            command += ["--no-enable-chunked-prefill", "--dtype", "bfloat16"]
        log = self.work / "server.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                command, env=environment, stdout=out, stderr=out, start_new_session=True
            )
        url = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + _LONGEST
            while not _answers(f"{url}/health"):
                assert process.poll() is None, log.read_text()[-4000:]
                assert time.monotonic() < deadline, log.read_text()[-4000:]
                time.sleep(0.2)
            yield f"{url}/v1"
        finally:
            _kill(process)


CHECKS = [
    Checks.is_killed,
    Checks.ends_in_time,
    Checks.goes_on,
    Checks.has_logprobs,
    Checks.grows,
    Checks.repeats,
    Checks.takes_turns,
    Checks.runs_on_ray,
    Checks.asks_a_server,
    Checks.is_as_fast,
]


def _prepare(count: int, out: Path) -> None:
    file = out.with_suffix(".jsonl")
    sums = [{"q": f"What is {i} + {2 * i + 3}?", "a": str(3 * i + 3)} for i in range(count)]
    file.write_text("".join(json.dumps(row) + "\n" for row in sums))
    command = [sys.executable, "-m", "llmpipe", "prepare", file, "-o", out]
    command += ["--prompt-key", "q", "--answer-key", "a"]
    subprocess.run(command, check=True, capture_output=True)


def _rows(out: Path) -> dict[tuple[str, int], Rollout]:
    return {(r.problem_id, r.sample): r for r in Artifact.open(out, Rollout).iter_rows(Rollout)}


def _kill(process: subprocess.Popen[str]) -> None:
    """kill -9 of the process and of all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _answers(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--only", action="append", help="names of checks")
    options = parser.parse_args()
    if not (options.model / "config.json").is_file():
        print(f"no model in {options.model}", file=sys.stderr)
        return 2
    if cpu := not gpu.present():
        print("no GPU is found: tiny sizes on the CPU, which try the checks rather than the engine")
    work = Path(tempfile.mkdtemp(prefix="llmpipe-checks-"))
    checks = Checks(options.model.resolve(), work, cpu)
    begun, lines, failed = time.monotonic(), [], 0
    for check in CHECKS:
        if options.only and check.__name__ not in options.only:
            continue
        clock = time.monotonic()
        verdict, detail = _judge(lambda check=check: check(checks))
        failed += verdict == "FAILED"
        label = (check.__doc__ or "").strip()
        first, _, rest = detail.partition("\n")
        lines.append(f"{verdict:7} {time.monotonic() - clock:6.1f} s  {label}: {first}")
        print(lines[-1] + (f"\n{rest}" if rest else ""), flush=True)
    print("\n" + "\n".join(lines))
    print(f"{len(lines) - failed} of {len(lines)} in {time.monotonic() - begun:.0f} s")
    if failed:
        print(f"what they made is kept in {work}")
        return 1
    shutil.rmtree(work)
    return 0


def _judge(check: Callable[[], str]) -> tuple[str, str]:
    try:
        return "passed", check()
    except SkippedError as e:
        return "skipped", str(e)
    except Exception as e:  # whatever goes wrong is that check's result
        return "FAILED", f"{type(e).__name__}: {e}"


if __name__ == "__main__":
    sys.exit(main())
