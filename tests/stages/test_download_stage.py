"""Downloads, by the real client from a hub on the loopback."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import logging
import shutil
import socket
import threading
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from hub import Fault, Hub
from huggingface_hub import constants

from llmpipe.core import transfer
from llmpipe.core.endpoints import endpoints, is_hub
from llmpipe.core.errors import UserError
from llmpipe.core.mirrors import Retry
from llmpipe.core.run import Mode, Result
from llmpipe.recipes import resolve
from llmpipe.stages.download import Config, Network, run

MANIFEST = Path(".llmpipe", "manifest.json")
WEIGHTS = bytes(range(256)) * 20  # an LFS file
SETTINGS = b'{"model_type": "llama"}\n'  # not one
TOKEN = "hf_" + "s" * 34


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "served" / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "config.json").write_bytes(SETTINGS)
    (folder / "sub" / "a [1].txt").write_bytes(b"name with brackets\n")
    return folder


def bring(root: Path, *endpoints: str, mode: Mode | None = None, **settings: object) -> Result:
    token = settings.pop("token", None)
    config = Config(**{"repo": "org/name", **settings})  # type: ignore[arg-type]
    network = Network(endpoints=endpoints, token=token, retry=Retry(base=0.01))  # type: ignore[arg-type]
    return run(config, mode or Mode(), network=network, root=root)


def error(root: Path, *endpoints: str, **settings: object) -> UserError:
    with pytest.raises(UserError) as caught:
        bring(root, *endpoints, **settings)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def closed_port() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"


def test_a_model_comes_whole_with_its_manifest(tmp_path: Path, model: Path) -> None:
    hub = Hub({"models/org/name": model})
    with hub as url:
        result = bring(tmp_path, url)
    folder = tmp_path / "models/org/name"
    assert result.out == folder
    assert not result.up_to_date
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert (folder / "sub" / "a [1].txt").read_bytes() == b"name with brackets\n"
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["commit"] == hub.commit("models/org/name") == result.figures["commit"]
    assert (manifest["repo"], manifest["repo_type"]) == ("org/name", "model")
    assert manifest["endpoint"] == url
    assert sorted(manifest["files"]) == ["config.json", "model.safetensors", "sub/a [1].txt"]
    weights = manifest["files"]["model.safetensors"]
    assert weights["sha256"] == hashlib.sha256(WEIGHTS).hexdigest()
    assert weights["size"] == len(WEIGHTS)
    # Files are asked for at the commit, so that a branch that moves meanwhile changes nothing.
    resolved = [r.path for r in hub.requests if "/resolve/" in r.path]
    assert resolved
    assert all(f"/resolve/{manifest['commit']}/" in path for path in resolved)


def test_a_dataset_comes_to_datasets_and_is_known_to_its_recipe(tmp_path: Path) -> None:
    served = tmp_path / "served"
    (served / "main").mkdir(parents=True)
    (served / "main" / "train.jsonl").write_text('{"question": "1+1?", "answer": "#### 2"}\n')
    with Hub({"datasets/openai/gsm8k": served}) as url:
        result = bring(tmp_path, url, repo="openai/gsm8k", repo_type="dataset")
    assert result.out == tmp_path / "datasets/openai/gsm8k"
    assert resolve(str(result.out)).name == "gsm8k"


def test_a_complete_folder_needs_no_network(tmp_path: Path, model: Path) -> None:
    with Hub({"models/org/name": model}) as url:
        first = bring(tmp_path, url)
    again = bring(tmp_path, url)
    assert again.up_to_date
    assert again.figures == first.figures
    # The file's time has changed, not its bytes.
    (tmp_path / "models/org/name/config.json").write_bytes(SETTINGS)
    assert bring(tmp_path, url).up_to_date


@pytest.mark.parametrize("harm", ["other bytes", "gone", "cut"])
def test_a_harmed_file_is_brought_again(tmp_path: Path, model: Path, harm: str) -> None:
    file = tmp_path / "models/org/name/model.safetensors"
    hub = Hub({"models/org/name": model})
    with hub as url:
        bring(tmp_path, url)
        if harm == "gone":
            file.unlink()
        else:
            file.write_bytes(WEIGHTS[:-1] + (b"!" if harm == "other bytes" else b""))
        before = len(hub.requests)
        assert not bring(tmp_path, url).up_to_date
        fetched = {r.path.rpartition("/")[2] for r in hub.requests[before:] if r.method == "GET"}
    assert file.read_bytes() == WEIGHTS
    assert "config.json" not in fetched


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_byte_flipped_once_is_fetched_again(tmp_path: Path, model: Path, name: str) -> None:
    with Hub({"models/org/name": model}, flips={name: 1}) as url:
        bring(tmp_path, url)
    assert (tmp_path / "models/org/name" / name).read_bytes() == (model / name).read_bytes()


def test_a_byte_flipped_always_is_an_error_and_leaves_no_bad_file(
    tmp_path: Path, model: Path
) -> None:
    with Hub({"models/org/name": model}, flips={"model.safetensors": 99}) as url:
        assert "model.safetensors" in error(tmp_path, url).message
    folder = tmp_path / "models/org/name"
    assert not (folder / "model.safetensors").exists()
    assert not (folder / MANIFEST).exists()


def test_the_next_endpoint_is_asked_where_one_fails(tmp_path: Path, model: Path) -> None:
    damaging = Hub({"models/org/name": model}, flips={"config.json": 99})
    with damaging as bad, Hub({"models/org/name": model}) as good:
        result = bring(tmp_path, closed_port(), bad, good + "/")
    assert (result.out / "config.json").read_bytes() == SETTINGS
    # Each file falls back for itself, and the manifest knows which came from where.
    manifest = json.loads((result.out / MANIFEST).read_text())
    assert {path: f["endpoint"] for path, f in manifest["files"].items()} == {
        "config.json": good,
        "model.safetensors": bad,
        "sub/a [1].txt": bad,
    }
    assert result.figures["endpoints"] == {
        bad: {"files": 2, "bytes": len(WEIGHTS) + 19},
        good: {"files": 1, "bytes": len(SETTINGS)},
    }


def test_all_endpoints_dead_names_each_and_leaves_no_folder(tmp_path: Path) -> None:
    first, second = closed_port(), closed_port()
    message = error(tmp_path, first, second).message
    assert first in message
    assert second in message
    assert not (tmp_path / "models/org/name").exists()


def test_an_unfinished_download_is_not_taken_for_a_data_set(tmp_path: Path, model: Path) -> None:
    (model / "train.jsonl").write_text('{"question": "1+1?", "answer": "#### 2"}\n')
    hub = Hub({"datasets/openai/gsm8k": model})
    wanted = {"repo": "openai/gsm8k", "repo_type": "dataset"}
    with hub as url:
        first = bring(tmp_path, url, **wanted)
        hub.flips["model.safetensors"] = 99
        (first.out / "model.safetensors").unlink()
        error(tmp_path, url, **wanted)
        with pytest.raises(UserError, match="unfinished"):
            resolve("gsm8k", tmp_path)
        hub.flips.clear()
        assert bring(tmp_path, url, **wanted).figures == first.figures
    assert resolve("gsm8k", tmp_path).path == first.out
    assert bring(tmp_path, url, **wanted).up_to_date


def test_a_forced_download_without_network_leaves_what_is_there(
    tmp_path: Path, model: Path
) -> None:
    with Hub({"models/org/name": model}) as url:
        bring(tmp_path, url)
    error(tmp_path, url, mode=Mode(force=True))
    assert bring(tmp_path, url).up_to_date


def test_what_the_hub_refuses_is_said_in_one_line(tmp_path: Path, model: Path) -> None:
    repos = {"models/org/name": model, "models/org/closed": model}
    with Hub(repos, gated=["models/org/closed"]) as url:
        unknown = error(tmp_path, url, repo="org/nothing")
        assert "no model org/nothing" in unknown.message
        assert "--repo-type dataset" in (unknown.hint or "")
        assert "gated" in error(tmp_path, url, repo="org/closed").message
        assert "no revision v9" in error(tmp_path, url, revision="v9").message
        assert "--include" in error(tmp_path, url, include=("*.gguf",)).message


@pytest.mark.parametrize("repo", ["gsm8k", "a/b/c", "/etc/passwd", "org/", "https://x.org/a/b"])
def test_a_repo_is_org_and_name(tmp_path: Path, repo: str) -> None:
    assert "ORG/NAME" in (error(tmp_path, repo=repo).hint or "")


def test_only_what_was_chosen_comes(tmp_path: Path, model: Path) -> None:
    with Hub({"models/org/name": model}) as url:
        some = bring(tmp_path, url, include=("*.json", "*.txt"), exclude=("sub/*",))
        assert list(json.loads((some.out / MANIFEST).read_text())["files"]) == ["config.json"]
        assert not (some.out / "sub").exists()
        assert not bring(tmp_path, url).up_to_date  # all of it is another wish
    assert (some.out / "model.safetensors").exists()


def test_force_goes_to_the_newest_commit_and_drops_what_it_lacks(
    tmp_path: Path, model: Path
) -> None:
    with Hub({"models/org/name": model}) as url:
        old = bring(tmp_path, url)
        (model / "sub" / "a [1].txt").unlink()
        (model / "config.json").write_bytes(b"{}")
        assert bring(tmp_path, url).up_to_date
        new = bring(tmp_path, url, mode=Mode(force=True))
    assert new.figures["commit"] != old.figures["commit"]
    assert (new.out / "config.json").read_bytes() == b"{}"
    assert not (new.out / "sub" / "a [1].txt").exists()


def test_a_folder_of_another_repo_is_left_alone(tmp_path: Path, model: Path) -> None:
    config = Config(repo="org/other")
    with Hub({"models/org/name": model, "models/org/other": model}) as url:
        folder = bring(tmp_path, url).out
        with pytest.raises(UserError, match="holds the model org/name"):
            run(config, Mode(), network=Network(endpoints=[url]), local_dir=folder)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("in the way")
    assert "can't use" in error(tmp_path, closed_port()).message


def test_a_dry_run_lists_and_leaves_everything_as_it_is(tmp_path: Path, model: Path) -> None:
    hub = Hub({"models/org/name": model})
    with hub as url:
        plan = bring(tmp_path, url, mode=Mode(dry_run=True)).plan or ""
        assert "3 files, 5.16 kB, of the model org/name" in plan
        assert hub.commit("models/org/name")[:12] in plan
        assert not any("/resolve/" in r.path for r in hub.requests)
        assert not (tmp_path / "models").exists()
        bring(tmp_path, url, include=("*.json",))
        assert "24 B may be there" in (bring(tmp_path, url, mode=Mode(dry_run=True)).plan or "")
    assert not (tmp_path / "models/org/name/model.safetensors").exists()


def test_a_given_token_is_sent_and_kept_nowhere(
    tmp_path: Path, model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="llmpipe")
    hub = Hub({"models/org/name": model})
    with hub as url:
        bring(tmp_path, url, token=TOKEN)
    assert {r.authorization for r in hub.requests} == {f"Bearer {TOKEN}"}
    kept = [p for p in (tmp_path / "models").rglob("*") if p.is_file()]
    assert kept
    assert not any(TOKEN.encode() in p.read_bytes() for p in kept)
    assert TOKEN not in caplog.text


def test_the_login_of_this_machine_is_for_the_hub_only(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub = Hub({"models/org/name": model})
    with hub as url:
        bring(tmp_path, url)
    assert {r.authorization for r in hub.requests} == {None}


class WithXet(Hub):
    """Says of its LFS files that they are in Xet's store too, as the hub does."""

    def entry(self, path: str, content: Path) -> dict[str, Any]:
        entry = super().entry(path, content)
        return {**entry, "xetHash": "0" * 64} if "lfs" in entry else entry


def test_xet_is_for_the_hub_alone(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    asked: list[str] = []

    def by_the_library(*args: object, **settings: object) -> str:
        """Stands in for the real function as far as the loopback can't: it has no Xet store."""
        asked.append(str(args[1]))
        path = download_one(*args, **settings)
        assert Path(path).is_file()
        return path

    download_one = huggingface_hub.hf_hub_download
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", by_the_library)
    with WithXet({"models/org/name": model}) as url:
        bring(tmp_path / "mirror", url)
        assert asked == []
        monkeypatch.setattr(transfer, "is_hub", lambda endpoint: endpoint == url)
        result = bring(tmp_path / "hub", url)
    assert asked == (["model.safetensors"] if importlib.util.find_spec("hf_xet") else [])
    assert (result.out / "model.safetensors").read_bytes() == WEIGHTS
    assert sorted(p.name for p in result.out.iterdir()) == [
        ".llmpipe",
        "config.json",
        "model.safetensors",
        "sub",
    ]


def test_what_another_tool_brought_is_checked_not_fetched(tmp_path: Path, model: Path) -> None:
    folder = tmp_path / "models/org/name"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "config.json").write_bytes(SETTINGS.replace(b"llama", b"other"))  # same size
    hub = Hub({"models/org/name": model})
    with hub as url:
        result = bring(tmp_path, url)
    fetched = {r.path.rpartition("/")[2] for r in hub.requests if "/resolve/" in r.path}
    assert "model.safetensors" not in fetched
    assert (folder / "config.json").read_bytes() == SETTINGS
    assert result.figures["endpoints"]["this machine"] == {"files": 1, "bytes": len(WEIGHTS)}


def test_files_whose_time_is_as_in_the_manifest_are_not_read_again(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Hub({"models/org/name": model}) as url:
        first = bring(tmp_path, url)
        read: list[Path] = []
        right = transfer.right
        monkeypatch.setattr(
            transfer, "right", lambda path, *rest: read.append(path) or right(path, *rest)
        )
        some = bring(tmp_path, url, include=("*.json", "*.txt", "*.safetensors"))
        assert some.figures == first.figures
        assert read == []
        (first.out / "config.json").touch()
        bring(tmp_path, url, include=("*.json",))
        assert read == [first.out / "config.json"]
        bring(tmp_path, url)
        read.clear()
        assert bring(tmp_path, url, mode=Mode(force=True)).figures["files"] == 3
        assert len(read) == 3  # forced, nothing is taken on trust


def test_the_commit_at_hand_needs_no_network_by_its_name_either(
    tmp_path: Path, model: Path
) -> None:
    with Hub({"models/org/name": model}) as url:
        commit = bring(tmp_path, url).figures["commit"]
    assert bring(tmp_path, closed_port(), revision=commit).up_to_date
    error(tmp_path, closed_port(), revision="0" * 40)


def test_a_model_comes_in_one_form_unless_told(
    tmp_path: Path, model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="llmpipe")
    (model / "pytorch_model.bin").write_bytes(b"the same as a pickle")
    (model / "original").mkdir()
    (model / "original" / "consolidated.00.pth").write_bytes(b"and as it was first")
    with Hub({"models/org/name": model}) as url:
        some = bring(tmp_path, url)
        assert not (some.out / "pytorch_model.bin").exists()
        assert not (some.out / "original").exists()
        assert some.figures["left_out"] == 2
        manifest = json.loads((some.out / MANIFEST).read_text())
        assert set(manifest["left_out"]) == {"pytorch_model.bin", "original/consolidated.00.pth"}
        assert "leaving out 2 files, 39 B" in caplog.text
        assert "pytorch_model.bin (20 B)" in caplog.text
        bring(tmp_path, url, include=("*",))
    assert (some.out / "original" / "consolidated.00.pth").exists()
    assert (some.out / "pytorch_model.bin").exists()


def test_a_listing_in_pages_is_asked_of_the_endpoint_itself(tmp_path: Path, model: Path) -> None:
    hub = Hub({"models/org/name": model}, page=1, next_base="http://127.0.0.1:9")
    with hub as url:
        assert bring(tmp_path, url).figures["files"] == 3
    assert sum("/tree/" in r.path for r in hub.requests) >= 3


class Twisted(Hub):
    """Lists config.json with other values than it has."""

    changes: dict[str, Any]

    def entry(self, name: str, content: Path) -> dict[str, Any]:
        entry = super().entry(name, content)
        return {**entry, **self.changes} if name == "config.json" else entry


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"path": "../out.txt"}, "outside"),
        ({"path": "/etc/out.txt"}, "outside"),
        ({"path": "a/../../b"}, "outside"),
        ({"path": "a\0b"}, "outside"),
        ({"path": "a\ud800b"}, "outside"),
        ({"path": "model.safetensors"}, "two files called"),
        ({"size": "24"}, "not the list of files"),
        ({"oid": None}, "not the list of files"),
        ({"lfs": 5}, "not the list of files"),
        ({"path": None}, "not the list of files"),
    ],
)
def test_a_listing_that_makes_no_sense_is_refused(
    tmp_path: Path, model: Path, changes: dict[str, Any], said: str
) -> None:
    hub = Twisted({"models/org/name": model})
    hub.changes = changes
    with hub as url:
        assert said in error(tmp_path, url).message
    assert not (tmp_path / "models/org/name").exists()


def test_a_name_that_is_too_long_costs_that_file_alone(tmp_path: Path, model: Path) -> None:
    hub = Twisted({"models/org/name": model})
    hub.changes = {"path": "x" * 300}
    with hub as url:
        error(tmp_path, url)
    assert (tmp_path / "models/org/name/model.safetensors").read_bytes() == WEIGHTS


def test_an_earlier_download_s_own_files_in_a_repo_are_left_out(
    tmp_path: Path, model: Path
) -> None:
    (model / ".llmpipe").mkdir()
    (model / ".llmpipe/manifest.json").write_text("{}")
    with Hub({"models/org/name": model}) as url:
        result = bring(tmp_path, url)
    assert result.figures["files"] == 3
    assert json.loads((result.out / MANIFEST).read_text())["repo"] == "org/name"


def kept(folder: Path) -> dict[str, bytes]:
    """What was moved away from a folder, by name."""
    away = folder / ".llmpipe/replaced"
    return {
        p.relative_to(away).as_posix().partition("/")[2]: p.read_bytes()
        for p in away.rglob("*")
        if p.is_file()
    }


def test_other_files_of_it_come_from_the_same_commit_and_remove_nothing(
    tmp_path: Path, model: Path
) -> None:
    hub = Hub({"models/org/name": model})
    with hub as url:
        hub.snapshot("models/org/name")
        first = bring(tmp_path, url)
        (model / "config.json").write_bytes(b"newer")
        narrow = bring(tmp_path, url, include=("config.json",))
        assert narrow.figures["commit"] == first.figures["commit"]
        assert (narrow.out / "config.json").read_bytes() == SETTINGS
        assert (narrow.out / "model.safetensors").read_bytes() == WEIGHTS
        with pytest.raises(UserError, match="holds revision main") as caught:
            bring(tmp_path, url, revision="exp")
        assert "--force" in (caught.value.hint or "")
        wider = bring(tmp_path, url)
    assert wider.figures == first.figures


def test_an_update_that_fails_leaves_the_old_file_until_the_new_one_is_whole(
    tmp_path: Path, model: Path
) -> None:
    hub = Hub({"models/org/name": model})
    with hub as url:
        bring(tmp_path, url)
        (model / "model.safetensors").write_bytes(WEIGHTS[::-1])
        hub.flips["model.safetensors"] = 99
        error(tmp_path, url, mode=Mode(force=True))
        assert (tmp_path / "models/org/name/model.safetensors").read_bytes() == WEIGHTS
        hub.flips.clear()
        bring(tmp_path, url)
    folder = tmp_path / "models/org/name"
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS[::-1]
    assert not kept(folder)


def test_files_of_the_user_s_own_are_moved_away_not_deleted(tmp_path: Path, model: Path) -> None:
    folder = tmp_path / "models/org/name"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"my own tuning")
    (folder / "notes.txt").write_bytes(b"mine")
    hub = Hub({"models/org/name": model}, flips={"model.safetensors": 99})
    with hub as url:
        error(tmp_path, url)
        assert (folder / "model.safetensors").read_bytes() == b"my own tuning"
        hub.flips.clear()
        bring(tmp_path, url)
        assert kept(folder) == {"model.safetensors": b"my own tuning"}
        # One that was brought and then edited is as dear.
        (folder / "config.json").write_bytes(b"edited")
        bring(tmp_path, url)
        assert kept(folder)["config.json"] == b"edited"
        (folder / "sub/a [1].txt").write_bytes(b"edited too")
        (model / "sub/a [1].txt").unlink()
        bring(tmp_path, url, mode=Mode(force=True))
    assert (folder / "sub/a [1].txt").read_bytes() == b"edited too"
    assert (folder / "notes.txt").read_bytes() == b"mine"


def test_links_are_not_written_through(tmp_path: Path, model: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "models/org/name"
    elsewhere.mkdir()
    (elsewhere / "a [1].txt").write_bytes(b"another program's")
    (elsewhere / "weights").write_bytes(b"so is this")
    folder.mkdir(parents=True)
    (folder / "sub").symlink_to(elsewhere)
    (folder / "model.safetensors").symlink_to(elsewhere / "weights")
    with Hub({"models/org/name": model}) as url:
        assert "link that leads out" in error(tmp_path, url).message
        (folder / "sub").unlink()
        bring(tmp_path, url)
    assert (elsewhere / "a [1].txt").read_bytes() == b"another program's"
    assert (elsewhere / "weights").read_bytes() == b"so is this"
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS


def test_partial_files_are_not_written_through_a_link(tmp_path: Path, model: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"do not touch")
    folder = tmp_path / "models/org/name"
    hub = Hub({"models/org/name": model}, flips={"model.safetensors": 99})
    with hub as url:
        error(tmp_path, url)
        (partial,) = (folder / ".llmpipe/partial").iterdir()
        partial.unlink()
        partial.symlink_to(precious)
        hub.flips.clear()
        bring(tmp_path, url)
    assert precious.read_bytes() == b"do not touch"
    assert not (folder / "model.safetensors").is_symlink()


def test_a_file_may_become_a_folder_and_a_folder_a_file(tmp_path: Path, model: Path) -> None:
    hub = Hub({"models/org/name": model})
    with hub as url:
        bring(tmp_path, url)
        (model / "sub/a [1].txt").unlink()
        (model / "sub").rmdir()
        (model / "sub").write_bytes(b"a file now")
        (model / "config.json").unlink()
        (model / "config.json").mkdir()
        (model / "config.json/inner").write_bytes(b"a folder now")
        out = bring(tmp_path, url, mode=Mode(force=True)).out
    assert (out / "sub").read_bytes() == b"a file now"
    assert (out / "config.json/inner").read_bytes() == b"a folder now"
    assert not kept(out)


def test_a_folder_of_the_user_s_in_the_way_is_moved_away(tmp_path: Path, model: Path) -> None:
    folder = tmp_path / "models/org/name"
    (folder / "config.json").mkdir(parents=True)
    (folder / "config.json/mine").write_bytes(b"1")
    (folder / "sub").write_bytes(b"2")
    with Hub({"models/org/name": model}) as url:
        bring(tmp_path, url)
    assert kept(folder) == {"config.json/mine": b"1", "sub": b"2"}


@pytest.mark.parametrize("state", ["a file for a folder", "gone folder"])
def test_a_folder_that_was_spoilt_is_mended(tmp_path: Path, model: Path, state: str) -> None:
    with Hub({"models/org/name": model}) as url:
        folder = bring(tmp_path, url).out
        shutil.rmtree(folder / "sub")
        if state == "a file for a folder":
            (folder / "sub").write_text("x")
        assert not bring(tmp_path, url).up_to_date
    assert (folder / "sub/a [1].txt").exists()


GOOD = {
    "format": 2,
    "repo": "org/name",
    "repo_type": "model",
    "commit": "0" * 40,
    "endpoint": "x",
    "asked": {"revision": "main"},
    "files": {"config.json": {}},
    "left_out": {},
    "about": {},
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "5",
        '{"format": 2}',
        "[" * 100_000,
        json.dumps({**GOOD, "files": {}}),
        json.dumps(GOOD),
        json.dumps({**GOOD, "files": 5}),
        json.dumps({**GOOD, "asked": None}),
        json.dumps({**GOOD, "format": 1}),
    ],
)
def test_a_manifest_that_makes_no_sense_is_made_anew(
    tmp_path: Path, model: Path, text: str
) -> None:
    with Hub({"models/org/name": model}) as url:
        first = bring(tmp_path, url)
        (first.out / MANIFEST).write_text(text)
        again = bring(tmp_path, url)
        assert not again.up_to_date
        assert again.figures["files"] == 3
        assert bring(tmp_path, url).up_to_date


def test_a_manifest_can_t_name_files_outside(tmp_path: Path, model: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    with Hub({"models/org/name": model}) as url:
        folder = bring(tmp_path, url).out
        manifest = json.loads((folder / MANIFEST).read_text())
        stat = victim.stat()
        manifest["files"]["../../../victim"] = {
            **manifest["files"]["config.json"],
            "size": stat.st_size,
            "mtime_ns": stat.st_mtime_ns,
        }
        manifest["commit"] = "0" * 40
        (folder / MANIFEST).write_text(json.dumps(manifest))
        bring(tmp_path, url, mode=Mode(force=True))
    assert victim.read_bytes() == b"mine"


def test_a_local_dir_that_is_there_stays_there_when_nothing_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    network = Network(endpoints=[closed_port()], retry=Retry(tries=1))
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    for folder in (".", "empty", "link"):
        with pytest.raises(UserError, match="refused"):
            run(Config(repo="org/name"), Mode(), local_dir=Path(folder), network=network)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["empty", "link"]


def test_a_home_folder_is_written_with_a_tilde(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with Hub({"models/org/name": model}) as url:
        network = Network(endpoints=[url])
        out = run(Config(repo="org/name"), Mode(), local_dir=Path("~/m"), network=network).out
    assert out == tmp_path / "home/m"


@pytest.mark.parametrize("token", ["", " ", "a b", "hf_x\n", "hf_\xe9"])
def test_a_token_that_is_none_is_refused_and_not_shown(
    tmp_path: Path, model: Path, token: str
) -> None:
    with Hub({"models/org/name": model}) as url:
        message = error(tmp_path, url, token=token).message
    assert "no token has" in message
    assert "hf_" not in message


def test_an_empty_revision_is_refused(tmp_path: Path) -> None:
    assert "--revision is empty" in error(tmp_path, closed_port(), revision=" ").message


def test_a_listing_that_is_none_is_an_error(tmp_path: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:

        def portal() -> None:  # what a network that wants a login first answers to everything
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.recv(4096)
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n"
                    b"Connection: close\r\n\r\nlogin!"
                )
                connection.close()

        threading.Thread(target=portal, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert "something that is not the repo" in error(tmp_path, url).message


def test_endpoints_are_given_or_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.delenv("LLMPIPE_ENDPOINTS", raising=False)
    assert endpoints() == ["https://huggingface.co"]
    monkeypatch.setenv("HF_ENDPOINT", "https://a.org/")
    assert endpoints() == ["https://a.org"]
    monkeypatch.setenv("LLMPIPE_ENDPOINTS", "https://b.org, https://c.org https://b.org/")
    assert endpoints() == ["https://b.org", "https://c.org"]
    assert endpoints(["https://d.org/hub/"]) == ["https://d.org/hub"]
    for wrong in ("hf-mirror.com", "ftp://a.org", "https://", "https://a:b"):
        with pytest.raises(UserError, match="no URL"):
            endpoints([wrong])
    with pytest.raises(UserError) as caught:
        endpoints(["ftp://me:secret@a.org"])
    assert "secret" not in caught.value.message


def test_the_login_is_for_the_hub_by_https() -> None:
    assert is_hub("https://huggingface.co")
    assert is_hub("https://hf.co")
    for other in (
        "http://huggingface.co",
        "https://hf-mirror.com",
        "https://huggingface.co.evil.org",
        "https://evilhuggingface.co",
        "https://huggingface.co@evil.org",
    ):
        assert not is_hub(other)


def test_a_password_in_an_endpoint_is_kept_nowhere(
    tmp_path: Path, model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="llmpipe")
    with Hub({"models/org/name": model}, flips={"config.json": 1}) as url:
        folder = bring(tmp_path, url.replace("http://", "http://me:open-sesame@")).out
    kept = [p for p in folder.rglob("*") if p.is_file()]
    assert not any(b"open-sesame" in p.read_bytes() for p in kept)
    assert "damaged" in caplog.text
    assert "open-sesame" not in caplog.text


def test_a_trickle_is_left_for_the_next_endpoint(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_PATIENCE", 0.5)
    monkeypatch.setattr(transfer, "_SLOWEST", 10_000)
    (model / "model.safetensors").write_bytes(WEIGHTS * 4)
    trickle = Fault("slow", "model.safetensors", seconds=8.0, times=None)  # 2,500 bytes a second
    with (
        Hub({"models/org/name": model}, faults=[trickle]) as slow,
        Hub({"models/org/name": model}) as good,
    ):
        network = Network(endpoints=[slow, good], timeout=1.0, retry=Retry(tries=1))
        result = run(Config(repo="org/name"), Mode(), network=network, root=tmp_path)
    assert result.figures["endpoints"][good] == {"files": 1, "bytes": 4 * len(WEIGHTS)}
