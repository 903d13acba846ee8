"""An endpoint is asked what a download asks, and its faults are found before one needs it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

import pytest
from hub import Fault, Hub

from llmpipe.core import reach
from llmpipe.core.access import token, xet
from llmpipe.core.endpoints import HUB
from llmpipe.core.finding import Finding
from llmpipe.core.reach import endpoint
from llmpipe.core.refusals import DownloadError

REPO = "org/name"
WEIGHTS = bytes(range(256)) * 2048  # 512 KiB, an LFS file


@pytest.fixture
def model(tmp_path: Path) -> dict[str, Path]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "config.json").write_bytes(b'{"model_type": "llama"}\n')
    (folder / "empty.txt").touch()
    return {f"models/{REPO}": folder}


def asked(model: dict[str, Path], **settings: object) -> Finding:
    with Hub(model, **settings) as url:  # type: ignore[arg-type]
        finding = endpoint(url, REPO)
        assert finding.found.startswith(f"{url}: ")
    return finding


def test_a_sound_mirror_is_ok_with_its_speed(model: dict[str, Path]) -> None:
    finding = asked(model)
    assert finding.state == "ok"
    assert finding.do == ""
    for said in (": answers in ", "ranges work", "MB/s over 256 KiB from 127.0.0.1:"):
        assert said in finding.found


def test_the_bytes_asked_for_are_few(tmp_path: Path) -> None:
    folder = tmp_path / "large"
    folder.mkdir()
    with (folder / "model.safetensors").open("wb") as f:
        f.truncate(64 << 20)
    (folder / "small.safetensors").write_bytes(WEIGHTS)
    hub = Hub({f"models/{REPO}": folder})
    with hub as url:
        assert "over 256 KiB, " in endpoint(url, REPO).found
    ranges = [r.range for r in hub.requests if r.method == "GET" and "/resolve/" in r.path]
    start = 16 << 20
    assert ranges == [f"bytes={start}-{start + n - 1}" for n in (256 << 10, 16 << 20)]


def test_nothing_of_the_login_reaches_a_mirror(
    model: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_" + "s" * 34)
    elsewhere = Hub(model)
    with elsewhere as other:
        hub = Hub(model, cdn=other)
        with hub as url:
            endpoint(url, REPO)
    assert {r.method for r in hub.requests} == {"GET", "HEAD"}
    assert elsewhere.requests
    assert {r.authorization for r in [*hub.requests, *elsewhere.requests]} == {None}


def test_bytes_from_another_host_are_a_warning_that_names_it(model: dict[str, Path]) -> None:
    with Hub(model) as other:
        finding = asked(model, cdn=other)
    host = other.removeprefix("http://")
    assert finding.state == "warning"
    assert f"bytes of model.safetensors come from {host}, not from the mirror" in finding.found
    assert f"from {host}" in finding.found.rpartition("MB/s")[2]
    assert host in finding.do


def test_bytes_from_a_host_that_is_blocked_are_a_problem(model: dict[str, Path]) -> None:
    finding = asked(model, cdn=_closed_port())
    assert finding.state == "problem"
    assert "come from" in finding.found
    assert "does not send the bytes of model.safetensors" in finding.found
    assert "HTTPS_PROXY" in finding.do


@pytest.mark.parametrize(
    ("fault", "state", "said"),
    [
        (Fault("no-ranges", times=None), "warning", "no ranges"),
        (Fault("no-commit", "config.json"), "problem", "config.json comes without X-Repo-Commit"),
        (Fault("wrong-size", "model*", times=None), "problem", "524287 bytes, and 524288 in the"),
        (Fault("reset", "model*", after=9, times=None), "problem", "bytes of model.safetensors"),
        (Fault("status", "api", times=None), "problem", "does not send the repo: HTTP 503"),
        (
            Fault("status", "model*", "HEAD", status=404),
            "problem",
            "send model.safetensors: HTTP 404",
        ),
    ],
    ids=lambda v: v.do if isinstance(v, Fault) else "",
)
def test_what_would_break_a_download_is_found(
    model: dict[str, Path], fault: Fault, state: str, said: str
) -> None:
    finding = asked(model, faults=[fault])
    assert (finding.state, said in finding.found, finding.do != "") == (state, True, True), finding


def test_a_slow_endpoint_is_cut_short_and_said_to_be_slow(
    model: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmpipe.core.reach._SECONDS", 0.5)
    monkeypatch.setattr("llmpipe.core.reach._SMALL", 1 << 10)
    finding = asked(model, faults=[Fault("slow", "model*", times=None, seconds=10)])
    assert finding.state == "warning"
    assert "a model of 15 GB takes" in finding.do


def test_an_endpoint_that_is_dead_or_lacks_the_repo_is_a_problem(model: dict[str, Path]) -> None:
    dead = endpoint(_closed_port(), REPO)
    assert dead.state == "problem"
    assert "refused" in dead.found
    assert dead.do.startswith(f"another mirror, or the hub itself: --endpoint {HUB}; or ")
    with Hub(model) as url:
        lacking = endpoint(url, "org/another")
    assert "has no model org/another" in lacking.found
    assert "--repo" in lacking.do


@pytest.mark.parametrize("message", ["does not send the repo: timed out", "does not send x: reset"])
def test_a_mirror_is_advised_where_the_hub_itself_does_not_answer(message: str) -> None:
    error = DownloadError(f"{HUB} {message}", "retry")
    advised = 'export LLMPIPE_ENDPOINTS="https://hf-mirror.com https://huggingface.co"'
    assert reach._advice(error, asking(HUB)).startswith(f"{advised}; or ")
    assert "LLMPIPE_ENDPOINTS" not in reach._advice(error, asking("https://hf-mirror.com"))


@pytest.mark.parametrize(
    ("message", "helps", "hub", "mirror"),
    [
        ("does not send the repo: HTTP 503", "retry", "try again later", "try again later, or {}"),
        ("does not have x (HTTP 404)", "file", "try again later", "try again later, or {}"),
        ("answers with something that is not the repo", "retry", f"curl -I {HUB} shows", "{}"),
    ],
)
def test_what_helps_depends_on_who_was_asked(
    message: str, helps: Literal["retry", "file"], hub: str, mirror: str
) -> None:
    error = DownloadError(f"it {message}", helps)
    another = f"another mirror, or the hub itself: --endpoint {HUB}"
    assert reach._advice(error, asking(HUB)).startswith(hub)
    assert reach._advice(error, asking("https://hf-mirror.com")) == mirror.format(another)


def test_a_proxy_that_is_set_may_be_what_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    error = DownloadError("does not send the repo: refused", "retry")
    assert "; or export HTTPS_PROXY=URL, if" in reach._advice(error, asking(HUB))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    assert "; or unset https_proxy, if" in reach._advice(error, asking(HUB))


def test_nobody_is_advised_who_is_asked_already() -> None:
    error = DownloadError("does not send the repo: refused", "retry")
    mirror = "https://hf-mirror.com"
    for url in (HUB, mirror):
        advised = reach._advice(error, asking(url, mirror, HUB))
        assert advised.startswith("another mirror: --endpoint URL; or ")


def asking(url: str, *endpoints: str) -> reach._Asked:
    return reach._Asked(REPO, url, endpoints or (url,))


def test_a_password_in_an_endpoint_is_not_said(model: dict[str, Path]) -> None:
    with Hub(model) as url:
        finding = endpoint(url.replace("//", "//me:hunter2@"), REPO)
    assert finding.state == "ok"
    assert "hunter2" not in finding.found


def test_the_token_is_named_by_where_it_is_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    file = tmp_path / "token"
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(file))
    assert token().found.startswith("none")
    assert token().state == "ok"
    secret = "hf_" + "x" * 34
    file.write_text(secret)
    assert str(file) in token().found
    monkeypatch.setenv("HF_TOKEN", secret)
    assert token().found.startswith("from HF_TOKEN")
    assert secret not in f"{token()}"


@pytest.mark.parametrize("value", ["hello", "hf_short", "hf_" + "é" * 34, '"hf_' + "x" * 34 + '"'])
def test_a_token_that_does_not_look_like_one_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    monkeypatch.setenv("HF_TOKEN", value)
    finding = token()
    assert finding.state == "warning"
    assert finding.found.startswith("from HF_TOKEN, but it doesn't look like one")
    assert finding.do.startswith("unset HF_TOKEN, or export HF_TOKEN=hf_... (make one at https://")
    assert value not in f"{finding}"
    monkeypatch.delenv("HF_TOKEN")
    file = tmp_path / "token"
    file.write_bytes(b"\xff\xfe" + value.encode())
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(file))
    finding = token()
    assert finding.state == "warning"
    assert finding.do.startswith("hf auth login")
    assert value not in f"{finding}"


def test_xet_is_on_for_the_hub_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False)
    hub, mirror = "https://huggingface.co", "https://hf-mirror.com"
    assert "used with the hub" in xet([hub]).found
    assert "off for endpoints other than the hub" in xet([mirror, hub]).found
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    assert "off by HF_HUB_DISABLE_XET" in xet([hub]).found


def test_proxies_are_said_without_their_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://me:hunter2@proxy.example:3128")
    finding = xet(["https://huggingface.co"])
    assert "HTTPS_PROXY goes through http://proxy.example:3128" in finding.found
    assert "hunter2" not in finding.found


def _closed_port() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"
