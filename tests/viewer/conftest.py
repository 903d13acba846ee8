"""A tree of artifacts, served."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from viewer_tree import make_tree

from llmpipe.core.artifact import Artifact
from llmpipe.viewer.library import Library
from llmpipe.viewer.server import Server


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its name has what would be a pattern for DuckDB."""
    return make_tree(tmp_path_factory.mktemp("runs") / "it's [a-z]*")


@pytest.fixture(scope="session")
def library(tree: Path) -> Library:
    """All of its artifacts."""
    return Library(tree, lambda: [Artifact.open(p.parent) for p in tree.glob("*/manifest.json")])


@pytest.fixture(scope="session")
def server(library: Library) -> Iterator[Server]:
    """The tree, served."""
    with Server(library, host="127.0.0.1", port=0) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()
