"""One process of a training that has several: ``python -m ... JOB PARENT WORDS LIFELINE``.

What starts the processes hands no open files on. But the parent's are to be found by its id: the
pipe of ``WORDS`` is written to, a line of JSON each, and ``LIFELINE`` closes when the parent ends.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from setproctitle import setproctitle

from llmpipe.core import fs
from llmpipe.core.child import end_with
from llmpipe.core.errors import UserError
from llmpipe.trainers import _interrupt
from llmpipe.trainers._job import read_job

_LONGEST = 900  # characters: a line of less than 4096 bytes is written in one piece


class Mouth(logging.Handler):
    """Tells the parent; as a log handler what is worth a line there."""

    def __init__(self, words: int, rank: int) -> None:
        super().__init__(logging.INFO)
        self._words = words
        self._rank = rank

    def say(self, kind: str, *values: Any) -> None:
        cut = [value[:_LONGEST] if isinstance(value, str) else value for value in values]
        line = json.dumps([kind, self._rank, *cut], ensure_ascii=False)
        os.write(self._words, line.encode() + b"\n")

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == _interrupt.__name__:
            return  # the parent says it itself
        if record.name.startswith("llmpipe.") or record.levelno >= logging.WARNING:
            self.say("log", record.levelno, record.name, record.getMessage())


def main(file: Path, words: int, outcome: Path) -> int:
    """Train with the others, and return the exit code: 1 has them all ended."""
    rank, world = (int(os.environ.get(name, n)) for name, n in (("RANK", "0"), ("WORLD_SIZE", "1")))
    setproctitle(f"llmpipe train {rank}")
    mouth = Mouth(words, rank)
    if rank == 0:
        logging.getLogger().addHandler(mouth)
        logging.getLogger("llmpipe").setLevel(logging.INFO)
    logging.getLogger("accelerate").setLevel(logging.ERROR)  # warns of what the Trainer sees to
    mouth.say("begun", os.getpid())

    def watch(done: int, total: int | None, **figures: Any) -> None:
        if rank == 0:
            mouth.say("step", done, total, figures)

    try:
        job = read_job(file)
        if world != job.settings.processes:
            raise UserError(
                f"{job.settings.accelerate_config} is for {job.settings.processes} processes, "
                f"but accelerate started {world}",
                f"accelerate config --config_file {job.settings.accelerate_config}",
            )
        from llmpipe.trainers.sft import train_here

        made = train_here(job, watch)
        if rank == 0:
            fs.write_json(outcome, asdict(made))
    except UserError as e:
        mouth.say("refused", e.message, e.hint)
        return 1
    except KeyboardInterrupt:
        mouth.say("stopped")
    except BaseException as e:
        traceback.print_exc()
        mouth.say("failed", f"{type(e).__name__}: {e}")
        return 1
    return 0


if __name__ == "__main__":
    parent = Path("/proc", sys.argv[2], "fd")
    end_with(os.open(parent / sys.argv[4], os.O_RDONLY))
    job_file = Path(sys.argv[1])
    code = main(
        job_file, os.open(parent / sys.argv[3], os.O_WRONLY), job_file.with_name("outcome.json")
    )
    sys.stderr.flush()
    os._exit(code)  # the others may be gone: what is left open between them would be waited for
