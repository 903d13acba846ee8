"""Downloads, by the real client from a hub on the loopback."""

from __future__ import annotations

import hashlib
import json
import logging
import socket
from pathlib import Path

import pytest
from hub import Hub
from huggingface_hub import constants

from llmpipe.core.errors import UserError
from llmpipe.core.run import Mode, Result
from llmpipe.recipes import resolve
from llmpipe.stages.download import MANIFEST, Config, run

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
    return run(config, mode or Mode(), endpoints=endpoints, token=token, root=root)  # type: ignore[arg-type]


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
    assert result.figures["endpoint"] == good
    assert (result.out / "config.json").read_bytes() == SETTINGS


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
        assert "--include" in (error(tmp_path, url, include=("*.gguf",)).hint or "")


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
            run(config, Mode(), endpoints=[url], local_dir=folder)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("in the way")
    assert "can't write" in error(tmp_path, closed_port()).message


def test_a_dry_run_asks_nobody(tmp_path: Path, model: Path) -> None:
    hub = Hub({"models/org/name": model})
    with hub as url:
        assert "org/name" in (bring(tmp_path, url, mode=Mode(dry_run=True)).plan or "")
    assert not hub.requests
    assert not (tmp_path / "models").exists()


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


def test_xet_is_off_for_a_mirror_and_as_before_afterwards(tmp_path: Path, model: Path) -> None:
    seen: list[bool] = []

    class Listening(Hub):
        def entry(self, path: str, content: bytes) -> dict[str, object]:
            seen.append(constants.HF_HUB_DISABLE_XET)
            return super().entry(path, content)

    before = constants.HF_HUB_DISABLE_XET
    with Listening({"models/org/name": model}) as url:
        bring(tmp_path, url)
    assert set(seen) == {True}
    assert before == constants.HF_HUB_DISABLE_XET
