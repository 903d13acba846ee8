from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmpipe.core.errors import UserError
from llmpipe.core.paths import downloaded_repo, find_model


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "models/org/name"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_a_model_is_found_by_its_path_and_by_its_id(model: Path) -> None:
    assert find_model(str(model)) == model
    assert find_model("org/name") == Path("models/org/name")


def test_a_missing_model_says_how_to_get_it(model: Path) -> None:
    with pytest.raises(UserError) as caught:
        find_model("org/other")
    assert caught.value.hint == "llmpipe download org/other"


def test_an_unfinished_download_is_no_model(model: Path) -> None:
    (model / ".llmpipe").mkdir()
    with pytest.raises(UserError, match="unfinished"):
        find_model("org/name")
    (model / ".llmpipe/manifest.json").write_text(json.dumps({"repo": "org/name"}))
    assert downloaded_repo(model) == "org/name"
    assert find_model("org/name") == Path("models/org/name")


def test_a_folder_without_a_config_is_no_model(model: Path) -> None:
    for broken in (b"{", b"[]", b"\xff"):
        (model / "config.json").write_bytes(broken)
        with pytest.raises(UserError, match=r"config\.json is no JSON object"):
            find_model(str(model))
    (model / "config.json").unlink()
    with pytest.raises(UserError, match=r"no config\.json"):
        find_model(str(model))
