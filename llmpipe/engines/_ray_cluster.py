"""Ray, joined or started: by the address given, else by RAY_ADDRESS, else on this machine alone."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import secrets
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

from llmpipe.core.errors import UserError
from llmpipe.core.libraries import needs

log = logging.getLogger(__name__)

_OBJECT_STORE = 512 << 20  # bytes, on this machine: requests and answers are small and soon gone

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Actors without a GPU see none, as it was; only unset does Ray warn that this will change.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
    # It logs as an error how Ray Data itself starts its actors.
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}


class Cluster:
    """The Ray that this process is connected to. What was started here, `close` ends."""

    def __init__(self, address: str | None = None) -> None:
        """Join the cluster at ``address``, or start one with the cores this process may use.

        Raises:
            UserError: no Ray here, or none at that address.
        """
        address = address or os.environ.get("RAY_ADDRESS") or "local"
        self.local = address == "local"
        self._closed = False
        settings = dict(_ENVIRONMENT)
        # Ray reads them when it is imported. Where vLLM did that before, a token set now would be
        # the cluster's and not this process's.
        if self.local and "ray" not in sys.modules:
            settings |= _secret()
        for name, value in settings.items():
            os.environ.setdefault(name, value)
        with needs("ray", "pip install 'llmpipe[ray]'"):
            self.ray = importlib.import_module("ray")
        # What of its notes concerns a user is in the errors it raises.
        logging.getLogger("ray").setLevel(logging.CRITICAL)
        self._ours = not self.ray.is_initialized()
        if self._ours:
            options: dict[str, Any] = {"address": address}
            if self.local:
                options["num_cpus"] = len(os.sched_getaffinity(0))
                options["object_store_memory"] = _OBJECT_STORE
                options["include_dashboard"] = False
            try:
                self.ray.init(**options, log_to_driver=False, logging_level=logging.CRITICAL)
            except Exception as e:  # whatever is in the way: a port, a token, another version
                said = (str(e).strip() or type(e).__name__).splitlines()[0]
                raise UserError(f"Ray at {address} can't be used: {said}", "llmpipe doctor") from e
            # Whatever `log_to_driver` says, Ray prints what its raylet reports to stdout, which is
            # data here, with the tracebacks of actors that end because this process does.
            worker: Any = importlib.import_module("ray._private.worker")
            if hasattr(worker, "print_to_stdstream"):
                worker.print_to_stdstream = self._hear

    def _hear(self, data: Mapping[str, Any], *_: Any, **__: Any) -> None:
        """Say in short what Ray reports, until this is closed."""
        said = "\n".join(map(str, data.get("lines", ()))).strip()
        log.debug("Ray says: %s", said)
        if said and not self._closed:
            log.warning("Ray says: %s", textwrap.shorten(said.splitlines()[0], 160))

    @property
    def here(self) -> Mapping[str, Any]:
        """Options of a task or an actor that is to stay on this machine, and needs no core."""
        node = self.ray.get_runtime_context().get_node_id()
        return {"num_cpus": 0, "label_selector": {"ray.io/node-id": node}}

    def count(self, resource: str) -> int:
        """How many of a resource ("CPU", "GPU") the whole cluster has."""
        return int(self.ray.cluster_resources().get(resource, 0))

    def free(self, resource: str) -> int:
        """How many of them nobody holds now."""
        return int(self.ray.available_resources().get(resource, 0))

    def describe(self) -> Mapping[str, Any]:
        return {
            "ray": self.ray.__version__,
            "cluster": "this machine" if self.local else "joined",
        }

    def hush(self) -> None:
        """Say no more of what Ray reports: actors are about to be ended."""
        self._closed = True

    def close(self) -> None:
        """Leave Ray, and end it if it was started here."""
        self.hush()
        if self._ours:
            with contextlib.suppress(Exception):
                self.ray.shutdown()


def _secret() -> dict[str, str]:
    """A token of this run's own: otherwise Ray would write one to the user's home."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
