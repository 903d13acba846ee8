from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from llmpipe.core.errors import UserError
from llmpipe.core.libraries import needs


def _import(name: str) -> None:
    with needs(name, "pip install it"):
        importlib.import_module(name)


def test_a_missing_library_says_how_to_get_it() -> None:
    with pytest.raises(UserError, match="absent_library is not installed") as caught:
        _import("absent_library")
    assert caught.value.hint == "pip install it"


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        (
            "raise RuntimeError('operator torchvision::nms does not exist')",
            "built for another torch",
            "pip uninstall -y torchvision torchaudio torchcodec",
        ),
        (
            "import absent_part",
            "can't be imported: No module named 'absent_part'",
            "pip install it",
        ),
    ],
)
def test_a_library_that_fails_to_import(
    source: str, message: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_library.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=message) as caught:
        _import("broken_library")
    assert caught.value.hint == hint


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="a bug"), needs("json", "pip install it"):
        raise RuntimeError("a bug")
