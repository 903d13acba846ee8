"""Each problem once, none of them held out."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from helpers import make_artifact, rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem
from llmpipe.core.run import Mode, Result
from llmpipe.stages.dedupe import HITS, MERGES, Config, run
from llmpipe.tasks import _hands


def problem(
    prompt: str, answer: str = "1", solution: str | None = None, source: str = "s"
) -> Problem:
    return Problem.make(
        task="math", source=source, prompt=prompt, answer=answer, solution=solution, level="2",
        pass_rate=0.5,
    )  # fmt: skip


def dedupe(
    tmp_path: Path,
    *inputs: list[Problem],
    against: list[list[Problem]] | None = None,
    config: Config | None = None,
) -> Result:
    paths = [
        make_artifact(tmp_path / f"in{i}", rows, record=Problem) for i, rows in enumerate(inputs)
    ]
    held = [
        make_artifact(tmp_path / f"held{i}", r, record=Problem) for i, r in enumerate(against or [])
    ]
    return run(config or Config(), paths, tmp_path / "out", Mode(), against=held)


def table(tmp_path: Path, name: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = pq.read_table(tmp_path / "out" / name).to_pylist()
    return rows


def kept(tmp_path: Path) -> list[Problem]:
    return list(Artifact.open(tmp_path / "out", Problem).iter_rows(Problem))


def test_the_first_of_a_problem_s_rows_is_kept_as_it_is(tmp_path: Path) -> None:
    first, other = problem(r"Find $\dfrac12+1$"), problem("Find 1+1")
    result = dedupe(tmp_path, [first, other, problem(r"find \(\frac{1}{2} + 1\)"), first])
    assert kept(tmp_path) == [first, other]
    assert [r[1:] for r in rejects(tmp_path / "out")] == [
        ("duplicate", f"of row 1 of {tmp_path / 'in0'}")
    ] * 2
    assert result.figures["duplicates"] == 2
    assert result.figures["duplicate_share"] == 0.5
    assert Artifact.open(tmp_path / "out").manifest.counts["read"] == 4


def test_a_row_with_a_solution_is_preferred(tmp_path: Path) -> None:
    bare, solved = problem("1 + 1"), problem("1+1", solution="2.", source="book")
    dedupe(tmp_path, [bare, solved, problem("1+ 1", solution="Two.")])
    assert kept(tmp_path) == [solved]
    assert {r[2] for r in rejects(tmp_path / "out")} == {f"of row 2 of {tmp_path / 'in0'}"}


def test_several_inputs_are_read_in_order(tmp_path: Path) -> None:
    one, two, three = problem("1"), problem("2"), problem("3")
    again = problem("2", source="second")
    dedupe(tmp_path, [one, two], [again, three])
    assert kept(tmp_path) == [one, two, three]
    assert rejects(tmp_path / "out") == [(two.id, "duplicate", f"of row 2 of {tmp_path / 'in0'}")]
    inputs = Artifact.open(tmp_path / "out").manifest.inputs
    assert list(inputs) == ["problems 1", "problems 2"]


def test_the_order_of_inputs_decides_which_source_is_kept(tmp_path: Path) -> None:
    one, two = problem("x", source="one"), problem("x", source="two")
    dedupe(tmp_path, [two], [one])
    assert kept(tmp_path) == [two]


def test_a_problem_with_two_answers_is_dropped_whole(tmp_path: Path) -> None:
    rows = [problem("1+1", "2"), problem("2+2", "4"), problem("1 + 1", "3"), problem("1+1", "2")]
    result = dedupe(tmp_path, rows)
    assert kept(tmp_path) == [rows[1]]
    assert rejects(tmp_path / "out") == [
        (rows[0].id, "conflicting_answers", "'2' here, '3' elsewhere"),
        (rows[2].id, "conflicting_answers", "'3' here, '2' elsewhere"),
        (rows[3].id, "conflicting_answers", "'2' here, '3' elsewhere"),
    ]
    assert result.figures["conflicts"] == 3


def test_answers_written_differently_are_no_conflict(tmp_path: Path) -> None:
    result = dedupe(tmp_path, [problem("a", r"\dfrac{1}{2}"), problem("a", r"$\frac12$")])
    assert (result.rows, result.figures["conflicts"]) == (1, 0)


def test_a_maze_turned_round_is_the_same_with_another_answer(tmp_path: Path) -> None:
    def maze(grid: str, answer: str) -> Problem:
        return Problem.make(
            task="maze", source="m", prompt=grid, answer=answer, payload={"maze": grid}
        )

    rows = [maze("S..\n.*.\n..E", "RRDD"), maze("E..\n.*.\n..S", "UULL"), maze("S.\n*E", "RD")]
    result = dedupe(tmp_path, rows)
    assert kept(tmp_path) == [rows[0], rows[2]]
    assert dict(result.dropped) == {"duplicate": 1}


def test_held_out_problems_are_removed_and_named(tmp_path: Path) -> None:
    seen, free = problem(r"Find \[x^{2}\]"), problem("Find $x^3$")
    result = dedupe(tmp_path, [seen, free, seen], against=[[problem("9")], [problem("find x^2")]])
    assert kept(tmp_path) == [free]
    assert rejects(tmp_path / "out") == [(seen.id, "in_held_out", str(tmp_path / "held1"))] * 2
    assert result.figures["contaminated"] == 2
    inputs = Artifact.open(tmp_path / "out").manifest.inputs
    assert list(inputs) == ["problems", "against 1", "against 2"]


def test_nothing_left_asks_for_attention(tmp_path: Path) -> None:
    result = dedupe(tmp_path, [problem("1")], against=[[problem("1")]])
    assert result.exit_code == 3
    assert "in_held_out" in (result.attention or "")


def test_many_shuffled_rows_are_sorted_out(tmp_path: Path) -> None:
    rows = [problem(f"What is {i} + {j}?", str(i + j)) for i in range(60) for j in range(60)]
    spaced = [
        problem(f"what  is ${i}+{j}$?", str(i + j)) for i in range(60) for j in range(0, 60, 2)
    ]
    everything = rows + spaced
    random.Random(0).shuffle(everything)
    result = dedupe(tmp_path, everything[:2000], everything[2000:])
    assert (result.rows, result.dropped) == (3600, {"duplicate": 1800})
    prompts = {p.prompt.replace("$", "").replace(" ", "").lower() for p in kept(tmp_path)}
    assert len(prompts) == 3600


def test_it_is_up_to_date_until_an_input_changes(tmp_path: Path) -> None:
    rows = [problem("1"), problem("2")]
    dedupe(tmp_path, rows)
    assert dedupe(tmp_path, rows).up_to_date
    assert not dedupe(tmp_path, rows, against=[[problem("2")]]).up_to_date
    assert kept(tmp_path) == rows[:1]


def test_what_is_no_artifact_of_problems_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        run(Config(), [tmp_path / "nothing"], tmp_path / "out", Mode())
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="not an llmpipe artifact"):
        run(Config(), [tmp_path / "folder"], tmp_path / "out", Mode())
    odd = make_artifact(tmp_path / "odd", [dataclasses.replace(problem("1"), task="chess")])
    with pytest.raises(UserError, match="no task is called 'chess'"):
        run(Config(), [odd], tmp_path / "out", Mode())


EGGS = "A hen lays 3 eggs a day. How many eggs are there after 4 days?"
EGGS_TOO = "A chicken lays three eggs a day. How many eggs are there after 4 days? Show your work."


def test_other_words_of_a_problem_are_merged_and_listed(tmp_path: Path) -> None:
    one, other = problem(EGGS, "12"), problem(EGGS_TOO, "12.0", source="t")
    less = problem("A hen lays 3 eggs a day. How many eggs are there after 5 days?", "15")
    result = dedupe(tmp_path, [one, other, less])
    assert kept(tmp_path) == [one, less]
    place = f"row 1 of {tmp_path / 'in0'}"
    assert rejects(tmp_path / "out") == [(other.id, "near_duplicate", f"of {place}")]
    assert table(tmp_path, MERGES) == [
        {
            "tier": "near", "id": other.id, "source": "t", "prompt": EGGS_TOO,
            "kept": place, "kept_id": one.id, "kept_source": "s", "kept_prompt": EGGS,
            "changes": "hen > chicken",
        }
    ]  # fmt: skip
    assert (result.figures["duplicates"], result.figures["near_duplicates"]) == (0, 1)


def test_the_one_with_a_solution_stays_though_it_comes_later(tmp_path: Path) -> None:
    solved = problem(EGGS_TOO, solution="3 * 4")
    dedupe(tmp_path, [problem(EGGS), solved])
    assert kept(tmp_path) == [solved]


def test_near_duplicates_can_be_left_in(tmp_path: Path) -> None:
    rows = [problem(EGGS), problem(EGGS_TOO), problem(EGGS)]
    dedupe(tmp_path, rows, config=Config(near=False))
    assert kept(tmp_path) == rows[:2]


def test_near_duplicates_with_other_answers_stay_and_are_listed(tmp_path: Path) -> None:
    rows = [problem(EGGS, "12"), problem(EGGS_TOO, "13")]
    result = dedupe(tmp_path, rows)
    assert kept(tmp_path) == rows
    assert result.figures["near_conflicts"] == 1
    assert [(m["tier"], m["id"]) for m in table(tmp_path, MERGES)] == [
        ("near, other answer", rows[1].id)
    ]


def test_each_merge_holds_for_the_one_that_is_kept(tmp_path: Path) -> None:
    """Each of these is near the next, but the last is too far from the first."""
    texts = [
        "boats sail rivers carrying 3 stones",
        "ships sail rivers carrying 3 stones",
        "ships cross rivers carrying 3 stones",
        "ships cross lakes carrying 3 stones",
    ]
    rows = [problem(text) for text in texts]
    dedupe(tmp_path, rows, config=Config(threshold=0.6))
    assert kept(tmp_path) == [rows[0], rows[3]]


def test_what_a_template_s_gaps_are_filled_with_makes_other_problems(tmp_path: Path) -> None:
    names, things = ("Ann", "Bob", "Eve", "Joe"), ("pens", "caps", "nuts", "figs")
    rows = [
        problem(f"{name} has {n} {thing} and buys 2 {thing} more. How many are there now?")
        for n in range(3, 9)
        for name in names
        for thing in things
    ]
    slip = problem("Ann has 5 pens and buys 2 pens moer. How mnay are there now?")
    dedupe(tmp_path, [*rows, slip])
    assert kept(tmp_path) == rows


def test_answers_are_compared_by_what_they_are_worth(tmp_path: Path) -> None:
    rows = [
        problem("a", "1/2"),
        problem("a", "0.5"),
        problem("a", r"$\frac{2}{4}$"),
        problem("a", ""),
    ]
    result = dedupe(tmp_path, rows)
    assert (kept(tmp_path), result.figures["conflicts"]) == (rows[:1], 0)


def test_a_row_without_an_answer_stands_for_none_that_has_one(tmp_path: Path) -> None:
    rows = [problem("a", "", solution="long"), problem("a", "1")]
    dedupe(tmp_path, rows)
    assert kept(tmp_path) == rows[1:]


def test_one_row_of_a_conflict_may_be_kept(tmp_path: Path) -> None:
    rows = [problem("1+1", "2"), problem("1 + 1", "3"), problem("2", "2")]
    result = dedupe(tmp_path, rows, config=Config(keep_conflicts=True))
    assert kept(tmp_path) == [rows[0], rows[2]]
    assert result.figures["conflicts"] == 2


def test_the_sources_of_what_was_dropped_are_recorded(tmp_path: Path) -> None:
    rows = [problem("1", source="a"), problem("1", source="b"), problem("1", source="b")]
    dedupe(tmp_path, rows)
    details = Artifact.open(tmp_path / "out").manifest.details
    assert details["sources"] == [{"kept": "a", "dropped": "b", "rows": 2}]
    assert [(m["source"], m["kept_source"], m["kept"]) for m in table(tmp_path, MERGES)] == [
        ("b", "a", f"row 1 of {tmp_path / 'in0'}")
    ] * 2


def test_exact_duplicates_are_listed_with_both_texts(tmp_path: Path) -> None:
    first, copy = problem("Find $1 + 1$", source="a"), problem("find 1+1", source="b")
    dedupe(tmp_path, [first, problem("2 + 2"), copy])
    assert table(tmp_path, MERGES) == [
        {
            "tier": "exact", "id": copy.id, "source": "b", "prompt": "find 1+1",
            "kept": f"row 1 of {tmp_path / 'in0'}", "kept_id": first.id, "kept_source": "a",
            "kept_prompt": "Find $1 + 1$", "changes": None,
        }
    ]  # fmt: skip


def test_what_is_listed_as_kept_is_in_the_output(tmp_path: Path) -> None:
    """A copy of a near duplicate goes on account of what that was merged with."""
    spaced = problem(EGGS_TOO.replace("eggs a day", "Eggs  a day"))
    rows = [problem(EGGS), problem(EGGS_TOO), spaced, problem(EGGS_TOO)]
    dedupe(tmp_path, rows)
    assert kept(tmp_path) == rows[:1]
    merges = table(tmp_path, MERGES)
    assert {m["kept_id"] for m in merges} == {rows[0].id}
    assert sorted(m["tier"] for m in merges)[0] == "exact, near"
    assert {r[2] for r in rejects(tmp_path / "out")} == {f"of row 1 of {tmp_path / 'in0'}"}


def test_copies_of_what_is_near_a_held_out_problem_are_contaminated_too(tmp_path: Path) -> None:
    duck = problem(EGGS_TOO.replace("chicken", "duck"))
    result = dedupe(tmp_path, [duck, problem("2 + 2"), duck], against=[[problem(EGGS)]])
    assert [r[1] for r in rejects(tmp_path / "out")] == ["near_held_out"] * 2
    assert result.figures["contaminated"] == 2
    assert [(h["tier"], h["held_out_prompt"]) for h in table(tmp_path, HITS)] == [
        ("near", EGGS)
    ] * 2


def test_prompts_too_long_to_compare_are_counted_and_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [problem("figure " * 3000), problem("in the figure " * 2000), problem("figure " * 3000)]
    with caplog.at_level("WARNING", "llmpipe.stages.dedupe"):
        result = dedupe(tmp_path, rows)
    assert kept(tmp_path) == rows[:2]
    assert result.figures["near_skipped"] == 2
    assert [r.getMessage().split(" are ")[0] for r in caplog.records] == ["2 prompts"]


def test_prompts_without_content_are_like_none(tmp_path: Path) -> None:
    rows = [problem(text) for text in ("???", "Solve.", "$$$$$$$$", "求下列各式的值。")]
    dedupe(tmp_path, rows)
    assert kept(tmp_path) == rows


def test_held_out_problems_are_found_in_every_tier(tmp_path: Path) -> None:
    held = problem(EGGS, "12")
    rows = {
        "same": problem(EGGS.replace(" ", "  ").upper()),
        "embedded": problem(f"Question 7. {EGGS}\nGive reasons."),
        "near": problem(EGGS_TOO.replace("chicken", "duck")),
        "template": problem(EGGS.replace("3", "5")),
        "none": problem("A cow gives 3 liters a day. How many liters in 4 days?"),
    }
    result = dedupe(tmp_path, list(rows.values()), against=[[problem("9")], [held]])
    assert kept(tmp_path) == [rows["template"], rows["none"]]
    place = str(tmp_path / "held1")
    assert rejects(tmp_path / "out") == [
        (rows["same"].id, "in_held_out", place),
        (rows["embedded"].id, "in_held_out", place),
        (rows["near"].id, "near_held_out", place),
    ]
    hits = {h["tier"]: h for h in table(tmp_path, HITS)}
    assert {tier: h["id"] for tier, h in hits.items()} == {
        tier: rows[tier].id for tier in ("same", "embedded", "near", "template")
    }
    assert hits["near"] == {
        "tier": "near", "id": rows["near"].id, "source": "s", "prompt": rows["near"].prompt,
        "held_out": place, "held_out_id": held.id, "held_out_prompt": EGGS,
        "changes": "hen > duck",
    }  # fmt: skip
    figures = {k: v for k, v in result.figures.items() if k.startswith("held_out")}
    assert set(figures.values()) == {1}
    assert result.figures["contaminated"] == 3


def test_templates_of_held_out_problems_can_be_dropped(tmp_path: Path) -> None:
    rows = [problem(EGGS.replace("3", "5")), problem("2 + 2")]
    dedupe(tmp_path, rows, against=[[problem(EGGS)]], config=Config(drop_templates=True))
    assert kept(tmp_path) == rows[1:]
    assert [r[1] for r in rejects(tmp_path / "out")] == ["held_out_template"]


def test_a_held_out_maze_is_found_turned_round_and_has_no_likes(tmp_path: Path) -> None:
    def maze(grid: str) -> Problem:
        return Problem.make(
            task="maze", source="m", prompt=f"Solve:\n{grid}", answer="R", payload={"maze": grid}
        )

    rows = [maze("S.\n*E"), maze("S.E\n...")]
    dedupe(tmp_path, rows, against=[[maze("E.\n*S")]])
    assert kept(tmp_path) == rows[1:]
    assert [h["tier"] for h in table(tmp_path, HITS)] == ["same"]


def test_worker_processes_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [problem(EGGS.replace("3", str(n)), str(n)) for n in range(60)]
    rows += [problem(EGGS_TOO.replace("three", str(n)), str(n)) for n in range(0, 60, 2)]
    random.Random(0).shuffle(rows)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    dedupe(tmp_path / "a", rows, against=[rows[:3]])
    monkeypatch.setattr(_hands, "_MUCH", 1)
    dedupe(tmp_path / "b", rows, against=[rows[:3]])
    assert kept(tmp_path / "a") == kept(tmp_path / "b")
    assert len(kept(tmp_path / "a")) < 60
    assert sorted(p.name for p in (tmp_path / "b").iterdir()) == ["held0", "in0", "out"]


def test_a_threshold_is_a_share(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--threshold 60 is no share"):
        dedupe(tmp_path, [problem("1")], config=Config(threshold=60))
