"""The hub on the loopback, by the real client, and its faults by plain HTTP."""

from __future__ import annotations

import hashlib
import http.client
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hub import Fault, Hub, Request
from huggingface_hub import HfApi, RepoFile, RepoFolder, get_hf_file_metadata, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

WEIGHTS = bytes(range(256)) * 1000  # an LFS file, more than one TCP window
SETTINGS = b'{"a": 1}\n'
REPO = "models/org/name"
FILE = "/org/name/resolve/main/model.safetensors"
TOKEN = "hf_" + "s" * 34


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    served = tmp_path / "served"
    (served / "sub").mkdir(parents=True)
    (served / "model.safetensors").write_bytes(WEIGHTS)
    (served / "config.json").write_bytes(SETTINGS)
    (served / "empty").touch()
    (served / "sub" / "a [1].txt").write_bytes(b"name with brackets\n")
    return served


def bring(url: str, into: Path, **settings: Any) -> Path:
    got = snapshot_download(
        "org/name", endpoint=url, local_dir=into, token=settings.pop("token", False), **settings
    )
    return Path(got)


@contextmanager
def connected(url: str) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        yield connection
    finally:
        connection.close()


def get(
    url: str, path: str = FILE, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    with connected(url) as connection:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()


def test_the_real_client_brings_a_repo(folder: Path, tmp_path: Path) -> None:
    hub = Hub({REPO: folder})
    with hub as url:
        got = bring(url, tmp_path / "got")
    for file in (p for p in folder.rglob("*") if p.is_file()):
        assert (got / file.relative_to(folder)).read_bytes() == file.read_bytes()
    assert {r.authorization for r in hub.requests} == {None}


def test_the_tree_comes_in_pages_with_hashes(folder: Path) -> None:
    hub = Hub({"datasets/org/name": folder}, page=2)
    with hub as url:
        api = HfApi(endpoint=url, token=False)
        tree = list(api.list_repo_tree("org/name", repo_type="dataset", recursive=True))
        top = list(api.list_repo_tree("org/name", repo_type="dataset"))
        some = api.get_paths_info("org/name", ["config.json", "no"], repo_type="dataset")
    assert len([r for r in hub.requests if "recursive=true" in r.path]) == 3
    assert [t.path for t in tree if isinstance(t, RepoFolder)] == ["sub"]
    assert [t.path for t in top] == ["config.json", "empty", "model.safetensors", "sub"]
    files = {t.path: t for t in tree if isinstance(t, RepoFile)}
    assert sorted(files) == ["config.json", "empty", "model.safetensors", "sub/a [1].txt"]
    weights = files["model.safetensors"]
    assert weights.size == len(WEIGHTS)
    assert weights.lfs
    assert weights.lfs.sha256 == hashlib.sha256(WEIGHTS).hexdigest()
    # As `git hash-object` says.
    assert files["config.json"].blob_id == hashlib.sha1(b"blob 9\0" + SETTINGS).hexdigest()
    assert files["empty"].blob_id == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert [s.path for s in some] == ["config.json"]


def test_the_next_page_may_be_elsewhere(folder: Path) -> None:
    with Hub({REPO: folder}, page=2) as elsewhere:
        hub = Hub({REPO: folder}, page=2, next_base=elsewhere)
        with hub as url:
            tree = list(HfApi(endpoint=url, token=False).list_repo_tree("org/name"))
    assert len(tree) == 4
    assert len(hub.requests) == 1


def test_ranges(folder: Path) -> None:
    with Hub({REPO: folder}) as url:
        size = len(WEIGHTS)
        for asked, part in {
            "bytes=10-19": WEIGHTS[10:20],
            "bytes=100-": WEIGHTS[100:],
            "bytes=-5": WEIGHTS[-5:],
            f"bytes={size - 1}-{size + 9}": WEIGHTS[-1:],
        }.items():
            response, body = get(url, Range=asked)
            assert (response.status, body) == (206, part)
            assert response.headers["Content-Range"].endswith(f"/{size}")
        assert get(url, Range=f"bytes={size}-")[0].status == 416
        assert get(url, FILE.replace("model.safetensors", "empty"))[1] == b""


def test_what_is_missing_or_closed_is_refused_as_the_hub_does(folder: Path) -> None:
    repos = {REPO: folder, "models/org/closed": folder, "models/org/secret": folder}
    hub = Hub(repos, gated=["models/org/closed"], private=["models/org/secret"], token=TOKEN)
    with hub as url:

        def head(repo: str, token: str | bool = False, file: str = "config.json") -> str:
            address = f"{url}/org/{repo}/resolve/main/{file}"
            return get_hf_file_metadata(address, token=token, endpoint=url).etag or ""

        for name in ("nothing", "secret"):
            with pytest.raises(RepositoryNotFoundError, match="401"):
                head(name)
            with pytest.raises(RepositoryNotFoundError, match="401"):
                HfApi(endpoint=url, token=False).repo_info(f"org/{name}")
        with pytest.raises(RepositoryNotFoundError, match="404"):
            head("nothing", TOKEN)
        with pytest.raises(GatedRepoError, match="401"):
            head("closed")
        assert HfApi(endpoint=url, token=False).repo_info("org/closed").gated == "auto"
        assert head("secret", TOKEN) == head("closed", TOKEN) == head("name")
        with pytest.raises(HfHubHTTPError, match="Invalid credentials"):
            head("name", "hf_wrong")
        with pytest.raises(RemoteEntryNotFoundError):
            head("name", file="no.bin")
        with pytest.raises(RevisionNotFoundError):
            HfApi(endpoint=url, token=False).repo_info("org/name", revision="v9")
        hub.token = None
        with pytest.raises(GatedRepoError, match="403"):
            head("closed", TOKEN)


def test_a_frozen_commit_is_served_after_the_branch_has_moved(folder: Path, tmp_path: Path) -> None:
    hub = Hub({REPO: folder})
    old = hub.snapshot(REPO)

    def move(request: Request) -> None:
        hub.after = None
        (folder / "config.json").write_bytes(b'{"b": 2}\n')  # as long as before
        (folder / "empty").unlink(missing_ok=True)

    hub.after = move
    with hub as url:
        first = bring(url, tmp_path / "first")
        second = bring(url, tmp_path / "second")
        third = bring(url, tmp_path / "third", revision=old)
        assert hub.commit(REPO) != old
    assert (first / "config.json").read_bytes() == SETTINGS
    assert (second / "config.json").read_bytes() == b'{"b": 2}\n'
    assert not (second / "empty").exists()
    assert (third / "config.json").read_bytes() == SETTINGS


def test_a_commit_that_was_overwritten_is_gone(folder: Path) -> None:
    hub = Hub({REPO: folder})
    old = hub.commit(REPO)
    (folder / "config.json").write_bytes(b"other")
    with hub as url:
        at_old = FILE.replace("main", old)
        assert get(url, at_old)[0].status == 200  # that file is the same
        gone, _ = get(url, at_old.replace("model.safetensors", "config.json"))
    assert (gone.status, gone.headers["X-Error-Code"]) == (404, "RevisionNotFound")


def test_lfs_files_come_from_the_cdn_without_the_token(folder: Path, tmp_path: Path) -> None:
    cdn = Hub({REPO: folder})
    hub = Hub({REPO: folder}, private=[REPO], token=TOKEN)
    with cdn as hub.cdn, hub as url:
        got = bring(url, tmp_path / "got", token=TOKEN)
        metadata = get_hf_file_metadata(url + FILE, token=TOKEN, endpoint=url)
        assert get(hub.cdn, urlsplit(metadata.location).path)[0].status == 403
    assert (got / "model.safetensors").read_bytes() == WEIGHTS
    assert metadata.size == len(WEIGHTS)
    assert metadata.etag == hashlib.sha256(WEIGHTS).hexdigest()
    assert metadata.commit_hash == hub.commit(REPO)
    assert {r.authorization for r in hub.requests} == {f"Bearer {TOKEN}"}
    assert {r.authorization for r in cdn.requests} == {None}
    assert not any(r.method == "GET" and "safetensors" in r.path for r in hub.requests)


def test_the_cdn_may_be_the_hub_itself(folder: Path, tmp_path: Path) -> None:
    hub = Hub({REPO: folder}, cdn="self", faults=[Fault("flip", "*.safetensors")])
    with hub as url:
        got = bring(url, tmp_path / "got")
    assert (got / "model.safetensors").read_bytes() == bytes([1]) + WEIGHTS[1:]
    assert any(r.path.startswith("/cdn/") for r in hub.requests)


def test_a_fault_counts_down(folder: Path) -> None:
    slow_down = Fault("status", "*.json", times=2, status=429, headers={"Retry-After": "7"})
    hub = Hub({REPO: folder}, faults=[slow_down])
    settings = FILE.replace("model.safetensors", "config.json")
    with hub as url:
        assert get(url)[0].status == 200
        assert get(url, settings, "HEAD")[0].status == 200
        refused, _ = get(url, settings)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "7")
        assert [get(url, settings)[0].status for _ in range(2)] == [429, 200]
    assert slow_down.times == 0


def test_faults_of_the_api_are_asked_for_by_name(folder: Path) -> None:
    hub = Hub({REPO: folder}, faults=[Fault("status", method="*", times=None)])
    info = "/api/models/org/name"
    with hub as url:
        assert (get(url)[0].status, get(url, info)[0].status) == (503, 200)
        hub.faults[:] = [Fault("status", "api", status=500)]
        assert (get(url)[0].status, get(url, info)[0].status) == (200, 500)


def test_an_unknown_fault_is_an_error() -> None:
    with pytest.raises(ValueError, match="truncate"):
        Fault("trunkate")


@pytest.mark.parametrize("do", ["truncate", "reset"])
def test_a_body_ends_early(folder: Path, do: str) -> None:
    hub = Hub({REPO: folder}, faults=[Fault(do, after=1000)])
    with hub as url, connected(url) as connection:
        connection.request("GET", FILE)
        response = connection.getresponse()
        assert response.headers["Content-Length"] == str(len(WEIGHTS))
        assert response.read(1000) == WEIGHTS[:1000]
        if do == "reset":
            with pytest.raises(ConnectionResetError):
                response.read()
        else:
            with pytest.raises(http.client.IncompleteRead):
                response.read()
        assert get(url)[1] == WEIGHTS


def test_a_head_is_reset(folder: Path) -> None:
    with Hub({REPO: folder}, faults=[Fault("reset", method="HEAD")]) as url:
        with pytest.raises(ConnectionResetError):
            get(url, method="HEAD")
        assert get(url, method="HEAD")[0].status == 200


def flipped(at: int, content: bytes = WEIGHTS) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize(
    ("fault", "status", "body"),
    [
        (Fault("close-short", after=9), 206, WEIGHTS[100:109]),
        (Fault("no-ranges"), 200, WEIGHTS),
        (Fault("flip", after=5), 206, flipped(5, WEIGHTS[100:])),
        (Fault("longer"), 206, WEIGHTS[100:] + b"\0"),
        (Fault("wrong-size"), 206, WEIGHTS[100:-1]),
        (Fault("slow", seconds=0.02), 206, WEIGHTS[100:]),
        (Fault("stall", after=50, seconds=0.01), 206, WEIGHTS[100:]),
    ],
    ids=lambda value: value.do if isinstance(value, Fault) else "",
)
def test_a_body_is_not_what_was_asked_for(
    folder: Path, fault: Fault, status: int, body: bytes
) -> None:
    with Hub({REPO: folder}, faults=[fault]) as url:
        response, got = get(url, Range="bytes=100-")
        assert (response.status, got == body) == (status, True)
        length = None if fault.do == "close-short" else str(len(body))
        assert response.headers["Content-Length"] == length
        response, got = get(url, Range="bytes=100-")
        assert (response.status, got == WEIGHTS[100:]) == (206, True)


def test_faults_that_fit_together_are_applied_together(folder: Path) -> None:
    faults = [Fault("no-ranges", times=None), Fault("flip"), Fault("longer"), Fault("status")]
    with Hub({REPO: folder}, faults=faults) as url:
        assert get(url, Range="bytes=9-")[0].status == 503
        response, body = get(url, Range="bytes=9-")
    assert (response.status, body == WEIGHTS) == (200, True)


def test_the_last_byte_is_flipped_as_often_as_said(folder: Path) -> None:
    with Hub({REPO: folder}, flips={"model.safetensors": 1}) as url:
        assert get(url, method="HEAD")[0].status == 200
        assert get(url)[1] == flipped(len(WEIGHTS) - 1)
        assert get(url)[1] == WEIGHTS


def test_headers_say_nothing_or_something_else(folder: Path) -> None:
    hub = Hub({REPO: folder}, faults=[Fault("no-commit")])
    with hub as url:
        nothing, _ = get(url, method="HEAD")
        hub.faults.append(Fault("wrong-commit"))
        other, _ = get(url)
    assert (nothing.headers["ETag"], nothing.headers["X-Repo-Commit"]) == (None, None)
    assert other.headers["X-Repo-Commit"] == "0" * 40


def test_a_redirect_goes_to_the_same_path(folder: Path) -> None:
    hub = Hub({REPO: folder}, faults=[Fault("redirect", to="http://127.0.0.2:1")])
    with hub as url:
        response, _ = get(url, FILE + "?download=true")
    assert response.status == 302
    assert response.headers["Location"] == f"http://127.0.0.2:1{FILE}?download=true"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_stalled_answer_ends_when_the_hub_stops(folder: Path, method: str) -> None:
    hub = Hub({REPO: folder}, faults=[Fault("stall", method=method, after=7)])
    ended: list[Exception | bytes] = []

    def ask(url: str) -> None:
        try:
            ended.append(get(url, method=method)[1])
        except (http.client.HTTPException, ConnectionError) as e:
            ended.append(e)

    with hub as url:
        client = threading.Thread(target=ask, args=(url,))
        client.start()
        while not hub.requests:
            time.sleep(0.001)
        client.join(0.05)
        assert client.is_alive()
    client.join(10)
    assert isinstance(ended[0], Exception)


def test_it_runs_as_a_program(folder: Path, tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("hub.py"))
    command = [sys.executable, program, f"datasets/org/name={folder}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as hub:
        try:
            assert hub.stdout
            url = hub.stdout.readline().strip()
            got = bring(url, tmp_path / "got", repo_type="dataset")
        finally:
            hub.kill()
    assert (got / "model.safetensors").read_bytes() == WEIGHTS
