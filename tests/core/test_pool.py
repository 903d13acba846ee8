"""The pool against real hung, greedy and dying tasks."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kills import children

from llmpipe.core import pool as pool_module
from llmpipe.core.pool import Failure, WorkerPool

TARGETS = """
import math, os, signal, sys, time

warm = []

def double(x):
    return 2 * x

def act(what, x=None):
    if what == "power":
        return len(str(9 ** 9 ** x))
    if what == "factorial":
        return math.factorial(x) > 0
    if what == "sleep":
        time.sleep(x)
    if what == "hog":
        return len([bytearray(x)])
    if what == "exit":
        os._exit(x)
    if what == "raise":
        raise ValueError(x)
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "print":
        print(x)
        os.write(1, x.encode())
        os.write(2, x.encode())
        return sys.stdin.read()
    if what == "unsendable":
        return lambda: x
    if what == "pid":
        return os.getpid()
    if what == "warm":
        return list(warm)
    return what

def warm_up(x, seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    warm.append(x)
    return list(warm)
"""


@pytest.fixture(autouse=True)
def _targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pool_targets.py").write_text(TARGETS)
    (tmp_path / "pool_broken.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def _alive(pid: int) -> bool:
    """Whether a process runs (a zombie doesn't)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait_gone(pid: int) -> bool:
    for _ in range(200):
        if not _alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_results_come_in_the_order_of_the_tasks() -> None:
    with WorkerPool("pool_targets:double", workers=2) as pool:
        assert list(pool.map((i,) for i in range(1000))) == [2 * i for i in range(1000)]
        assert list(pool.map([])) == []
        assert list(pool.map([("a",)])) == ["aa"]


def test_none_is_a_result() -> None:
    with WorkerPool("pool_targets:act", workers=1) as pool:
        assert list(pool.map([(None,), ("sleep", 0)])) == [None, "sleep"]


def test_hung_tasks_are_killed_and_the_others_go_on() -> None:
    tasks = [("a",), ("power", 9), ("b",), ("factorial", 10**8), ("c",), ("power", 10), ("d",)]
    with WorkerPool("pool_targets:act", workers=2, cpu_seconds=0.5) as pool:
        results = list(pool.map(tasks))
    hung = Failure("timeout", "over 0.5 s of CPU time")
    assert results == ["a", hung, "b", hung, "c", hung, "d"]


def test_waiting_is_not_working() -> None:
    with WorkerPool("pool_targets:act", workers=1, cpu_seconds=0.3) as pool:
        assert list(pool.map([("sleep", 1.0)])) == ["sleep"]


def test_the_limit_is_for_each_call() -> None:
    with WorkerPool("pool_targets:warm_up", workers=1, cpu_seconds=0.5) as pool:
        assert len(list(pool.map((i, 0.2) for i in range(4)))[-1]) == 4


def test_a_task_that_waits_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_WALL_SECONDS", 3)
    with WorkerPool("pool_targets:act", workers=1) as pool:
        results = list(pool.map([("sleep", 1000), ("a",)]))
    assert results == [Failure("timeout", "no result after 3 s"), "a"]


def test_memory_is_limited_and_the_worker_replaced() -> None:
    with WorkerPool("pool_targets:act", workers=1, memory=1 << 30) as pool:
        before, hog, after, small = pool.map([("pid",), ("hog", 2 << 30), ("pid",), ("hog", 1000)])
    assert hog == Failure("memory", "over 1024 MiB of memory")
    assert before != after
    assert small == 1


def test_a_task_that_ends_its_process_fails_alone() -> None:
    with WorkerPool("pool_targets:act", workers=2) as pool:
        results = list(pool.map([("a",), ("exit", 7), ("b",), ("kill",), ("c",)]))
    died = [Failure("died", f"the worker ended with code {c}") for c in (7, -signal.SIGKILL)]
    assert results == ["a", died[0], "b", died[1], "c"]


def test_an_exception_is_a_failure_with_its_place() -> None:
    with WorkerPool("pool_targets:act", workers=1) as pool:
        raised, unsendable, fine = pool.map([("raise", "no good"), ("unsendable",), ("a",)])
    assert raised.kind == "exception"
    assert raised.detail.startswith("ValueError at pool_targets.py:")
    assert raised.detail.endswith(": no good")
    assert unsendable.kind == "exception"
    assert fine == "a"


def test_what_a_task_prints_or_reads_does_not_mix_with_results() -> None:
    with WorkerPool("pool_targets:act", workers=1) as pool:
        assert list(pool.map([("print", "x" * 100_000), ("a",)])) == ["", "a"]


def test_large_tasks_and_results() -> None:
    texts = [chr(97 + i % 26) * 300_000 for i in range(80)]
    with WorkerPool("pool_targets:double", workers=2) as pool:
        assert list(pool.map((t,) for t in texts)) == [t * 2 for t in texts]


def test_a_worker_killed_from_outside_costs_no_task() -> None:
    with WorkerPool("pool_targets:act", workers=2) as pool:
        pid = next(pool.map([("pid",)]))
        killer = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
        killer.start()
        results = list(pool.map([("sleep", 2.0)] + [("a",)] * 99))
        killer.join()
        assert results == ["sleep"] + ["a"] * 99


def test_workers_killed_as_they_start_are_started_again_but_not_for_ever() -> None:
    warm_up = [("sleep", 1.0)]
    with WorkerPool("pool_targets:act", workers=1, warm_up=warm_up) as pool, _killing(2):
        assert list(pool.map([("a",), ("b",)])) == ["a", "b"]
    with (
        WorkerPool("pool_targets:act", workers=1, warm_up=warm_up) as pool,
        _killing(3),
        pytest.raises(RuntimeError, match="did not start: exit code -9"),
    ):
        list(pool.map([("a",)]))


@contextlib.contextmanager
def _killing(count: int) -> Iterator[None]:
    """Kill the next ``count`` workers of this process as soon as they are there."""

    seen = set(children(os.getpid(), b"llmpipe.core.worker"))
    over = threading.Event()

    def kill() -> None:
        for _ in range(count):
            new: set[int] = set()
            while not new and not over.wait(0.01):
                new = set(children(os.getpid(), b"llmpipe.core.worker")) - seen
            for pid in new:
                os.kill(pid, signal.SIGKILL)
            seen.update(new)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


def test_an_idle_worker_killed_from_outside_costs_nothing() -> None:
    with WorkerPool("pool_targets:act", workers=1) as pool:
        pid = next(iter(list(pool.map([("pid",)]))))
        os.kill(pid, signal.SIGKILL)
        assert _wait_gone(pid)
        assert list(pool.map([("a",)])) == ["a"]


@pytest.mark.parametrize(
    ("target", "memory", "said"),
    [
        ("pool_broken:f", 4 << 30, "no_such_module_anywhere"),
        ("pool_targets:nothing", 4 << 30, "has no attribute 'nothing'"),
        ("llmpipe.core.records:to_batch", 100 << 20, "exit code"),
    ],
)
def test_a_worker_that_cannot_start_says_why(target: str, memory: int, said: str) -> None:
    with (
        WorkerPool(target, workers=2, memory=memory) as pool,
        pytest.raises(RuntimeError, match="did not start") as error,
    ):
        list(pool.map([(1,)] * 100))
    assert said in str(error.value)


def test_warm_up_is_free_and_comes_first() -> None:
    calls = [("x", 0.6), ("bad",)]  # the second raises, which is its own business
    with WorkerPool("pool_targets:warm_up", workers=1, cpu_seconds=0.3, warm_up=calls) as pool:
        assert list(pool.map([("y", 0), ("z", 0)])) == [["x", "y"], ["x", "y", "z"]]


def test_tasks_are_drawn_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_AHEAD", 100)
    drawn = 0

    def endless() -> Iterator[tuple[int]]:
        nonlocal drawn
        for i in itertools.count():
            drawn += 1
            yield (i,)

    with WorkerPool("pool_targets:double", workers=2) as pool:
        results = pool.map(endless())
        for wanted in range(500):
            assert next(results) == 2 * wanted
            assert drawn <= wanted + 200
        results.close()
        assert list(pool.map([(7,)])) == [14]  # nothing of the other map is left in it


def test_an_input_that_raises_ends_the_map() -> None:
    def broken() -> Iterator[tuple[int]]:
        yield (1,)
        raise KeyError("gone")

    with WorkerPool("pool_targets:double", workers=1) as pool:
        with pytest.raises(KeyError, match="gone"):
            list(pool.map(broken()))
        assert list(pool.map([(1,)])) == [2]


def test_two_maps_at_once_are_refused() -> None:
    with WorkerPool("pool_targets:double", workers=1) as pool:
        first = pool.map([(1,), (2,)])
        next(first)
        with pytest.raises(RuntimeError, match="busy"):
            list(pool.map([(3,)]))
        assert list(first) == [4]


def test_works_in_threads() -> None:
    results: dict[int, list[int]] = {}

    def work(k: int) -> None:
        with WorkerPool("pool_targets:act", workers=1, cpu_seconds=0.5) as pool:
            results[k] = list(pool.map([(k,), ("power", 9), (k,)]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    hung = Failure("timeout", "over 0.5 s of CPU time")
    assert results == {k: [k, hung, k] for k in range(3)}


def test_nothing_is_left_after_close() -> None:
    pool = WorkerPool("pool_targets:act", workers=2)
    pids = set(pool.map([("pid",)] * 200))
    files = len(list(Path("/proc/self/fd").iterdir()))
    pool.close()
    assert not any(_alive(p) for p in pids)
    assert len(list(Path("/proc/self/fd").iterdir())) == files - 3 * len(pids)
    assert list(pool.map([("a",)])) == ["a"]  # it may be used again
    pool.close()


@pytest.mark.parametrize("then", ["nothing", "list(pool.map([('power', 9)]))"])
def test_workers_end_when_the_parent_is_killed(then: str) -> None:
    """An idle one sees the end of its input; one in a hung task has its CPU limit."""
    code = f"""
import threading
from llmpipe.core.pool import WorkerPool
pool = WorkerPool("pool_targets:act", workers=1, cpu_seconds=1)
print(*pool.map([("pid",)]), flush=True)
nothing = None
threading.Thread(target=lambda: {then}, daemon=True).start()
threading.Event().wait()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _alive(pid)
        time.sleep(0.2)
        parent.kill()
    assert _wait_gone(pid)
