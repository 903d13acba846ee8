"""The child's side of `llmpipe.core.pool`: ``python -m llmpipe.core.worker TARGET CPU MEMORY``."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llmpipe.core.pool import Failure
from llmpipe.core.wire import receive, send


def main(target: str, cpu_seconds: float, memory: int) -> None:
    """Answer calls until the input ends; what goes wrong at the start is written to stderr."""
    # Tasks and results go over private descriptors: whatever a library prints or reads must not
    # mix with them.
    with os.fdopen(os.dup(1), "wb") as out, os.fdopen(os.dup(0), "rb") as tasks:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # A parent may have blocked or ignored it, and both are inherited.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
        module, _, name = target.partition(":")
        function = getattr(importlib.import_module(module), name)
        with contextlib.suppress(EOFError, BrokenPipeError):  # the parent is gone
            for arguments in receive(tasks):
                with contextlib.suppress(Exception):
                    function(*arguments)
            os.dup2(null, 2)
            send(out, "ready")
            while True:
                for arguments in receive(tasks):
                    result = _call(function, arguments, cpu_seconds, memory)
                    send(out, result)
                    if isinstance(result, Failure) and result.kind == "memory":
                        return


def _call(
    function: Callable[..., Any], arguments: tuple[Any, ...], cpu_seconds: float, memory: int
) -> Any:
    """What the function returns, or how it failed. The kernel ends the process at the limit."""
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        result = function(*arguments)
        pickle.dumps(result)  # what can't be sent is this call's failure, not the worker's
    except MemoryError:
        result = Failure("memory", f"over {memory >> 20} MiB of memory")
    except Exception as e:
        last = traceback.extract_tb(e.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        result = Failure("exception", f"{type(e).__name__} at {where}: {str(e)[:200]}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return result


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
