"""What was written reaches the disk within a second, also when nothing more is written."""

from __future__ import annotations

import os
import threading

_SECONDS = 1.0


class Syncer:
    """Sync an open file beside its writer, at most once a second; idle, it does nothing.

    A writer that synced by itself would stop what it feeds on for as long as a slow disk takes,
    and would leave its last rows unsynced while it waits for the next one.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="llmpipe sync", daemon=True)
        self._thread.start()

    def written(self) -> None:
        """Say that there is something to sync.

        Raises:
            OSError: what was written before could not be synced.
        """
        if self._error:
            raise self._error
        self._wanted.set()

    def stop(self) -> None:
        """Sync no more; the last second is the caller's to sync.

        Raises:
            OSError: what was written before could not be synced. The kernel says so only once.
        """
        self._stopped.set()
        self._wanted.set()
        self._thread.join()
        if self._error:
            raise self._error

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            if self._stopped.wait(_SECONDS):
                return
            self._wanted.clear()
            try:
                os.fsync(self._descriptor)
            except OSError as e:
                self._error = e
                return
