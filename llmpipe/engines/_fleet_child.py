"""One engine of a fleet: ``python -m llmpipe.engines._fleet_child SOCKET LIFELINE NUMBER CORES``.

Whatever becomes of the parent, nothing stays behind. While it lives it holds the other end of
``LIFELINE``; with that gone the kernel kills this process and those it started at once, even in the
middle of a C call.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import sys
import threading
import time
import traceback
from typing import IO, Any

from setproctitle import setproctitle

from llmpipe.core.child import end_with
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Engine
from llmpipe.core.wire import receive, send
from llmpipe.engines._inbox import Inbox, fields


def main(wire: int, lifeline: int, number: str, cores: set[int]) -> None:
    """Load the engine and answer requests until the parent has no more."""
    end_with(lifeline)
    setproctitle(f"llmpipe engine {number}")
    if cores:
        os.sched_setaffinity(0, cores)
    os.dup2(2, 1)  # what native code prints
    with socket.socket(fileno=wire) as connection:
        tasks, mouth = connection.makefile("rb"), _Mouth(connection.makefile("wb"))
        logging.getLogger().addHandler(mouth)
        try:
            _serve(tasks, mouth)
        except BaseException:
            # Threads of a broken engine may never end.
            traceback.print_exc()
            mouth.finish()
            os._exit(1)
        mouth.finish()


def _serve(tasks: IO[bytes], mouth: _Mouth) -> None:
    seconds, name, model, sampling, options = receive(tasks)
    pulse = _Pulse(mouth, seconds)
    try:
        engine: Engine = load("engines", name)(model, sampling, options)
    except UserError as e:
        mouth.say("refused", (e.message, e.hint))
        return
    pulse.engine = engine
    mouth.say("ready", (engine.seats, dict(engine.describe())))
    inbox: Inbox[int] = Inbox()
    threading.Thread(target=_listen, args=(tasks, inbox), daemon=True).start()
    for number, answer in inbox.serve(engine):
        mouth.say("answer", (number, fields(answer)))
    engine.close()


def _listen(tasks: IO[bytes], inbox: Inbox[int]) -> None:
    """Hand on what the parent gives: a list of requests, or None to drop those it gave."""
    try:
        while True:
            given = receive(tasks)
            if given is None:
                inbox.drop()
            else:
                inbox.put(given)
    except (EOFError, ConnectionResetError):
        pass
    finally:
        inbox.close()


class _Mouth(logging.Handler):
    """Tells the parent, from a thread of its own: a parent that is busy holds up no engine.

    As a log handler it tells what is worth a warning, too.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(logging.WARNING)
        self._words: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self._stream = stream
        self._thread = threading.Thread(target=self._speak, daemon=True)
        self._thread.start()

    def say(self, kind: str, value: Any) -> None:
        self._words.put((kind, value))

    def emit(self, record: logging.LogRecord) -> None:
        self.say("log", (record.levelno, record.name, record.getMessage()))

    def finish(self) -> None:
        """Have everything said."""
        self._words.put(None)
        self._thread.join()

    def _speak(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the parent is gone
            while word := self._words.get():
                words = [word]
                with contextlib.suppress(queue.Empty):
                    while word := self._words.get_nowait():
                        words.append(word)
                send(self._stream, words)
                if word is None:
                    return


class _Pulse:
    """Tells the parent every few seconds that this process runs.

    Of a loaded engine that counts its ``steps`` it tells only where these go on: a thread runs on
    beside a call into a driver that never returns.
    """

    def __init__(self, mouth: _Mouth, seconds: float) -> None:
        self.engine: Engine | None = None
        self._mouth = mouth
        self._seconds = seconds
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        before = None
        while True:
            time.sleep(self._seconds)
            steps = getattr(self.engine, "steps", None)
            if steps is None or steps != before:
                self._mouth.say("beat", None)
            before = steps


if __name__ == "__main__":
    main(
        int(sys.argv[1]),
        int(sys.argv[2]),
        sys.argv[3],
        {int(core) for core in sys.argv[4].split(",") if core},
    )
