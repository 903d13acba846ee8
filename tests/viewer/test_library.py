from __future__ import annotations

from pathlib import Path

import pytest
from helpers import make_artifact, problem, rollout

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Rollout, Verdict
from llmpipe.viewer.library import Library


def test_what_others_were_made_from_is_there_in_the_order_of_making(tree: Path) -> None:
    library = Library(tree, lambda: [Artifact.open(tree / "eval"), Artifact.open(tree / "sft")])
    names = ["problems", "rollouts", "verdicts", "eval", "sft"]
    assert list(library.refresh()) == names
    problems = library.get("problems")
    assert [a.path.name for a in library.made_of(problems, Verdict)] == ["verdicts"]
    assert [a.path.name for a in library.made_of(problems, Rollout)] == ["rollouts"]
    assert library.made_of(library.get("sft"), Verdict) == []


def test_what_is_made_later_is_found_and_what_is_made_anew_is_read_anew(tmp_path: Path) -> None:
    def find() -> list[Artifact]:
        return [Artifact.open(path.parent) for path in tmp_path.glob("*/manifest.json")]

    library = Library(tmp_path, find)
    assert library.refresh() == {}
    make_artifact(tmp_path / "a", [problem("p")])
    assert list(library.refresh()) == ["a"]
    make_artifact(tmp_path / "a", [rollout("p", i, "x") for i in range(3)])
    assert library.get("a").rows == 3
    with pytest.raises(UserError, match="no artifact called"):
        library.get("../a")
