"""Engines and judges on a real Ray cluster of this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import io
import itertools
import logging
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import make_artifact, needs_vllm

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Engine, Request, Sampling
from llmpipe.core.records import Problem, Rollout, Verdict
from llmpipe.core.run import Mode
from llmpipe.core.time_limit import TimeIsUp, TimeLimit
from llmpipe.stages.verify import Config, run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed here"
)

_OPTIONS = {"engine": "scripted", "actors": "2", "in_flight": "4", "delay": "0.01"}


_LISTENER = logging.StreamHandler(io.StringIO())


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    importlib.import_module("ray.data")  # it sets its handlers anew
    logging.getLogger("ray.data").addHandler(_LISTENER)
    made = load("engines", "ray")("any", Sampling(), _OPTIONS)
    yield made
    made.close()


def _request(i: int) -> Request:
    problem = Problem.make(task="math", source="test", prompt=f"{i}?", answer=str(i))
    messages = [{"role": "user", "content": problem.prompt}]
    return Request(problem=problem, sample=0, seed=i, messages=messages)


def _children(of: int) -> list[int]:
    """The processes below one, by /proc."""
    found = []
    for child in Path(f"/proc/{of}/task").glob("*/children"):
        for pid in map(int, child.read_text().split()):
            found += [pid, *_children(pid)]
    return found


def _actors() -> list[int]:
    """The processes that have an engine, by the titles that Ray gives them."""
    pids = []
    for pid in _children(os.getpid()):
        title = Path(f"/proc/{pid}/cmdline").read_bytes()
        if title.startswith(b"ray::") and b"EngineActor" in title:
            pids.append(pid)
    return pids


def test_verdicts_on_ray_are_those_of_this_machine_in_the_same_order(tmp_path: Path) -> None:
    # First in this file: the engine of the other tests takes all cores.
    problems = [
        Problem.make(task="math", source="test", prompt=f"{i}?", answer=str(i)) for i in range(30)
    ]
    texts = [f"\\boxed{{{i if i % 3 else i + 1}}}" for i in range(30)]
    texts[7] = r"\boxed{9^{9^{9^{9}}}}"
    rollouts = [
        Rollout(
            problem_id=problem.id,
            sample=0,
            seed=i,
            messages=[{"role": "user", "content": "q"}, {"role": "assistant", "content": text}],
            completion=text,
            finish_reason="stop",
            prompt_tokens=1,
            completion_tokens=1,
            error=None,
        )
        for i, (problem, text) in enumerate(zip(problems, texts, strict=True))
    ]
    make_artifact(tmp_path / "p", problems)
    make_artifact(tmp_path / "r", rollouts, record=Rollout, inputs={"problems": tmp_path / "p"})
    tables = []
    for where in ("local", "ray"):
        out = tmp_path / where
        run(Config(engine=where), tmp_path / "r", out, Mode())  # type: ignore[arg-type]
        tables.append(list(Artifact.open(out, Verdict).iter_rows(Verdict)))
    assert tables[0] == tables[1]
    assert {v.status for v in tables[1]} >= {"correct", "wrong"}
    again = run(Config(engine="ray"), tmp_path / "r", tmp_path / "local", Mode())
    assert again.up_to_date


@pytest.mark.slow
@needs_vllm
def test_vllm_in_an_actor(smol_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    options = {"max_num_seqs": "4", "max_model_len": "512", "in_flight": "8"}
    sampling = Sampling(temperature=0, max_tokens=8)
    engine = load("engines", "ray")(str(smol_model), sampling, options)
    try:
        made = list(engine.stream(map(_request, range(12))))
        assert Counter(g.request.seed for g in made) == Counter(range(12))
        assert all(g.text and 0 < g.completion_tokens <= 8 for g in made)
        assert engine.describe()["engine"] == "vllm"
    finally:
        engine.close()


def test_the_end_of_the_time_leaves_the_actors_usable(engine: Engine) -> None:
    limit = TimeLimit[Request](time.monotonic() + 1, key=lambda r: r.seed)
    with contextlib.suppress(TimeIsUp), limit.alarm():
        for made in engine.stream(limit.hand_out(map(_request, itertools.count()))):
            limit.done(made.request)
    assert limit.over
    assert {g.request.seed for g in engine.stream(map(_request, range(8)))} == set(range(8))


def test_the_turns_before_go_along(engine: Engine) -> None:
    asked = [
        dataclasses.replace(r, messages=[*r.messages, {"role": role, "content": "No." * (i + 1)}])
        for i, r in enumerate(map(_request, range(8)))
        for role in ("assistant", "user")
    ]
    alone = load("engines", "scripted")("any", Sampling(), {})

    def lengths(of: Engine) -> Counter[tuple[int, int]]:
        return Counter((g.request.seed, g.prompt_tokens) for g in of.stream(asked))

    assert lengths(engine) == lengths(alone)


def test_the_answers_are_the_inner_engines_and_each_has_its_request(engine: Engine) -> None:
    wanted = [_request(i) for i in range(40)]
    made = list(engine.stream(wanted))
    assert Counter(g.request.seed for g in made) == Counter(range(40))
    assert all(g.request is wanted[g.request.seed] for g in made)
    alone = load("engines", "scripted")("any", Sampling(), {})
    assert {g.request.seed: g.text for g in made} == {
        g.request.seed: g.text for g in alone.stream(wanted)
    }
    described = engine.describe()
    assert (described["engine"], described["actors"]) == ("scripted", 2)
    assert described["cluster"] == "this machine"


def test_who_else_listens_to_ray_hears_it_still(engine: Engine) -> None:
    assert _LISTENER in logging.getLogger("ray.data").handlers
    assert _LISTENER.level == logging.NOTSET


def test_what_ray_reports_is_a_line_and_never_on_stdout(
    engine: Engine, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    said = {"lines": ["A worker died.\nTraceback"], "pid": "raylet", "is_err": False}
    importlib.import_module("ray._private.worker").print_to_stdstream(said, ignore_prefix=False)
    assert [r.message for r in caplog.records if r.levelname == "WARNING"] == [
        "Ray says: A worker died."
    ]
    assert capsys.readouterr() == ("", "")


def test_requests_are_drawn_as_there_is_room(engine: Engine) -> None:
    drawn: list[int] = []

    def requests() -> Iterator[Request]:
        for i in range(40):
            drawn.append(i)
            yield _request(i)

    answers = engine.stream(requests())
    next(answers)
    assert len(drawn) <= 8  # two actors with four each
    assert len(list(answers)) == 39


def test_a_stream_that_is_given_up_gives_nothing_to_the_next(engine: Engine) -> None:
    answers = engine.stream(map(_request, range(20)))
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert {g.request.seed for g in engine.stream(map(_request, range(50, 60)))} == set(
        range(50, 60)
    )


def test_a_killed_actor_costs_nothing_and_repeats_nothing(engine: Engine) -> None:
    answers = engine.stream(map(_request, range(200)))
    seen = [next(answers).request.seed for _ in range(30)]
    before = _actors()
    assert before
    os.kill(before[0], signal.SIGKILL)
    seen += [g.request.seed for g in answers]
    assert Counter(seen) == Counter(range(200))


def test_what_is_wrong_is_said_before_ray_starts() -> None:
    kind = load("engines", "ray")
    with pytest.raises(UserError, match="p_corect"):
        kind.check("any", Sampling(), {"engine": "scripted", "p_corect": "1"})
    with pytest.raises(UserError, match="actors is '0'"):
        kind.check("any", Sampling(), {"engine": "scripted", "actors": "0"})
    with pytest.raises(UserError, match="can't run inside ray"):
        kind.check("any", Sampling(), {"engine": "ray"})


_ALONE = """
import os, sys
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Sampling
sys.path.insert(0, {folder!r})
from test_ray_engine import _children, _request
engine = load("engines", "ray")("any", Sampling(), {{"engine": "scripted", "in_flight": "4"}})
made = engine.stream(map(_request, range(100)))
next(made)
below = _children(os.getpid())
engine.close()
print(*below, file=sys.stderr)
"""


def test_close_in_the_middle_leaves_no_process_and_stdout_is_empty() -> None:
    code = _ALONE.format(folder=str(Path(__file__).parent))
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    below = done.stderr.splitlines()[-1].split()
    assert len(below) > 2
    deadline = time.monotonic() + 20  # the last of them end on their own, seeing the others gone
    while left := [pid for pid in below if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.1)
    assert "Traceback" not in done.stderr


def test_it_starts_where_ray_was_imported_before(tmp_path: Path) -> None:
    """As vLLM does where Ray is installed; Ray reads its settings at that moment."""
    code = (
        "import ray\n"
        "from llmpipe.engines._ray_cluster import Cluster\n"
        "cluster = Cluster()\n"
        "assert cluster.count('CPU') >= 1\n"
        "cluster.close()\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    environment["HOME"] = str(tmp_path)  # Ray itself writes a token there
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
