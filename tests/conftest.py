"""What tests in every room share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_model import make_tiny_model, pack_sums

_ROOT = Path(__file__).parents[1]

# Started in a shell's background, this process ignores Ctrl-C, and so would the commands it tests.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", autouse=True)
def _environment() -> Iterator[None]:
    """What an engine that is loaded in this process sets is not for the next module's commands."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a few thousand random weights, made once. No test changes it."""
    return make_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="session")
def packed_sums(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows to train it on."""
    return pack_sums(tmp_path_factory.mktemp("sums"), tiny_model, 60)


@pytest.fixture(scope="session")
def smol_model() -> Path:
    """The folder of a real small model, made on the first use (see pipelines/smollm2.py)."""
    given = os.environ.get("LLMPIPE_TEST_MODEL")
    if given:
        return Path(given)
    folder = _ROOT / "models/HuggingFaceTB/SmolLM2-135M-Instruct"
    made = subprocess.run(
        [sys.executable, _ROOT / "pipelines/smollm2.py", "--out", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode == 2:
        pytest.skip(made.stderr.strip())
    assert made.returncode == 0, made.stderr
    return folder
