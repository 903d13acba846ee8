"""`llmpipe download` from a hub that fails in every way that hubs and mirrors do: the command, what
it leaves on disk, what it says, and its exit code.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hub import Fault, Hub

WEIGHTS = random.Random(0).randbytes(300_000)
SETTINGS = b'{"model_type": "llama"}\n'
TOKEN = "hf_" + "s" * 34
FILE = "model.safetensors"

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def served(tmp_path: Path) -> Path:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / FILE).write_bytes(WEIGHTS)
    (folder / "config.json").write_bytes(SETTINGS)
    return folder


class Download:
    """``llmpipe download org/name`` in the test's own folder, and what it leaves there."""

    def __init__(self, llmpipe: Llmpipe, root: Path) -> None:
        self._llmpipe = llmpipe
        self.folder = root / "models/org/name"

    def __call__(
        self, *endpoints: str, code: int = 0, args: tuple[object, ...] = (), **env: str
    ) -> dict[str, Any]:
        urls = [word for url in endpoints for word in ("--endpoint", url)]
        done = self._llmpipe("download", "org/name", *urls, *args, "--json", code=code, **env)
        self.said = done.stderr
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said

    @property
    def manifest(self) -> dict[str, Any] | None:
        file = self.folder / ".llmpipe/manifest.json"
        return json.loads(file.read_text()) if file.exists() else None

    def whole(self) -> bool:
        return (
            (self.folder / FILE).read_bytes() == WEIGHTS
            and (self.folder / "config.json").read_bytes() == SETTINGS
            and self.manifest is not None
            and not (self.folder / ".llmpipe/partial").exists()
        )

    def bad(self) -> bool:
        """Whether a file has its name without having its bytes, or a manifest speaks of one."""
        file = self.folder / FILE
        return (file.exists() and file.read_bytes() != WEIGHTS) or self.manifest is not None


@pytest.fixture
def download(llmpipe: Llmpipe, tmp_path: Path) -> Download:
    return Download(llmpipe, tmp_path)


def ranges(hub: Hub, path: str = FILE) -> list[str | None]:
    return [r.range for r in hub.requests if r.path.endswith(path) and r.method == "GET"]


def closed_port() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"


@pytest.mark.parametrize("do", ["truncate", "reset", "close-short"])
def test_a_body_that_breaks_off_is_gone_on_with(download: Download, served: Path, do: str) -> None:
    hub = Hub({"models/org/name": served}, faults=[Fault(do, FILE, after=200_000, times=2)])
    with hub as url:
        download(url)
    assert download.whole()
    first, second, *_ = ranges(hub)
    assert first is None
    assert second is not None
    # A reset may throw away what was still on its way.
    assert 0 < int(second.removeprefix("bytes=").removesuffix("-")) <= 200_000


def test_a_server_without_ranges_sends_all_again(download: Download, served: Path) -> None:
    faults = [Fault("no-ranges", FILE, times=None), Fault("truncate", FILE, after=100_000)]
    with Hub({"models/org/name": served}, faults=faults) as url:
        download(url)
    assert download.whole()


@pytest.mark.parametrize("name", [FILE, "config.json"])
def test_a_byte_flipped_once_is_fetched_again(download: Download, served: Path, name: str) -> None:
    with Hub({"models/org/name": served}, faults=[Fault("flip", name)]) as url:
        download(url)
    assert download.whole()
    assert f"{name} damaged" in download.said


@pytest.mark.parametrize("do", ["flip", "wrong-size", "longer"])
def test_what_is_always_damaged_is_an_error_that_names_the_file(
    download: Download, served: Path, do: str
) -> None:
    with Hub({"models/org/name": served}, faults=[Fault(do, FILE, method="*", times=None)]) as url:
        said = download(url, code=2)
    assert FILE in said["error"]
    assert "damaged" in said["error"]
    assert not download.bad()
    assert (download.folder / "config.json").read_bytes() == SETTINGS  # the others have come
    with Hub({"models/org/name": served}) as url:
        download(url)
    assert download.whole()


def test_a_damaged_file_comes_from_the_next_endpoint(download: Download, served: Path) -> None:
    flipping = Hub({"models/org/name": served}, faults=[Fault("flip", FILE, times=None)])
    with flipping as bad, Hub({"models/org/name": served}) as good:
        said = download(bad, good)
    assert download.whole()
    assert {e: v["files"] for e, v in said["endpoints"].items()} == {bad: 1, good: 1}
    assert f"1 file, 300 kB, from {good}" in download.said


def test_retry_after_is_honoured(download: Download, served: Path) -> None:
    times: list[float] = []
    hub = Hub(
        {"models/org/name": served},
        faults=[Fault("status", FILE, status=429, headers={"Retry-After": "2"})],
    )
    hub.after = lambda r: times.append(time.monotonic()) if r.path.endswith(FILE) else None
    with hub as url:
        download(url)
    assert download.whole()
    assert times[1] - times[0] >= 2.0


def test_a_server_that_wants_an_hour_of_rest_is_left_for_the_next(
    download: Download, served: Path
) -> None:
    fault = Fault("status", FILE, status=429, headers={"Retry-After": "3600"}, times=None)
    with (
        Hub({"models/org/name": served}, faults=[fault]) as busy,
        Hub({"models/org/name": served}) as good,
    ):
        said = download(busy, code=2)
        assert "3600 s" in said["error"]
        download(busy, good)
    assert download.whole()


@pytest.mark.parametrize("what", ["api", "*"])
def test_a_burst_of_503_is_waited_out(download: Download, served: Path, what: str) -> None:
    with Hub({"models/org/name": served}, faults=[Fault("status", what, times=3)]) as url:
        download(url)
    assert download.whole()
    assert "HTTP 503" in download.said


def test_503_for_good_ends_with_what_to_do(download: Download, served: Path) -> None:
    with Hub({"models/org/name": served}, faults=[Fault("status", FILE, times=None)]) as url:
        said = download(url, code=2, args=("--retries", 1))
    assert FILE in said["error"]
    assert "HTTP 503" in said["error"]
    assert "run it again" in said["hint"]
    assert not download.bad()


def test_a_file_that_one_endpoint_lacks_comes_from_the_next(
    download: Download, served: Path
) -> None:
    missing = [Fault("status", FILE, status=404, times=None)]
    with Hub({"models/org/name": served}, faults=missing) as lacking:
        said = download(lacking, code=2)
        assert FILE in said["error"]
        assert "404" in said["error"]
        assert not download.bad()
        with Hub({"models/org/name": served}) as good:
            download(lacking, good)
    assert download.whole()


def test_a_private_repo_needs_a_token(download: Download, served: Path) -> None:
    with Hub({"models/org/name": served}, private=["models/org/name"], token=TOKEN) as url:
        said = download(url, code=2)
        assert "private" in said["error"]
        assert "--token" in said["hint"]
        assert "token" in download(url, code=2, args=("--token", "hf_wrongwrong"))["error"]
        assert not download.folder.exists()
        download(url, args=("--token", TOKEN))
    assert download.whole()


def test_a_gated_repo_names_the_page_to_visit(download: Download, served: Path) -> None:
    with Hub({"models/org/name": served}, gated=["models/org/name"], token=TOKEN) as url:
        said = download(url, code=2)
        assert "gated" in said["error"]
        assert "https://huggingface.co/org/name" in said["hint"]
        download(url, args=("--token", TOKEN))
    assert download.whole()


def test_a_token_stays_with_the_endpoint(download: Download, served: Path) -> None:
    repos = {"models/org/name": served}
    other = Hub(repos)
    with other as other_url:
        faults = [
            Fault("redirect", "api", to=other_url),
            Fault("redirect", "*", to=other_url, times=None),
        ]
        hub = Hub(repos, private=["models/org/name"], token=TOKEN, faults=faults, page=1)
        hub.next_base = other_url
        with hub as url:
            download(url, args=("--token", TOKEN))
    assert download.whole()
    assert {r.authorization for r in hub.requests} == {f"Bearer {TOKEN}"}
    assert {r.authorization for r in other.requests} == {None}
    assert len(other.requests) >= 3  # the commit and the files did come from there
    kept = [p for p in download.folder.rglob("*") if p.is_file()]
    assert any(p.name == "run.log" for p in kept)
    assert not any(TOKEN.encode() in p.read_bytes() for p in kept)
    assert TOKEN not in download.said


def test_a_branch_that_moves_meanwhile_changes_nothing(download: Download, served: Path) -> None:
    hub = Hub({"models/org/name": served})
    commit = hub.snapshot("models/org/name")

    def move(request: Any) -> None:
        if "/tree/" in request.path:
            (served / FILE).write_bytes(b"another commit")

    hub.after = move
    with hub as url:
        said = download(url)
        assert said["commit"] == commit != hub.commit("models/org/name")
        assert download.whole()
        # That commit again, now that the branch is elsewhere.
        hub.after = None
        shutil.rmtree(download.folder)
        assert download(url, args=("--revision", commit))["commit"] == commit
    assert download.whole()


def test_a_stalling_endpoint_is_left_for_the_next(download: Download, served: Path) -> None:
    stalls = [
        Fault("stall", FILE, after=100_000, seconds=60),
        Fault("stall", FILE, seconds=60, times=None),
    ]
    good = Hub({"models/org/name": served})
    with Hub({"models/org/name": served}, faults=stalls) as first, good as second:
        download(first, second, args=("--timeout", 0.5, "--retries", 1))
    assert download.whole()
    (resumed,) = ranges(good)
    assert resumed == "bytes=100000-"  # what the first one sent is kept


def test_a_dead_first_endpoint(download: Download, served: Path) -> None:
    dead = closed_port()
    with Hub({"models/org/name": served}) as good:
        said = download(dead, good, args=("--retries", 1))
        assert dead in download.said
    assert download.whole()
    assert list(said["endpoints"]) == [good]


def test_all_endpoints_dead(download: Download) -> None:
    dead = closed_port()
    said = download(code=2, args=("--retries", 0), LLMPIPE_ENDPOINTS=f"{dead}, {closed_port()}")
    assert said["error"].count("http://127.0.0.1:") == 2
    assert dead in said["error"]
    assert not download.folder.exists()


def small_disk(folder: Path, *command: str, size: str) -> subprocess.CompletedProcess[str]:
    """A command run with a file system of that size mounted on a folder, for it alone."""
    if not shutil.which("unshare"):
        pytest.skip("there is no unshare to mount a small disk with")
    mount = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", mount, str(folder), *command],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"a small disk can't be mounted here: {done.stderr.splitlines()[0]}")
    return done


def test_a_disk_that_is_too_small_is_said_before_the_first_byte(
    tmp_path: Path, served: Path
) -> None:
    (tmp_path / "models").mkdir()
    hub = Hub({"models/org/name": served})
    with hub as url:
        done = small_disk(
            tmp_path / "models",
            *(sys.executable, "-m", "llmpipe", "download", "org/name", "--endpoint", url),
            size="200k",
        )
    assert done.returncode == 2
    assert "are free" in done.stderr
    assert not ranges(hub)


def test_a_disk_that_fills_up_meanwhile(tmp_path: Path, served: Path) -> None:
    (tmp_path / "models").mkdir()
    hub = Hub({"models/org/name": served}, faults=[Fault("slow", FILE, seconds=4.0, times=None)])
    fill = "head -c 300000 /dev/zero > models/other"
    command = f'"$0" -m llmpipe download org/name --endpoint "$1" & sleep 2.5; {fill}; wait $!'
    with hub as url:
        done = small_disk(
            tmp_path / "models", "sh", "-c", command, sys.executable, url, size="400k"
        )
    assert done.returncode == 2, done.stderr
    assert "no space left" in done.stderr
    assert "Traceback" not in done.stderr


@contextlib.contextmanager
def running(root: Path, url: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "llmpipe", "download", "org/name", "--endpoint", url, *args]
    with subprocess.Popen(
        command, cwd=root, env=os.environ, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(what: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def partial(download: Download) -> int:
    sizes = [0]
    for file in (download.folder / ".llmpipe/partial").glob("*.incomplete"):
        with contextlib.suppress(FileNotFoundError):  # a small one got its name meanwhile
            sizes.append(file.stat().st_size)
    return max(sizes)


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGINT])
def test_killed_in_the_middle_it_goes_on_where_it_was(
    download: Download, served: Path, tmp_path: Path, signal_: signal.Signals
) -> None:
    hub = Hub(
        {"models/org/name": served}, faults=[Fault("stall", FILE, after=200_000, seconds=300)]
    )
    with hub as url:
        with running(tmp_path, url) as process:
            small = download.folder / "config.json"
            wait_for(lambda: partial(download) == 200_000 and small.exists())
            process.send_signal(signal_)
            process.wait(60)
        assert process.returncode == {signal.SIGKILL: -9, signal.SIGINT: 130}[signal_]
        assert not download.bad()
        download(url)
    assert download.whole()
    assert ranges(hub) == [None, "bytes=200000-"]
    assert len(ranges(hub, "config.json")) == 1


def test_two_processes_at_once(download: Download, served: Path, tmp_path: Path) -> None:
    hub = Hub({"models/org/name": served}, faults=[Fault("slow", FILE, seconds=2.0, times=None)])
    with hub as url, ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: Download(download._llmpipe, tmp_path)(url), range(2)))
    assert download.whole()
    assert sorted(said["up_to_date"] for said in both) == [False, True]
    assert ranges(hub) == [None]  # brought once, not twice


def test_a_token_does_not_show_among_the_processes(tmp_path: Path, served: Path) -> None:
    hub = Hub({"models/org/name": served}, faults=[Fault("stall", FILE, seconds=60)])
    asked = threading.Event()
    hub.after = lambda _: asked.set()
    with hub as url, running(tmp_path, url, "--token", TOKEN) as process:
        assert asked.wait(30)
        shown = Path(f"/proc/{process.pid}/cmdline").read_text()
    assert "download" in shown
    assert TOKEN not in shown


def test_one_of_several_repos_that_fails_keeps_the_others_from_nothing(
    llmpipe: Llmpipe, tmp_path: Path, served: Path
) -> None:
    with Hub({"models/org/a": served, "models/org/c": served}) as url:
        done = llmpipe(
            *("download", "org/a", "org/b", "org/c", "--endpoint", url, "--json"), code=2
        )
    said = json.loads(done.stdout.splitlines()[-1])
    assert [("error" in each) for each in said["each"]] == [False, False, True]
    assert "org/b" in said["each"][2]["error"]
    assert said["out"] == ["models/org/a", "models/org/c"]
    assert (tmp_path / "models/org/c" / FILE).read_bytes() == WEIGHTS


def test_a_complete_folder_is_enough_without_a_network(download: Download, served: Path) -> None:
    with Hub({"models/org/name": served}) as url:
        download(url)
    assert download(url, HF_HUB_OFFLINE="1")["up_to_date"]
    (download.folder / FILE).unlink()
    assert "unset HF_HUB_OFFLINE" in download(url, code=2, HF_HUB_OFFLINE="1")["hint"]
    with Hub({"models/org/name": served}) as url:
        download(url)
    assert download.whole()


def test_a_terminal_shows_each_file_and_a_log_stays_short(
    download: Download, served: Path, tmp_path: Path
) -> None:
    slow = [Fault("slow", FILE, seconds=1.5, times=None)]
    with Hub({"models/org/name": served}, faults=slow) as url:
        ours, theirs = os.openpty()
        command = [sys.executable, "-m", "llmpipe", "download", "org/name", "--endpoint", url]
        env = {**os.environ, "COLUMNS": "120", "TERM": "xterm"}
        with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=theirs) as process:
            os.close(theirs)
            shown = b""
            with contextlib.suppress(OSError):  # how a terminal says that nobody writes any more
                while read := os.read(ours, 65536):
                    shown += read
        os.close(ours)
        assert process.returncode == 0
        assert FILE.encode() in shown
        assert b"in all" in shown
        assert b"/300.0 kB" in shown.replace(b"\x1b[32m", b"")
        shutil.rmtree(download.folder)
        download(url)
    assert len(download.said.splitlines()) == 2


@pytest.mark.skipif(
    importlib.util.find_spec("socksio") is not None, reason="socksio is installed here"
)
def test_a_socks_proxy_without_its_client_is_said(download: Download) -> None:
    said = download(
        "http://hub.example", code=2, ALL_PROXY="socks5://127.0.0.1:9", NO_PROXY="", no_proxy=""
    )
    assert "pip install socksio" in said["hint"]


def break_off(download: Download, hub: Hub, url: str) -> None:
    """A download that ends with 200,000 bytes of the weights there."""
    hub.faults[:] = [Fault("truncate", FILE, after=200_000), Fault("status", FILE, times=None)]
    download(url, code=2, args=("--retries", 1))
    assert partial(download) == 200_000
    hub.faults.clear()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", FILE, status=200, times=None),  # a login page
        Fault("status", FILE, status=416, times=None),
        Fault("wrong-size", FILE, times=None),
    ],
    ids=lambda f: f"{f.do} {f.status}",
)
def test_an_answer_that_can_t_be_the_file_costs_nothing_that_came(
    download: Download, served: Path, fault: Fault
) -> None:
    hub = Hub({"models/org/name": served})
    with hub as url:
        break_off(download, hub, url)
        hub.faults[:] = [fault]
        download(url, code=2)
        assert partial(download) == 200_000
        hub.faults.clear()
        download(url)
        assert ranges(hub)[-1] == "bytes=200000-"
    assert download.whole()


def test_a_partial_file_that_rotted_is_fetched_anew(download: Download, served: Path) -> None:
    hub = Hub({"models/org/name": served})
    with hub as url:
        break_off(download, hub, url)
        (file,) = (download.folder / ".llmpipe/partial").iterdir()
        file.write_bytes(b"!" + file.read_bytes()[1:])
        download(url, args=("--retries", 0))
    assert download.whole()
    assert "damaged" not in download.said  # it wasn't the endpoint


def test_a_link_that_ran_out_is_asked_for_again(download: Download, served: Path) -> None:
    with Hub({"models/org/name": served}, faults=[Fault("status", FILE, status=403)]) as url:
        download(url)
    assert download.whole()


def test_a_dead_host_behind_a_redirect_is_named(download: Download, served: Path) -> None:
    dead = closed_port()
    fault = Fault("redirect", FILE, to=dead, times=None)
    with Hub({"models/org/name": served}, faults=[fault]) as url:
        said = download(url, code=2, args=("--retries", 0))
    assert f"(at {dead.removeprefix('http://')}, where it sends for it)" in said["error"]


def test_a_dead_proxy_is_named(download: Download) -> None:
    proxy = closed_port().replace("http://", "http://me:secret@")
    said = download(
        "http://hub.example",
        code=2,
        args=("--retries", 0),
        http_proxy=proxy,
        no_proxy="",
        NO_PROXY="",
    )
    assert f"(by the proxy http://{proxy.rpartition('@')[2]})" in said["error"]
    assert "secret" not in download.said


def test_a_rest_that_is_no_number_is_no_rest(download: Download, served: Path) -> None:
    for after in ("soon", "-5", "1e9", "99999999999999999999"):
        fault = Fault("status", FILE, status=429, headers={"Retry-After": after})
        with Hub({"models/org/name": served}, faults=[fault]) as url:
            download(url, args=("--force",))
        assert download.whole()


@pytest.mark.parametrize("secret", ["SECRET", ":SECRET", "me:SECRET"])
def test_secrets_in_an_endpoint_stay_there(download: Download, served: Path, secret: str) -> None:
    fault = Fault("status", FILE)
    with Hub({"models/org/name": served}, faults=[fault]) as url:
        said = download(url.replace("://", f"://{secret}@"))
    assert download.whole()
    assert "SECRET" not in download.said + json.dumps(said)
    own = [p for p in (download.folder / ".llmpipe").rglob("*") if p.is_file()]
    assert not any(b"SECRET" in p.read_bytes() for p in own)


def test_the_last_lines_tell_what_came_now(download: Download, served: Path) -> None:
    with Hub({"models/org/name": served}) as url:
        download(url)
        assert f"2 files, 300 kB, from {url}" in download.said
        (download.folder / "config.json").unlink()
        download(url)
        assert f"1 file, 24 B, from {url}" in download.said
        assert "1 file there already" in download.said
        download(url, args=("--force",))
        assert "from http" not in download.said


def test_show_says_what_was_downloaded(download: Download, llmpipe: Llmpipe, served: Path) -> None:
    with Hub({"models/org/name": served}) as url:
        commit = download(url)["commit"]
    said = llmpipe("show", "models/org/name").stdout
    assert "the model org/name, 2 files, 300 kB" in said
    assert f"{commit} (main)" in said
    assert json.loads(llmpipe("show", "models/org/name", "--json").stdout)["commit"] == commit
