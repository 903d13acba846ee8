"""The child's side of `llmpipe.core.pool`: ``python -m llmpipe.core.worker TARGET CPU MEMORY``."""

from __future__ import annotations

import importlib
import os
import resource
import signal
import sys
import traceback

from llmpipe.core.pool import Failure, receive, send


def main(target: str, cpu_seconds: float, memory: int) -> None:
    # Results go out on a private descriptor: whatever a library prints must not mix with them.
    with os.fdopen(os.dup(1), "wb") as out, os.fdopen(os.dup(0), "rb") as tasks:
        os.dup2(2, 1)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        module, _, name = target.partition(":")
        function = getattr(importlib.import_module(module), name)
        while (chunk := receive(tasks)) is not None:
            for arguments in chunk:
                signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
                try:
                    result = function(*arguments)
                except MemoryError:
                    result = Failure("memory", f"over {memory >> 20} MiB of memory")
                except Exception as e:
                    last = traceback.extract_tb(e.__traceback__)[-1]
                    where = f"{os.path.basename(last.filename)}:{last.lineno}"
                    text = str(e)[:200]
                    result = Failure("exception", f"{type(e).__name__} at {where}: {text}")
                signal.setitimer(signal.ITIMER_PROF, 0)
                send(out, result)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
