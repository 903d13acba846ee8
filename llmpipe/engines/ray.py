"""Another engine on a cluster: one in each actor of Ray Data's pool.

Ray Data reads from sources, not from a generator of this process. So a source is made of one: a
small actor beside this process, the hub, is given requests, and one read task hands them on as
blocks until the engine is closed. From there on it is Ray Data's ``map_batches`` over a pool of
actors. The dataset is executed once and serves all calls of `RayEngine.stream`, so the models stay
loaded; an actor has many calls under way, all answered by its one engine, so that no batch waits
for the slowest of another. This process never has more requests out than the actors have room for,
whatever Ray Data would buffer. Each call's answers come back when the call is done: with
``batch_size`` 1, as soon as each is finished.

An actor that dies, with its node or alone, is started again by Ray, which repeats the calls it had
under way, `_RETRIES` times at most; answers that were given stay given.
"""

from __future__ import annotations

import importlib
import itertools
import logging
import pickle
import queue
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from llmpipe.core.errors import UserError
from llmpipe.core.options import whole
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Engine, Generation, Request, Sampling
from llmpipe.engines import _ray_actor
from llmpipe.engines._ray_cluster import Cluster
from llmpipe.engines._ray_pool import RayPool

log = logging.getLogger(__name__)

_RETRIES = 3
_PATIENCE = 60.0  # seconds, after which it is said that others may hold what is needed
_OWN = frozenset({"engine", "address", "actors", "in_flight", "batch_size"})


class RayEngine:
    """Answers from engines in a Ray cluster. Options that are not named here are the inner one's.

    ``engine`` is the inner engine (vllm), ``address`` that of the cluster, ``actors`` how many
    engines (as many as the GPUs allow; without GPUs, one), ``in_flight`` the requests that an actor
    has under way (256), ``batch_size`` those handed over and answered together (1).
    """

    local_model: ClassVar[bool] = False  # that of the inner engine counts
    speed_options: ClassVar[frozenset[str]] = _OWN - {"engine"}
    wraps: ClassVar[bool] = True

    @classmethod
    def check(cls, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        """Raise `UserError` for what can be known to be wrong before minutes of loading."""
        kind = _inner(options)
        for name, default in (("actors", 1), ("in_flight", 256), ("batch_size", 1)):
            whole(options, name, default)
        kind.check(model, sampling, _passed_on(options))

    @classmethod
    def gpus_each(cls, options: Mapping[str, str]) -> int:
        return 0

    def __init__(self, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        """Start the actors and wait until the first has loaded its model.

        Raises:
            UserError: no Ray, no cluster at that address, or what the inner engine raises.
        """
        self.check(model, sampling, options)
        self._batch_size = whole(options, "batch_size", 1)
        calls = max(1, whole(options, "in_flight", 256) // self._batch_size)
        self._cluster = Cluster(options.get("address"))
        try:
            gpus = self._cluster.count("GPU")
            each = whole(options, "tensor_parallel_size", 1) if gpus else 0
            self._actors = whole(options, "actors", max(1, gpus // each) if each else 1)
            self._room = self._actors * calls  # batches that may be out
            self._numbers = itertools.count()
            self._results: queue.SimpleQueue[tuple[int, bytes] | Exception] = queue.SimpleQueue()
            self._closing = False
            ray = self._cluster.ray
            self._hub = ray.remote(_ray_actor.Hub).options(**self._cluster.here).remote()
            dataset = self._dataset(
                calls,
                self._resources(each),
                options.get("engine", "vllm"),
                model,
                pickle.dumps(sampling),
                _passed_on(options),
            )
            self._running = threading.Thread(target=self._run, args=(dataset,), daemon=True)
            self._running.start()
            self._inner = self._loaded()
        except BaseException:
            self.close()
            raise

    @property
    def seats(self) -> int:
        return self._room * self._batch_size

    def describe(self) -> Mapping[str, Any]:
        return {**self._inner, **self._cluster.describe(), "actors": self._actors}

    def stream(self, requests: Iterable[Request]) -> Iterator[Generation]:
        """Answers as they come back, in any order.

        Raises:
            RuntimeError: an actor died again and again, or the cluster is gone.
        """
        waiting = iter(requests)
        out: dict[int, list[Request]] = {}
        while True:
            while len(out) < self._room and (
                batch := list(itertools.islice(waiting, self._batch_size))
            ):
                number = next(self._numbers)
                out[number] = batch
                self._hub.put.remote(number, pickle.dumps(batch))
            if not out:
                return
            result = self._results.get()
            if isinstance(result, Exception):
                raise RuntimeError(f"the engines on Ray broke: {_last_line(result)}") from result
            number, answers = result
            self._hub.answered.remote(number)
            # Those of a stream that was given up belong to nobody.
            for request, fields in zip(out.pop(number, ()), pickle.loads(answers), strict=False):
                yield Generation(request=request, **fields)

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        self._closing = True
        self._cluster.hush()
        if hasattr(self, "_hub"):
            self._cluster.ray.kill(self._hub)  # the read breaks, and the dataset with it
            if hasattr(self, "_running"):
                self._running.join(timeout=30)
        self._cluster.close()

    def _resources(self, gpus: int) -> Mapping[str, float]:
        """What an actor takes: its GPUs, or its share of this machine's cores."""
        if gpus:
            return {"num_cpus": 1, "num_gpus": gpus}
        cores = self._cluster.count("CPU") if self._cluster.local else self._actors
        share = cores / self._actors
        return {"num_cpus": int(share) if share >= 1 else share}

    def _dataset(self, calls: int, resources: Mapping[str, float], *arguments: Any) -> Any:
        data = importlib.import_module("ray.data")
        for handler in logging.getLogger("ray.data").handlers:
            own = type(handler).__module__.startswith("ray.")  # others listen, too
            if own and isinstance(handler, logging.StreamHandler):  # its file keeps everything
                handler.setLevel(logging.CRITICAL)
        context = data.DataContext.get_current().copy()
        context.enable_progress_bars = False
        context.target_max_block_size = 1  # byte: a block goes on at once, not when it is large
        context.max_consecutive_actor_init_deaths = 0  # what can't be loaded once never can
        # Ray 2.60 finds the number of retries, without which it repeats for ever, out of date; it
        # has no other word for it.
        with data.DataContext.current(context), warnings.catch_warnings(action="ignore"):
            return data.read_datasource(
                _source(self._hub), override_num_blocks=1, **self._cluster.here
            ).map_batches(
                _ray_actor.EngineActor,
                fn_constructor_args=(self._hub, *arguments),
                batch_size=None,
                batch_format="pyarrow",
                compute=data.ActorPoolStrategy(
                    size=self._actors,
                    max_tasks_in_flight_per_actor=calls,
                    max_concurrent_calls_per_actor=calls,
                    enable_true_multi_threading=True,
                ),
                max_task_retries=_RETRIES,
                **resources,
            )

    def _run(self, dataset: Any) -> None:
        """Take the answers off the dataset, in a thread of its own, until the engine is closed."""
        get = self._cluster.ray.get
        try:
            for bundle in dataset.iter_internal_ref_bundles():
                for ref in bundle.block_refs:
                    block = get(ref)
                    for row in block.to_pylist():
                        self._results.put((row["number"], row["payload"]))
            raise RuntimeError("the dataset has ended")
        except Exception as e:
            if not self._closing:
                self._results.put(e)

    def _loaded(self) -> Mapping[str, Any]:
        """What the first actor says of its engine, once it is loaded."""
        get, wait = self._cluster.ray.get, self._cluster.ray.wait
        heard = self._hub.heard.remote()
        patience = time.monotonic() + _PATIENCE
        while not wait([heard], timeout=0.5)[0]:
            if time.monotonic() > patience:
                patience += _PATIENCE
                log.warning(
                    "no engine is loaded on Ray yet; free there: %d CPUs, %d GPUs",
                    self._cluster.free("CPU"),
                    self._cluster.free("GPU"),
                )
            if not self._results.empty():
                error = self._results.get()
                raise RuntimeError(f"no engine could be started on Ray: {_last_line(error)}")
        said: Mapping[str, Any] | UserError = get(heard)
        if isinstance(said, UserError):
            raise said
        return said

    @staticmethod
    def pool(target: str, arguments: tuple[Any, ...]) -> RayPool:
        """Judging workers on a cluster, in the place of one machine's: see `RayPool`."""
        return RayPool(target, arguments)


ENGINE = RayEngine


def _source(hub: Any) -> Any:
    data = importlib.import_module("ray.data")
    block = importlib.import_module("ray.data.block")

    class Requests(data.Datasource):  # type: ignore[misc, name-defined]
        """What the hub is given, as it is given."""

        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[Any]:
            unknown = block.BlockMetadata(
                num_rows=None, size_bytes=None, input_files=None, exec_stats=None
            )
            return [data.ReadTask(lambda: _ray_actor.read(hub), unknown)]

    return Requests()


def _inner(options: Mapping[str, str]) -> type[Engine]:
    name = options.get("engine", "vllm")
    kind: type[Engine] = load("engines", name)
    if kind.wraps:
        raise UserError(
            f"{name} can't run inside ray: it only runs another", "--engine-arg engine=vllm"
        )
    return kind


def _passed_on(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name not in _OWN}


def _last_line(e: object) -> str:
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    return lines[-1] if lines else type(e).__name__
