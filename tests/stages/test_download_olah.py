"""Downloads by the command line through olah, a real mirror, from a hub on the loopback.

olah (0.5.4) has an environment of its own, which `make setup` makes: its requirements don't fit
beside vLLM's. $LLMPIPE_TEST_OLAH names another olah-cli.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hub import Fault, Hub, Request

MANIFEST = Path(".llmpipe", "manifest.json")

REPO = "models/org/name"
WEIGHTS = bytes(range(256)) * 20_000  # 5 MB, one of olah's blocks
TOKEN = "hf_" + "s" * 34

_CLI = Path(os.environ.get("LLMPIPE_TEST_OLAH", Path(sys.prefix, "olah/bin/olah-cli")))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _CLI.exists(), reason=f"olah is not installed at {_CLI}"),
]


Download = Callable[..., subprocess.CompletedProcess[str]]


class Olah:
    """A running olah: its ``url``, and ``cache``, the folder that it keeps files in."""

    def __init__(self, upstream: str, folder: Path) -> None:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.cache = folder / "repos"
        folder.mkdir()
        hub = urlsplit(upstream).netloc
        with (folder / "olah.log").open("w") as log:
            self.process = subprocess.Popen(
                [
                    _CLI,
                    *("--host", "127.0.0.1", "--port", str(port)),
                    *("--hf-scheme", "http", "--hf-netloc", hub, "--hf-lfs-netloc", hub),
                    *("--repos-path", self.cache, "--log-path", folder / "logs"),
                ],
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                assert self.process.poll() is None, (folder / "olah.log").read_text()
                time.sleep(0.02)
            else:
                break

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


Start = Callable[[str], Olah]


@pytest.fixture
def olah(tmp_path: Path) -> Iterator[Start]:
    """Start olah in front of a hub; it ends with the test."""
    started: list[Olah] = []

    def start(upstream: str) -> Olah:
        started.append(Olah(upstream, tmp_path / f"olah-{len(started)}"))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.fixture
def served(tmp_path: Path) -> Path:
    folder = tmp_path / "served"
    (folder / "sub").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "config.json").write_bytes(b'{"model_type": "llama"}\n')
    (folder / "empty.txt").touch()
    (folder / "sub" / "a [1] é.txt").write_bytes(b"a name that has to be quoted\n")
    return folder


@pytest.fixture
def download(tmp_path: Path) -> Download:
    """``llmpipe download`` in the test's own folder, without the login of this machine."""

    def call(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = {k: v for k, v in os.environ.items() if k not in ("HF_TOKEN", "HF_ENDPOINT")}
        done = subprocess.run(
            [sys.executable, "-m", "llmpipe", "download", *arguments],
            cwd=tmp_path,
            env={**env, "HF_HOME": str(tmp_path / "hf"), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


def check(folder: Path, served: Path, hub: Hub, repo: str = REPO) -> dict[str, Any]:
    """Every byte is here and in the manifest, at the hub's commit; the manifest."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    assert manifest["commit"] == hub.commit(repo)
    files = {p.relative_to(served).as_posix(): p for p in served.rglob("*") if p.is_file()}
    assert sorted(manifest["files"]) == sorted(files)
    for path, file in files.items():
        content = file.read_bytes()
        assert (folder / path).read_bytes() == content
        assert manifest["files"][path]["sha256"] == hashlib.sha256(content).hexdigest()
    return manifest


def sources(manifest: dict[str, Any]) -> set[str]:
    return {file["endpoint"] for file in manifest["files"].values()}


@pytest.mark.parametrize("cdn", ["", "self", "apart"])
def test_a_model_comes_whole(
    tmp_path: Path, served: Path, olah: Start, download: Download, cdn: str
) -> None:
    storage, hub = Hub({REPO: served}), Hub({REPO: served})
    with storage as apart, hub as url:
        hub.cdn = {"": None, "self": "self", "apart": apart}[cdn]
        mirror = olah(url)
        download("org/name", "--endpoint", mirror.url)
    manifest = check(tmp_path / REPO, served, hub)
    assert sources(manifest) == {mirror.url}
    assert bool(storage.requests) == (cdn == "apart")


def test_a_second_download_has_the_files_from_the_mirror(
    tmp_path: Path, served: Path, olah: Start, download: Download
) -> None:
    repo = "datasets/org/name"
    hub = Hub({repo: served})
    again = tmp_path / "again"
    with hub as url:
        mirror = olah(url)
        common = ("org/name", "--repo-type", "dataset", "--endpoint", mirror.url)
        download(*common)
        check(tmp_path / repo, served, hub, repo)
        before = len(hub.requests)
        download(*common, "--local-dir", str(again))
        new = hub.requests[before:]
    check(again, served, hub, repo)
    assert not any(r.method == "GET" and "/resolve/" in r.path for r in new)


def test_a_listing_of_many_pages_is_whole(
    tmp_path: Path, served: Path, olah: Start, download: Download
) -> None:
    """olah passes on links to next pages that lead past it, and answers them with the first."""
    hub = Hub({REPO: served}, page=2)
    with hub as url:
        mirror = olah(url)
        download("org/name", "--endpoint", mirror.url, "--endpoint", url)
    check(tmp_path / REPO, served, hub)


def test_what_a_mirror_keeps_damaged_comes_from_the_next_endpoint(
    tmp_path: Path, served: Path, olah: Start, download: Download
) -> None:
    hub = Hub({REPO: served}, flips={"model.safetensors": 1})  # olah keeps it as it came
    with hub as url:
        mirror = olah(url)
        only = ("org/name", "--retries", "1", "--endpoint", mirror.url)
        assert "model.safetensors" in download(*only, code=2).stderr
        assert not (tmp_path / REPO / "model.safetensors").exists()
        assert not (tmp_path / REPO / MANIFEST).exists()
        done = download(*only, "--endpoint", url)
    manifest = check(tmp_path / REPO, served, hub)
    assert manifest["files"]["model.safetensors"]["endpoint"] == url
    assert url in done.stderr


def test_a_block_that_rots_in_the_cache_does_not_come(
    tmp_path: Path, served: Path, olah: Start, download: Download
) -> None:
    hub = Hub({REPO: served})
    with hub as url:
        mirror = olah(url)
        download("org/name", "--endpoint", mirror.url, "--local-dir", str(tmp_path / "first"))
        (block,) = mirror.cache.glob("files/**/model.safetensors/blocks/*.bin")
        content = bytearray(block.read_bytes())
        content[len(WEIGHTS) // 2] ^= 1
        block.write_bytes(content)
        download("org/name", "--endpoint", mirror.url)
    check(tmp_path / REPO, served, hub)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("truncate", "*.safetensors", after=1_000_000),
        Fault("reset", "*.safetensors", after=1_000_000),
        Fault("status", "*.safetensors", times=2),
        Fault("status", "*", method="HEAD", times=2, status=429, headers={"Retry-After": "1"}),
    ],
    ids=lambda fault: f"{fault.do}-{fault.status}",
)
def test_trouble_between_mirror_and_hub_passes(
    tmp_path: Path, served: Path, olah: Start, download: Download, fault: Fault
) -> None:
    hub = Hub({REPO: served}, faults=[fault])
    with hub as url:
        download("org/name", "--endpoint", olah(url).url)
    assert fault.times == 0
    check(tmp_path / REPO, served, hub)


def test_the_next_endpoint_goes_on_where_a_mirror_dies(
    tmp_path: Path, served: Path, olah: Start, download: Download
) -> None:
    # What olah gets of the weights is not all of them, whenever its end comes.
    hub = Hub({REPO: served}, faults=[Fault("truncate", "*.safetensors", after=1_000_000)])
    with hub as url:
        mirror = olah(url)

        def kill(request: Request) -> None:
            if "safetensors" in request.path and request.method == "GET":
                hub.after = None
                mirror.kill()

        hub.after = kill
        done = download("org/name", "--retries", "1", "--endpoint", mirror.url, "--endpoint", url)
    assert hub.after is None
    manifest = check(tmp_path / REPO, served, hub)
    assert manifest["files"]["model.safetensors"]["endpoint"] == url
    assert manifest["endpoint"] == mirror.url
    assert mirror.url in done.stderr


def test_a_gated_model_through_a_mirror_needs_a_token(
    tmp_path: Path, served: Path, olah: Start, download: Download
) -> None:
    hub = Hub({REPO: served}, gated=[REPO], token=TOKEN)
    with hub as url:
        mirror = olah(url)
        refused = download("org/name", "--endpoint", mirror.url, code=2)
        assert "gated" in refused.stderr
        download("org/name", "--endpoint", mirror.url, "--token", TOKEN)
    check(tmp_path / REPO, served, hub)
    kept = [p for p in (tmp_path / REPO).rglob("*") if p.is_file()]
    assert not any(TOKEN.encode() in p.read_bytes() for p in kept)
