"""All checks together: in order, in bounded time, and never a traceback."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hub import Hub

from llmpipe.core import access, machine
from llmpipe.core.errors import UserError
from llmpipe.core.finding import Finding
from llmpipe.stages.doctor import NAMES, Config, Report, run

LIBRARIES = ("torch", "transformers", "vllm", "flash-attn", "ray")


def without(*more: str) -> tuple[str, ...]:
    return (*LIBRARIES, *more)


def named(report: Report, name: str) -> list[Finding]:
    return [f for f in report.findings if f.name == name]


@pytest.fixture
def model(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "model.safetensors").write_bytes(b"x" * 4096)
    (tmp_path / "config.json").write_text("{}")
    return {"models/org/name": tmp_path}


def closed_port() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"


def test_every_check_is_there_in_order_with_those_skipped(model: dict[str, Path]) -> None:
    with Hub(model) as url:
        report = run(Config(endpoints=(url,), repo="org/name", skip=without()))
    assert list(dict.fromkeys(f.name for f in report.findings)) == list(NAMES)
    assert [f.name for f in report.findings if f.state == "skipped"] == [
        n for n in NAMES if n in LIBRARIES
    ]
    assert report.ok == all(f.state != "problem" for f in report.findings)
    assert named(report, "endpoint")[0].state == "ok"


def test_one_finding_for_each_endpoint(
    model: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = closed_port()
    with Hub(model) as url:
        monkeypatch.setenv("LLMPIPE_ENDPOINTS", f"{dead}, {url}")
        report = run(Config(repo="org/name", skip=without()))
    first, second = named(report, "endpoint")
    assert first.found.startswith(dead)
    assert first.found.endswith("downloads go on with the others")
    assert first.do == "leave it out while it fails"
    assert (first.state, second.state) == ("warning", "ok")


def test_a_dead_endpoint_alone_is_a_problem() -> None:
    report = run(Config(endpoints=(closed_port(),), skip=without()))
    assert not report.ok
    assert named(report, "endpoint")[0].state == "problem"


def test_a_check_that_stumbles_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumbles() -> Finding:
        raise KeyError("MemAvailable")

    monkeypatch.setattr(machine, "memory", stumbles)
    report = run(Config(skip=without("endpoint")))
    (finding,) = named(report, "memory")
    assert finding.state == "problem"
    assert finding.found == "the check itself failed: KeyError: 'MemAvailable'"
    assert finding.do == "llmpipe doctor --skip memory goes without it"
    assert not report.ok


def test_a_check_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "token", lambda: time.sleep(600))
    told: list[Sequence[str]] = []
    report = run(Config(skip=without("endpoint", "gpu"), patience=0.05), told.append)
    (finding,) = named(report, "token")
    assert (finding.state, finding.found) == ("problem", "no answer in 1 s")
    assert named(report, "cores")[0].found
    assert "token" in told[0]
    assert told[-1] == ["token"]


def test_an_endpoint_that_never_answers_is_left_behind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        report = run(Config(endpoints=(url,), skip=without("gpu"), patience=0.02))
    assert named(report, "endpoint")[0].found == f"{url}: no answer in 1.8 s"


def test_libraries_are_tried_and_none_outlives_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray/__init__.py").write_text("import time; time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    skip = ("endpoint", "torch", "transformers", "vllm", "gpu")
    report = run(Config(skip=skip, patience=0.05))
    assert named(report, "flash-attn")[0].state == "ok"
    assert named(report, "ray")[0].found.startswith("no answer in 3 s")


def test_a_check_that_is_none_cannot_be_skipped() -> None:
    with pytest.raises(UserError) as caught:
        run(Config(skip=("cuda",)))
    assert "'cuda'" in caught.value.message
    assert "gpu" in (caught.value.hint or "")


@pytest.mark.parametrize("repo", ["gpt2", "", "a/b/c", "https://huggingface.co/org/name"])
def test_a_repo_is_named_with_its_owner(repo: str) -> None:
    with pytest.raises(UserError) as caught:
        run(Config(repo=repo))
    assert caught.value.message == f"{repo!r} is not the id of a repo"
    assert caught.value.hint == "write ORG/NAME, such as HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.mark.parametrize("patience", [math.nan, math.inf, 1e9, 100.1, 0.0, -1.0])
def test_patience_is_a_number_that_clocks_can_take(patience: float) -> None:
    with pytest.raises(UserError, match="--patience is"):
        run(Config(patience=patience))
