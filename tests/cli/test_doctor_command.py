"""``llmpipe doctor`` as a user meets it: table, JSON, exit codes."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub import Hub

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]

QUICK = [
    word for n in ("torch", "transformers", "vllm", "flash-attn", "ray") for word in ("--skip", n)
]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"x" * 4096)
    (folder / "config.json").write_text("{}")
    with Hub({"models/org/name": folder}) as url:
        yield url


def states(stdout: str) -> dict[str, str]:
    return {c["name"]: c["state"] for c in json.loads(stdout.splitlines()[-1])["checks"]}


def test_a_table_for_people(llmpipe: Llmpipe, url: str) -> None:
    asked = ["--endpoint", url, "--repo", "org/name", *QUICK, "--skip", "disk"]
    done = llmpipe("doctor", *asked, COLUMNS="120")
    for word in ("Check", "State", "Found", "What to do", "endpoint", "open-files", "skipped"):
        assert word in done.stdout
    assert f"{url}: answers in" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("columns", ["40", "80"])
def test_a_list_where_a_table_would_break_words(llmpipe: Llmpipe, columns: str) -> None:
    asked = ["--endpoint", "http://127.0.0.1:9", *QUICK, "--skip", "disk"]
    lines = llmpipe("doctor", *asked, COLUMNS=columns, code=3).stdout.splitlines()
    assert lines[0] == "endpoint problem"
    assert lines[1].startswith("  http://127.0.0.1:9: ")
    end = lines.index(next(line for line in lines if line.startswith("token ")))
    assert all(line.startswith("  ") for line in lines[1:end])
    said = " ".join(line.strip() for line in lines[1:end])
    assert " Try: another mirror, or the hub itself: --endpoint https://huggingface.co; or" in said
    assert max(map(len, lines)) <= int(columns)
    assert "ray skipped" in lines
    assert not [line for line in lines if "│" in line]


def test_json_for_programs(llmpipe: Llmpipe, url: str) -> None:
    asked = ["--endpoint", url, "--repo", "org/name", "--skip", "disk", "--json"]
    done = llmpipe("doctor", *asked, *QUICK)
    said = json.loads(done.stdout)
    assert said["ok"] is True
    assert {frozenset(check) for check in said["checks"]} == {
        frozenset({"name", "state", "found", "do"})
    }
    assert states(done.stdout)["endpoint"] == "ok"


def test_a_problem_is_exit_code_3(llmpipe: Llmpipe, url: str) -> None:
    done = llmpipe("doctor", "--endpoint", url, "--repo", "org/no", "--json", *QUICK, code=3)
    assert json.loads(done.stdout)["ok"] is False
    assert states(done.stdout)["endpoint"] == "problem"


def test_bad_input_is_one_line_and_code_2(llmpipe: Llmpipe) -> None:
    done = llmpipe("doctor", "--skip", "cuda", code=2)
    assert done.stderr.startswith("Error: there is no check 'cuda'\n  Try: --skip one of: ")
    assert "Error: the endpoint" in llmpipe("doctor", "--endpoint", "mirror", code=2).stderr


def test_settings_are_read_from_the_file(llmpipe: Llmpipe, tmp_path: Path, url: str) -> None:
    skip = json.dumps([*QUICK[1::2], "disk"])
    (tmp_path / "llmpipe.toml").write_text(
        f'[doctor]\nendpoint = ["{url}"]\nrepo = "org/name"\nskip = {skip}\n'
    )
    found = states(llmpipe("doctor", "--json").stdout)
    assert (found["endpoint"], found["disk"]) == ("ok", "skipped")


def test_low_limits_are_warnings(tmp_path: Path, url: str) -> None:
    command = ["doctor", "--json", "--endpoint", url, "--repo", "org/name", "--skip", "disk"]
    done = subprocess.run(
        [sys.executable, "-m", "llmpipe", *command, *QUICK],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
    )
    assert done.returncode == 0, done.stderr
    found = states(done.stdout)
    assert found["open-files"] == "warning"


def test_a_token_is_never_said(llmpipe: Llmpipe, url: str) -> None:
    secret = "hf_" + "s" * 34
    asked = ["--endpoint", url, "--repo", "org/name", "--skip", "disk", *QUICK]
    for style in ([], ["--json"]):
        done = llmpipe("doctor", *asked, *style, HF_TOKEN=secret)
        assert secret not in done.stdout + done.stderr
        assert "from HF_TOKEN" in done.stdout


def test_doctor_is_in_the_help_and_explains_itself(llmpipe: Llmpipe) -> None:
    assert " doctor " in llmpipe("--help").stdout
    text = llmpipe("doctor", "--help").stdout
    assert all(option in text for option in ("--endpoint", "--repo", "--skip", "--json"))


@pytest.mark.parametrize("patience", ["inf", "nan", "1e9", "0"])
def test_a_patience_that_cannot_be_is_refused(llmpipe: Llmpipe, patience: str) -> None:
    done = llmpipe("doctor", "--patience", patience, code=2)
    assert "Traceback" not in done.stderr
    assert "patience" in done.stderr


def test_a_repo_without_an_owner_is_refused(llmpipe: Llmpipe) -> None:
    done = llmpipe("doctor", "--repo", "gpt2", code=2)
    assert done.stderr.startswith("Error: 'gpt2' is not the id of a repo\n  Try: write ORG/NAME")


def test_the_hub_that_does_not_answer_has_a_mirror_for_advice(llmpipe: Llmpipe) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{s.getsockname()[1]}"
    hub = "https://huggingface.co"
    done = llmpipe("doctor", "--endpoint", hub, *QUICK, "--json", code=3, HTTPS_PROXY=proxy)
    finding = json.loads(done.stdout)["checks"][0]
    assert finding["do"].startswith('export LLMPIPE_ENDPOINTS="https://hf-mirror.com https://hugg')
    assert "unset HTTPS_PROXY" in finding["do"]
