"""``--track``: figures reach a tracker while a run goes on, and a broken one stops nobody."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from llmpipe.cli import tracking
from llmpipe.cli.tracking import Tracking
from llmpipe.core.errors import UserError
from llmpipe.core.run import Result


class _Kept:
    """Keeps what it is told."""

    library: ClassVar[str] = "json"
    install: ClassVar[str] = "json"
    runs: ClassVar[list[_Kept]] = []

    def __init__(self, **begin: Any) -> None:
        self.begin = begin
        self.logged: list[tuple[dict[str, float], int]] = []
        self.closed = 0
        self.runs.append(self)

    def log(self, figures: Mapping[str, float], step: int) -> None:
        sys.stdout.write("what a library says")
        self.logged.append((dict(figures), step))

    def close(self) -> None:
        self.closed += 1


class _Broken(_Kept):
    def log(self, figures: Mapping[str, float], step: int) -> None:
        raise OSError("no route to host\nand more")


class _Absent(_Kept):
    library = "no_such_library"
    install = "such[extra]"


@dataclass(frozen=True)
class _Config:
    n: int = 8


_TRACKERS = {"kept": _Kept, "broken": _Broken, "absent": _Absent}


@pytest.fixture(autouse=True)
def _room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "load", lambda room, name: _TRACKERS[name])
    _Kept.runs.clear()


def _tracking(*names: str) -> Tracking:
    return Tracking(names, job="rollout", out=Path("runs/a"), config=_Config(), bar=_bar)


def _bar(done: int, total: int | None, **rest: Any) -> None:
    _bars.append((done, rest["tokens_per_second"]))


_bars: list[tuple[int, float]] = []


def _result(*, up_to_date: bool = False) -> Result:
    return Result(
        stage="rollout",
        out=Path("runs/a"),
        rows=16,
        dropped={},
        seconds=1.0,
        up_to_date=up_to_date,
        figures={"pass@8": 0.5, "missing": None, "by": {"level": {"1": 0.25}}, "name": "x"},
    )


def test_progress_and_results_are_logged(capsys: pytest.CaptureFixture[str]) -> None:
    _bars.clear()
    t = _tracking("kept")
    t(1, 16, tokens_per_second=10.0)
    t(2, 16, tokens_per_second=20.0)  # too soon after the first
    t(16, 16, tokens_per_second=30.0)
    t.close([_result()])
    t.close([])

    [run] = _Kept.runs
    assert run.begin == {
        "project": "llmpipe",
        "name": "a",
        "job": "rollout",
        "config": {"n": 8},
    }
    assert run.logged == [
        ({"progress/done": 1.0, "progress/tokens_per_second": 10.0}, 1),
        ({"progress/done": 16.0, "progress/tokens_per_second": 30.0}, 2),
        ({"rollout/rows": 16.0, "rollout/pass_at_8": 0.5, "rollout/by.level.1": 0.25}, 3),
    ]
    assert run.closed == 1
    assert _bars == [(1, 10.0), (2, 20.0), (16, 30.0)]
    assert capsys.readouterr().out == ""


def test_a_run_with_nothing_to_do_leaves_no_trace() -> None:
    t = _tracking("kept")
    t.close([_result(up_to_date=True)])

    assert _Kept.runs == []


def test_one_that_fails_is_dropped_with_one_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, logger="llmpipe.track")
    monkeypatch.setattr(logging.getLogger("llmpipe"), "propagate", True)
    t = _tracking("broken", "kept")
    t(1, 2, tokens_per_second=1.0)
    t(2, 2, tokens_per_second=1.0)
    t.close([_result()])

    assert [r.message for r in caplog.records] == [
        "broken failed, and gets no more figures of this run: no route to host"
    ]
    assert [len(run.logged) for run in _Kept.runs] == [0, 3]


def test_one_that_is_not_installed_is_said_before_the_run() -> None:
    with pytest.raises(UserError, match="no_such_library is not installed") as caught:
        _tracking("absent")

    assert caught.value.hint == "pip install 'such[extra]'"
    assert sys.modules.get("no_such_library") is None


def test_settings_that_are_no_config_are_taken_as_they_are() -> None:
    t = Tracking(["kept"], job="eval", out=Path("e"), config={"k": (1, 8)}, bar=_bar)
    t(1, 1, tokens_per_second=1.0)

    assert _Kept.runs[0].begin["config"] == {"k": (1, 8)}


def test_the_last_word_on_stdout_stays_llmpipes(tmp_path: Path) -> None:
    pytest.importorskip("trackio", reason="trackio is not installed here")
    command = [sys.executable, "-c", "from llmpipe.cli import main; main()"]
    maze = [*command, "maze", "-o", "m", "--size", "3", "--count", "2"]
    rollout = [*command, "rollout", "m", "-o", "r", "--engine", "scripted", "--model", "x"]
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio")}

    subprocess.run(maze, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(
        [*rollout, "--track", "trackio", "--json"],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )

    assert json.loads(done.stdout)["rows"] == 16
    assert "trackio" in done.stderr.lower()
    assert (tmp_path / "trackio" / "llmpipe.db").is_file()
