"""A training by several processes, started by ``accelerate launch`` and ended with this one."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import select
import signal
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from llmpipe.core import child, fs
from llmpipe.core.errors import UserError
from llmpipe.core.wire import interpreter
from llmpipe.trainers import _rank
from llmpipe.trainers._interrupt import Interrupt
from llmpipe.trainers._job import Job, Outcome, Watch

_SAID = 8000  # bytes of what they wrote last
_SIGNAL = re.compile(r"Signal (\d+) \((\w+)\) received by PID")


def launched(job: Job, watch: Watch) -> Outcome:
    """Train by the processes that the job's Accelerate config asks for.

    Raises:
        UserError: what one of them says that the user can put right, or that one was killed.
        KeyboardInterrupt: stopped by Ctrl-C, as one process is.
        RuntimeError: one failed for another reason.
    """
    folder = Path(job.folder)
    outcome = folder / "outcome.json"
    outcome.unlink(missing_ok=True)
    fs.write_json(folder / "job.json", asdict(job))
    with Interrupt() as interrupt, Ranks(job, folder / "job.json") as ranks:
        refused, failed, stopped = None, "", False
        for kind, rank, *values in ranks.words(interrupt):
            if kind == "step":
                done, total, figures = values
                watch(done, total, **figures)
            elif kind == "log":
                level, name, message = values
                logging.getLogger(name).log(level, "%s", message)
            elif kind == "refused":
                refused = refused or UserError(*values)
            elif kind == "failed":
                failed = failed or f"process {rank}: {values[0]}"
            elif kind == "stopped":
                stopped = True
        if refused:
            raise refused
        if outcome.is_file():
            return Outcome(**json.loads(outcome.read_text(encoding="utf-8")))
        if stopped or interrupt.pressed:
            raise KeyboardInterrupt
        raise ranks.death(failed)


class Ranks:
    """The processes, numbered as `torch.distributed` does. All end with this."""

    def __init__(self, job: Job, file: Path) -> None:
        self._config = job.settings.accelerate_config
        self._mark = secrets.token_hex(8)
        self._pids: dict[int, int] = {}
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `__exit__`
        # Both ends of both are kept: the ranks open theirs by this process's id (`_rank`).
        self._words, self._mouth = os.pipe()
        self._lifeline, self._hold = os.pipe()
        command, environment = interpreter("llmpipe.trainers._launcher")
        command += [str(self._lifeline), *_options(job), "-m", _rank.__name__, str(file)]
        command += [str(n) for n in (os.getpid(), self._mouth, self._lifeline)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            # A user's math.py in the working directory must not be imported by the ranks, either.
            env={**os.environ, **environment, "PYTHONSAFEPATH": "1", child.MARK: self._mark},
            pass_fds=(self._lifeline,),
            start_new_session=True,  # Ctrl-C is this process's business
        )

    def words(self, interrupt: Interrupt) -> Iterator[list[Any]]:
        """What they say, until all have ended; Ctrl-C is handed on to each once."""
        told: set[int] = set()
        left = b""
        while True:
            ended = self._process.poll() is not None
            if select.select([self._words], [], [], 0 if ended else 0.2)[0]:
                *lines, left = (left + os.read(self._words, 1 << 16)).split(b"\n")
                for line in lines:
                    kind, rank, *values = json.loads(line)
                    if kind == "begun":
                        self._pids[rank] = values[0]
                    else:
                        yield [kind, rank, *values]
            elif ended:
                return
            if interrupt.pressed:
                for pid in set(self._pids.values()) - told:
                    told.add(pid)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGINT)

    def death(self, failed: str) -> Exception:
        """Why they ended without an outcome."""
        said = _tail(self._said)
        if killed := _SIGNAL.search(said):
            memory = "it had no memory left, most likely: " if killed[1] == "9" else ""
            return UserError(
                f"a training process was killed by signal {killed[1]} ({killed[2]})",
                f"{memory}a smaller --micro-batch-size; the same command goes on from the last "
                "checkpoint",
            )
        if failed:
            return RuntimeError(f"{failed}\n{said}")
        last = textwrap.shorten(said.rpartition("\n")[2], 240)
        return UserError(
            f"accelerate launch ended with exit code {self._process.returncode}: {last}",
            f"accelerate test --config_file {self._config}",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        child.end(self._process, self._mark)
        for end in (self._words, self._mouth, self._lifeline, self._hold):
            os.close(end)
        self._said.close()


def _options(job: Job) -> list[str]:
    """Options of ``accelerate launch``: those of llmpipe's that win over the config's own."""
    settings = job.settings
    assert settings.accelerate_config
    return [
        f"--config_file={settings.accelerate_config}",
        f"--num_processes={settings.processes}",
        f"--mixed_precision={'bf16' if settings.dtype == 'bfloat16' else 'no'}",
        f"--gradient_accumulation_steps={settings.gradient_accumulation}",
        f"--gradient_clipping={settings.max_grad_norm}",
        "--main_process_port=0",  # any that is free: several may train side by side
    ]


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _SAID))
    return file.read().decode(errors="replace").strip()
