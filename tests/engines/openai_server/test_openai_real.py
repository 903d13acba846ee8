"""A real vLLM server, and how it ends when that is killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_server import free_port
from openai_requests import SUMS, ask_for, key_of

from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Engine, Generation, Sampling

pytest.importorskip("openai", reason="the openai library is not installed here")


@pytest.fixture(scope="module")
def vllm_server(smol_model: Path, tmp_path_factory: Any) -> Iterator[tuple[str, Any]]:
    """``vllm serve`` of the small model on the CPU; its URL and process."""
    pytest.importorskip("vllm", reason="vLLM is not installed here")
    requests = pytest.importorskip("requests")
    port = free_port()
    log = tmp_path_factory.mktemp("vllm") / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
                *("--model", str(smol_model), "--served-model-name", "smol"),
                *("--host", "127.0.0.1", "--port", str(port)),
                *("--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "8"),
                *("--no-enable-chunked-prefill", "--dtype", "bfloat16"),
            ],
            env={
                **os.environ,
                "VLLM_CPU_KVCACHE_SPACE": "1",
                "VLLM_NO_USAGE_STATS": "1",
                "HF_HUB_OFFLINE": "1",
                "OMP_WAIT_POLICY": "PASSIVE",
                "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))),
            },
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert process.poll() is None, log.read_text()[-4000:]
            try:
                if requests.get(f"{url}/health", timeout=5).ok:
                    break
            except requests.RequestException:
                time.sleep(0.5)
        else:
            pytest.fail(f"vllm serve does not start: {log.read_text()[-4000:]}")
        yield f"{url}/v1", process
    finally:
        _end(process)


def _end(process: Any) -> None:
    """End the server and its engine process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


@pytest.mark.slow
def test_a_real_vllm_server_and_how_it_ends_when_that_is_killed(
    vllm_server: tuple[str, Any],
) -> None:
    url, process = vllm_server
    sampling = Sampling(temperature=1.0, max_tokens=24, logprobs=True, extra={"top_k": 50})
    engine: Engine = load("engines", "openai")(
        "smol", sampling, {"base_url": url, "concurrency": "8", "retries": "4"}
    )
    try:
        described = engine.describe()
        assert described["server"]["owned_by"] == "vllm"
        assert described["server"]["version"]
        assert described["max_model_len"] == 2048
        assert described["token_ids"] is True

        long = ask_for("word " * 4000)
        first, second = (
            {key_of(g.request): g for g in engine.stream([*SUMS, long])} for _ in range(2)
        )
        failed = first.pop(key_of(long))
        assert failed.finish_reason == "error"
        assert "2048" in (failed.error or "")
        assert len(first) == 12
        for key, g in first.items():
            assert g.error is None
            assert g.text
            assert g.prompt_tokens > 0
            assert g.token_ids is not None
            assert g.logprobs is not None
            assert len(g.token_ids) == len(g.logprobs) == g.completion_tokens <= 24
            assert all(-30 < p <= 0 for p in g.logprobs)
            assert g.text == second[key].text  # the same seed
        assert len({g.text for g in first.values()}) > 6  # other seeds

        made: list[Generation] = []

        def go_on() -> None:
            for answer in engine.stream(ask_for(f"Say {i}.") for i in range(10_000)):
                made.append(answer)
                if len(made) == 8:
                    _end(process)

        with pytest.raises(UserError, match="does not serve, after 5 tries: the conn") as caught:
            go_on()
        assert "the same command goes on" in (caught.value.hint or "")
        assert len(made) >= 8
        assert not any(g.error for g in made)
    finally:
        engine.close()
