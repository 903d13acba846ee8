"""Engines in processes of their own: whatever ends, nothing is lost, twice, or left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers import make_artifact, needs_vllm

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import LoadedEngine, Request, Sampling
from llmpipe.core.records import Problem, Rollout
from llmpipe.core.run import Mode
from llmpipe.engines import _fleet
from llmpipe.engines._fleet_process import Post
from llmpipe.engines._start import start
from llmpipe.stages import rollout

_PLUGIN = """
import dataclasses, os, subprocess, sys, time
from llmpipe.engines.scripted import ScriptedEngine

class ENGINE(ScriptedEngine):
    def __init__(self, model, sampling, options):
        super().__init__(model, sampling, options)
        if model.startswith("hangs once: "):
            self.steps = 0
        if model == "dies":
            sys.exit("no luck today")
        if model == "with workers":
            self._worker = subprocess.Popen(["sleep", "98765.4321"], close_fds=False)
        if model.startswith("dies after "):
            lives = model.removeprefix("dies after ")
            if os.path.exists(lives):
                os._exit(3)
            open(lives, "w").close()

    def _answer(self, request):
        if "poison" in request.problem.prompt:
            os.kill(os.getpid(), 9)
        if hasattr(self, "steps"):
            self._step(request)
        answer = super()._answer(request)
        if self._model == "with workers":
            return answer
        cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        text = os.environ["CUDA_VISIBLE_DEVICES"] + " on " + cores
        return dataclasses.replace(answer, text=text)

    def _step(self, request):
        hung = self._model.removeprefix("hangs once: ")
        if "hang" in request.problem.prompt and not os.path.exists(hung):
            with open(hung + ".new", "w") as file:
                file.write(str(os.getpid()))
            os.rename(hung + ".new", hung)
            time.sleep(1e6)
        self.steps += 1

    def close(self):
        if self._model == "with workers":
            self._worker.kill()
            self._worker.wait()
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An engine of another package: its answers say where it runs, some requests kill it."""
    folder = tmp_path / "packages"
    (folder / "telling-1.dist-info").mkdir(parents=True)
    (folder / "telling.py").write_text(_PLUGIN)
    (folder / "telling-1.dist-info/METADATA").write_text("Name: telling\nVersion: 1\n")
    entry = "[llmpipe.engines]\ntelling = telling:ENGINE\n"
    (folder / "telling-1.dist-info/entry_points.txt").write_text(entry)
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.syspath_prepend(str(folder))
    return "telling"


def _requests(problems: int, samples: int = 4, prompt: str = "What is {}?") -> list[Request]:
    made = []
    for i in range(problems):
        problem = Problem.make(
            task="math", source="test", prompt=prompt.format(i), answer=str(i + 1)
        )
        messages = [{"role": "user", "content": problem.prompt}]
        made += [
            Request(problem=problem, sample=j, seed=i * samples + j, messages=messages)  # type: ignore[arg-type]
            for j in range(samples)
        ]
    return made


def _engines(of: int, number: str = "") -> list[int]:
    """The engine processes below one, by their titles."""
    title = f"llmpipe engine {number}".encode()
    found = []
    for child in Path(f"/proc/{of}/task").glob("*/children"):
        for pid in map(int, child.read_text().split()):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(title):
                found.append(pid)
    return found


def _workers() -> list[Path]:
    """What engines "with workers" have started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_bytes() == b"sleep\x0098765.4321\0":
                found.append(folder)
    return found


def _wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.fixture(scope="module")
def fleet() -> Iterator[LoadedEngine]:
    made = start("scripted", "any", Sampling(), {"window": "4", "delay": "0.002"}, gpus="0,1")
    yield made
    made.close()
    assert not _engines(os.getpid())


def test_answers_are_those_of_one_engine_each_with_its_own_request(fleet: LoadedEngine) -> None:
    wanted = _requests(40)
    made = list(fleet.stream(wanted))
    assert all(any(g.request is r for r in wanted) for g in made)
    alone = load("engines", "scripted")("any", Sampling(), {})
    assert Counter((g.request.seed, g.text) for g in made) == Counter(
        (g.request.seed, g.text) for g in alone.stream(wanted)
    )
    described = fleet.describe()
    assert (described["engine"], described["engines"]) == ("scripted", 2)
    assert (described["devices"], described["restarts"]) == ([["0"], ["1"]], 0)


def test_requests_are_drawn_as_there_is_room(fleet: LoadedEngine) -> None:
    drawn = 0

    def requests() -> Iterator[Request]:
        nonlocal drawn
        for request in _requests(100):
            drawn += 1
            yield request

    answers = fleet.stream(requests())
    next(answers)
    # For each of two engines: four seats, as many that wait there and here, half as many that go
    # with a prompt; and those of them that were answered meanwhile.
    assert drawn <= 64
    assert len(list(answers)) == 399


def test_a_stream_that_is_given_up_leaves_the_fleet_usable(fleet: LoadedEngine) -> None:
    answers = fleet.stream(_requests(10))
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    few = _requests(1, samples=3, prompt="Again {}")
    assert {g.request.seed for g in fleet.stream(few)} == {0, 1, 2}
    assert list(fleet.stream([])) == []


def test_of_a_killed_engine_nothing_is_lost_or_twice(
    fleet: LoadedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = _requests(100)
    counted: Counter[int] = Counter()
    for count, made in enumerate(fleet.stream(wanted)):
        assert made.finish_reason != "error"
        counted[made.request.seed] += 1
        if count in (20, 200):
            os.kill(_engines(os.getpid())[0], signal.SIGKILL)
    assert counted == Counter(range(400))
    assert fleet.describe()["restarts"] == 2
    assert "killed by signal 9); it is started again" in caplog.text
    _wait_for(lambda: len(_engines(os.getpid())) == 2)


def test_engines_have_their_devices_cores_and_whole_problems(plugin: str) -> None:
    engine = start(plugin, "any", Sampling(), {"window": "8", "delay": "0.005"}, gpus="3,5")
    try:
        made = list(engine.stream(_requests(60, samples=4)))
    finally:
        engine.close()
    cores: dict[str, set[str]] = defaultdict(set)
    problems: dict[str, set[str]] = defaultdict(set)
    for g in made:
        device, _, on = g.text.partition(" on ")
        cores[device].add(on)
        problems[g.request.problem.id].add(device)
    assert set(cores) == {"3", "5"}
    assert all(len(on) == 1 for on in cores.values())
    mine = [str(core) for core in sorted(os.sched_getaffinity(0))]
    if len(mine) > 1:
        both = [core for [on] in cores.values() for core in on.split(",")]
        assert sorted(both, key=int) == mine
    assert sum(len(devices) == 1 for devices in problems.values()) > 50


def test_what_ends_every_process_is_one_error_and_costs_no_other(plugin: str) -> None:
    wanted = [*_requests(12), *_requests(1, samples=1, prompt="poison {}"), *_requests(8)]
    engine = start(plugin, "with workers", Sampling(), {"window": "4"}, gpus="0,1")
    try:
        made = list(engine.stream(wanted))
        restarts = engine.describe()["restarts"]
        _wait_for(lambda: len(_workers()) == 2)  # none of those that were killed
    finally:
        engine.close()
    assert not _workers()
    assert Counter(id(g.request) for g in made) == Counter(map(id, wanted))
    [failed] = [g for g in made if g.finish_reason == "error"]
    assert failed.request.problem.prompt == "poison 0"
    assert failed.error
    assert "4 engine processes ended" in failed.error
    assert restarts == 4


def test_what_can_not_be_loaded_is_said_as_of_one_engine(plugin: str) -> None:
    before = _engines(os.getpid())  # another test's
    with pytest.raises(UserError, match="no option 'p_corect'") as caught:
        start("scripted", "any", Sampling(), {"p_corect": "1"}, gpus="0,1")
    assert "p_correct" in (caught.value.hint or "")
    with pytest.raises(UserError, match=r"ends again and again: .*no luck today"):
        start(plugin, "dies", Sampling(), {}, gpus="0,1")
    assert _engines(os.getpid()) == before


def test_an_engine_that_never_comes_back_is_done_without(
    plugin: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_fleet, "_BARREN", 2)

    class OneLife(_fleet.Fleet):
        """Its second engine can be loaded once."""

        def _start(self, post: Post) -> None:
            name, _, sampling, options = self._engine
            model = f"dies after {tmp_path / 'life'}" if post.number else "any"
            self._engine = (name, model, sampling, options)
            super()._start(post)

    fleet = OneLife([["0"], ["1"]], plugin, "any", Sampling(), {"delay": "0.01"})
    counted: Counter[int] = Counter()
    killed = 0
    try:
        for made in fleet.stream(_requests(50)):
            counted[made.request.seed] += 1
            if made.text.startswith("1 on") and not killed:
                killed = max(_engines(os.getpid(), "1"))
                os.kill(killed, signal.SIGKILL)
    finally:
        fleet.close()
    assert counted == Counter(range(200))
    assert "engine 1 (1) ended again (exit code 3" in caplog.text


def test_what_hangs_is_started_again(
    plugin: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a step that never ends, while other threads run on; and as a whole, stopped."""
    monkeypatch.setenv("LLMPIPE_ENGINE_TIMEOUT", "4")
    hung = tmp_path / "hung"
    wanted = [*_requests(10), *_requests(1, samples=1, prompt="hang {}"), *_requests(40)[40:]]
    others = set(_engines(os.getpid()))  # the other tests' engines
    engine = start(plugin, f"hangs once: {hung}", Sampling(), {"delay": "0.01"}, gpus="0,1")
    stopped = 0
    try:
        made = []
        for answer in engine.stream(wanted):
            made.append(answer)
            if not stopped and hung.exists():
                [stopped] = set(_engines(os.getpid())) - others - {int(hung.read_text())}
                os.kill(stopped, signal.SIGSTOP)
        restarts = engine.describe()["restarts"]
    finally:
        engine.close()
    assert Counter(id(g.request) for g in made) == Counter(map(id, wanted))
    assert all(g.finish_reason != "error" for g in made)
    assert stopped
    assert restarts == 2
    assert caplog.text.count("ended (no sign of life for 4 s); it is started again") == 2


def test_one_that_works_for_long_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMPIPE_ENGINE_TIMEOUT", "3")
    engine = start("scripted", "any", Sampling(), {"delay": "5"}, gpus="0,1")
    try:
        assert len(list(engine.stream(_requests(1, samples=2)))) == 2
        assert engine.describe()["restarts"] == 0
    finally:
        engine.close()


@pytest.mark.parametrize("given", ["0", "-1", "soon", "nan"])
def test_a_time_limit_that_is_none(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMPIPE_ENGINE_TIMEOUT", given)
    with pytest.raises(UserError, match=f"LLMPIPE_ENGINE_TIMEOUT is '{given}'") as caught:
        start("scripted", "any", Sampling(), {}, gpus="0,1")
    assert "export LLMPIPE_ENGINE_TIMEOUT=1800" in (caught.value.hint or "")


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    rows = [
        Problem.make(task="math", source="test", prompt=f"What is {i}?", answer=str(i))
        for i in range(50)
    ]
    return make_artifact(tmp_path / "problems", rows)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_with_the_parent_all_engines_are_gone(
    plugin: str, problems: Path, tmp_path: Path, how: signal.Signals
) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "llmpipe", "rollout", str(problems), "-o", str(out), "-n", "4"]
    command += ["--engine", plugin, "--model", "with workers", "--max-tokens", "64"]
    command += ["--gpus", "0,1,2", "--engine-arg", "delay=0.1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    journal = tmp_path / "out.partial/journal.jsonl"
    _wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 4)
    engines = _engines(process.pid)
    assert len(engines) == 3
    assert _workers()
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    _wait_for(lambda: all(map(_gone, engines)) and not _workers())
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "the same command goes on from there" in said
        assert "Traceback" not in said
    # Another number of engines may go on with it, and none but this process.
    options = {"engine": plugin, "model": "with workers", "n": 4, "max_tokens": 64}
    rollout.run(rollout.plan(**options), problems, out, Mode())
    assert Artifact.open(out, Rollout).rows == 200
    whole = tmp_path / "whole"
    rollout.run(rollout.plan(**options, gpus="0,1"), problems, whole, Mode())
    rows = [list(Artifact.open(path, Rollout).iter_rows(Rollout)) for path in (out, whole)]
    assert rows[0] == rows[1]
    assert Artifact.open(whole).manifest.details["engine"]["engines"] == 2


@pytest.mark.slow
@needs_vllm
def test_two_of_vllm_one_killed(smol_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    options = {"max_num_seqs": "4", "max_model_len": "512"}
    sampling = Sampling(temperature=1.0, max_tokens=16)
    wanted = _requests(12)
    others = set(_engines(os.getpid()))  # the other tests' engines

    def own() -> list[int]:
        return [pid for pid in _engines(os.getpid()) if pid not in others]

    fleet = start("vllm", str(smol_model), sampling, options, gpus="0,1")
    try:
        made = []
        for answer in fleet.stream(wanted):
            made.append(answer)
            if len(made) == 8:
                _wait_for(lambda: len(own()) == 2)
                os.kill(own()[0], signal.SIGKILL)
        described = fleet.describe()
    finally:
        fleet.close()
    assert Counter(g.request.seed for g in made) == Counter(range(48))
    assert all(g.finish_reason != "error" and g.text for g in made)
    assert described["engine"] == "vllm"
    assert described["restarts"] == 1
