from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import make_artifact, problem

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    return make_artifact(tmp_path / "runs/problems", [problem("What is 1 + 1?"), problem("q")])


def test_a_page_is_written(llmpipe: Llmpipe, problems: Path, tmp_path: Path) -> None:
    done = llmpipe("view", "runs/problems", "--html", "page.html", "--limit", 1)
    assert "1 rows in page.html, 1 left out" in done.stderr
    assert "What is 1 + 1?" in (tmp_path / "page.html").read_text()


def test_it_serves_until_ctrl_c(problems: Path, tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "llmpipe", "view", "runs", "--no-browser"],
        cwd=tmp_path,
        env={**os.environ, "SSH_CONNECTION": "there"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout
    url = server.stdout.readline().strip()
    with urllib.request.urlopen(url) as answer:
        assert "problems" in answer.read().decode()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(url[: url.index("/", 8)])
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=60)
    assert server.returncode == 0
    assert "ssh -N -L " in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["runs", "--host", "0.0.0.0"], "others can reach 0.0.0.0"),
        (["runs", "--html", "page.html"], "holds 1 artifacts, and a page is of one"),
        (["nowhere"], "does not exist"),
        (["nowhere", "--html", "x"], "does not exist"),
    ],
)
def test_what_can_not_be_shown_is_said(
    llmpipe: Llmpipe, problems: Path, arguments: list[str], said: str
) -> None:
    assert said in llmpipe("view", *arguments, code=2).stderr


def test_a_port_that_is_taken_is_said(llmpipe: Llmpipe, problems: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"port {port}: " in llmpipe("view", "runs", "--port", port, code=2).stderr


def test_without_its_libraries_it_says_what_to_install(
    llmpipe: Llmpipe, problems: Path, tmp_path: Path
) -> None:
    (tmp_path / "lib/duckdb").mkdir(parents=True)
    (tmp_path / "lib/duckdb/__init__.py").write_text("raise ModuleNotFoundError(name='duckdb')")
    path = os.pathsep.join([str(tmp_path / "lib"), os.environ.get("PYTHONPATH", "")])
    done = llmpipe("view", "runs", code=2, PYTHONPATH=path)
    assert "pip install 'llmpipe[view]'" in done.stderr
