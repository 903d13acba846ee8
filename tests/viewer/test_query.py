from __future__ import annotations

from pathlib import Path

import pytest
from viewer_tree import PROBLEMS, RESPONSES

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import RECORDS, Problem, to_batch
from llmpipe.core.tables import ShardWriter
from llmpipe.viewer.listings import LISTINGS, Wanted
from llmpipe.viewer.query import Table, Tables


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables()


@pytest.fixture
def verdicts(tables: Tables, tree: Path) -> Table:
    return tables.table(Artifact.open(tree / "verdicts"))


def test_every_record_has_a_listing(tables: Tables, tree: Path) -> None:
    assert LISTINGS.keys() == RECORDS.keys()
    for name in ("problems", "rollouts", "verdicts", "eval", "sft", "pairs"):
        table = tables.table(Artifact.open(tree / name))
        rows = table.page(Wanted(), 0)
        assert [row["n"] for row in rows] == list(range(min(table.artifact.rows, 50)))
        assert [f["n"] for f in table.facets(3)] == [row["n"] for row in rows[:3]]


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        (Wanted(status="wrong"), [1, 3, 5]),
        (Wanted(level="Level 1"), [2, 3]),
        (Wanted(level="Level 2", status="correct"), [0]),
        (Wanted(rate_from=0.5, rate_to=0.5), [0, 1, 2, 3, 4, 5]),
        (Wanted(rate_from=0.51), []),
        (Wanted(length_from=16, length_to=17), [2, 3]),
        (Wanted(text="MEETS A WALL"), [5]),
        (Wanted(text="A pen"), [0, 1]),
        (Wanted(text="<script>"), [0]),
        (Wanted(text="%"), []),
        (Wanted(text="' OR true --"), []),
        (Wanted(status="wrong' OR 'a' = 'a"), []),
        (Wanted(problem=PROBLEMS[2].id), [4, 5]),
    ],
)
def test_what_is_wanted_is_found(verdicts: Table, wanted: Wanted, rows: list[int]) -> None:
    assert verdicts.numbers(wanted, 0, 50) == rows
    assert verdicts.count(wanted) == len(rows)
    assert [row["n"] for row in verdicts.page(wanted, 0)] == rows
    assert [row["n"] for row in verdicts.page(wanted, 1)] == rows[1:]


def test_a_row_is_shown_with_what_it_is_about(verdicts: Table) -> None:
    row = verdicts.page(Wanted(), 3)[0]
    assert (row["status"], row["problem"], row["gold"], row["answer"]) == (
        *("wrong", PROBLEMS[1].prompt, "2", "3"),
    )
    assert (row["tokens"], row["level"], row["pass rate"]) == (len(RESPONSES[1][1]), "Level 1", 0.5)


def test_problems_have_the_pass_rates_of_verdicts_on_them(tables: Tables, tree: Path) -> None:
    problems = Artifact.open(tree / "problems")
    known = tables.table(problems, Artifact.open(tree / "verdicts"))
    assert [row["pass rate"] for row in known.page(Wanted(), 0)] == [0.5, 0.5, 0.5]
    assert known.count(Wanted(rate_from=0.5)) == 3
    unknown = tables.table(problems)
    assert [row["pass rate"] for row in unknown.page(Wanted(), 0)] == [None, None, None]
    assert unknown.count(Wanted(rate_from=0.5)) == 0


def test_the_choices_of_a_filter_are_counted(verdicts: Table) -> None:
    assert verdicts.choices("status") == [("correct", 3), ("wrong", 3)]
    assert verdicts.choices("level") == [("Level 1", 2), ("Level 2", 2)]


def test_the_rows_beside_one_are_as_wanted(verdicts: Table) -> None:
    assert verdicts.beside(Wanted(), 0) == (None, 1)
    assert verdicts.beside(Wanted(), 5) == (4, None)
    assert verdicts.beside(Wanted(status="wrong"), 3) == (1, 5)


def test_rows_are_numbered_through_all_files(tables: Tables, tree: Path, tmp_path: Path) -> None:
    """Three files of two rows, and one of one."""
    artifact = Artifact.open(tree / "problems")
    rows = [Problem.make(task="math", source="s", prompt=f"q{i}", answer="1") for i in range(7)]
    writer = ShardWriter(tmp_path / "data", Problem.SCHEMA, shard_rows=2)
    writer.write(to_batch(Problem, rows))
    files = {f"data/{p.name}": {"sha256": p.name, "bytes": 0} for p in writer.close()}
    manifest = artifact.manifest.__class__(**{**vars(artifact.manifest), "files": files, "rows": 7})
    table = tables.table(Artifact(tmp_path, manifest))
    assert [row["problem"] for row in table.page(Wanted(), 1, 4)] == ["q1", "q2", "q3", "q4"]
    assert [table.row(n)["prompt"] for n in range(7)] == [f"q{i}" for i in range(7)]
    assert table.numbers(Wanted(text="q5"), 0, 9) == [5]
    with pytest.raises(UserError, match="has 7 rows"):
        table.row(7)


def test_verdicts_whose_rollouts_were_moved_are_listed(tables: Tables, tree: Path) -> None:
    artifact = Artifact.open(tree / "verdicts")
    lost = {r: {**e, "path": "../nowhere"} for r, e in artifact.manifest.inputs.items()}
    manifest = artifact.manifest.__class__(**{**vars(artifact.manifest), "inputs": lost})
    table = tables.table(Artifact(artifact.path, manifest))
    assert "which is gone" in table.no_rollouts
    row = table.page(Wanted(status="wrong", text="wall"), 0)[0]
    assert (row["n"], row["answer"], row["problem"], row["tokens"]) == (5, "RRDD", None, None)
