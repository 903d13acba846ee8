"""What `llmpipe doctor` tries of a library, in a process of its own.

``python -m llmpipe.engines._probe LIBRARY SECONDS`` writes one JSON object to stdout: what it saw,
or ``error`` where the library can't be used. Imports may hang, print and crash.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

Facts = dict[str, Any]

_COMPANIONS = ("torchvision", "torchaudio", "torchcodec")
_OBJECT_STORE = 100 << 20  # bytes; the least that Ray takes is 75 MiB


def main(library: str, seconds: float) -> None:
    # Whoever waits for it may have been killed.
    signal.alarm(int(seconds) + 5)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)  # libraries print, too
        facts: Facts = {"installed": _installed(library)}
        if facts["installed"]:
            try:
                facts |= _PROBES[library]()
            except BaseException as e:  # a library may even exit
                # A failed import leaves no module behind.
                facts |= {"error": _line(e), "imported": library in sys.modules}
        json.dump(facts, out)
        out.flush()
        os._exit(0)  # threads and exit handlers of a broken library may never end


def _installed(library: str) -> bool:
    """Whether there is a package, not only a folder that another one left or put its parts into."""
    spec = importlib.util.find_spec(library)
    return spec is not None and spec.origin is not None


def _line(e: BaseException) -> str:
    """The kind of an error's first cause, and its last line, which says most."""
    while e.__cause__:
        e = e.__cause__
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    return f"{type(e).__name__}: {lines[-1] if lines else ''}".strip(": ")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _torch() -> Facts:
    import torch

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    facts: Facts = {
        "version": str(torch.__version__),
        "toolkit": _toolkit(torch.version.cuda, torch.version.hip),
        "gpu": available,
        "warning": str(caught[0].message).splitlines()[0] if caught else None,
        "companions": {name: _companion(name) for name in _COMPANIONS if _installed(name)},
    }
    if available:
        try:
            (torch.ones(1, device="cuda") + 1).item()
        except Exception as e:
            # The first line here: what follows is advice to developers.
            facts["gpu_error"] = (str(e) or type(e).__name__).splitlines()[0]
    return facts


def _toolkit(cuda: str | None, hip: str | None) -> str | None:
    return f"CUDA {cuda}" if cuda else f"ROCm {hip}" if hip else None


def _companion(name: str) -> Facts:
    try:
        importlib.import_module(name)
    except BaseException as e:
        return {"version": _version(name), "error": _line(e)}
    return {"version": _version(name), "error": None}


def _transformers() -> Facts:
    import transformers
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(WordLevel({"a": 0, "b": 1}, unk_token="a"))
    assert PreTrainedTokenizerFast(tokenizer_object=words).convert_tokens_to_ids("b") == 1
    if _installed("torch"):
        from transformers import LlamaForCausalLM  # noqa: F401 - imported where it is asked for
    return {"version": str(transformers.__version__)}


def _vllm() -> Facts:
    heard = _Heard()
    logging.getLogger().addHandler(heard)
    import vllm
    from vllm import LLM  # noqa: F401 - imported where it is asked for
    from vllm.platforms import current_platform

    # It only logs that its kernels can't be loaded, and fails at the first token.
    current_platform.import_kernels()
    return {
        "version": str(vllm.__version__),
        "device": current_platform.device_type,
        **({"error": heard.said, "imported": True} if heard.said else {}),
    }


class _Heard(logging.Handler):
    """Keeps what a library says of kernels that it can't load."""

    said: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if "Failed to import from vllm._C" in (message := record.getMessage()):
            self.said = message


def _flash_attn() -> Facts:
    import flash_attn
    from flash_attn import flash_attn_func

    assert callable(flash_attn_func)
    return {"version": str(flash_attn.__version__)}


def _ray() -> Facts:
    import ray

    ray.init(
        address="local",  # this machine, not a cluster that RAY_ADDRESS names
        num_cpus=2,
        num_gpus=0,
        object_store_memory=_OBJECT_STORE,
        include_dashboard=False,
        log_to_driver=False,
    )
    # Only then are its workers up: init returns before.
    assert ray.get(ray.remote(_one).remote()) == 1
    ray.shutdown()
    return {"version": str(ray.__version__)}


def _one() -> int:
    return 1


_PROBES: dict[str, Callable[[], Facts]] = {
    "torch": _torch,
    "transformers": _transformers,
    "vllm": _vllm,
    "flash_attn": _flash_attn,
    "ray": _ray,
}

if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
