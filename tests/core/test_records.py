"""Records and their Arrow schemas, and the id that joins every table."""

from __future__ import annotations

import dataclasses

from llmpipe.core.records import (
    RECORDS,
    Problem,
    Rewards,
    Rollout,
    Verdict,
    problem_id,
    to_batch,
)
from llmpipe.core.seeds import sample_seed


def test_ids_never_change() -> None:
    """They join every table that was ever written: these values are fixed for good."""
    assert problem_id("math", "What is 1 + 1?") == "42981492f6818411"
    assert problem_id("math", "  What is\n1 + 1? ") == problem_id("math", "What is 1 + 1?")
    assert problem_id("maze", "What is 1 + 1?") != problem_id("math", "What is 1 + 1?")
    assert problem_id("math", "caf\u0065\u0301") == problem_id("math", "caf\u00e9")


def test_sample_seeds_never_change_and_fit_an_int64() -> None:
    assert sample_seed(0, "42981492f6818411", 0) == 6685999494960835412
    seeds = {sample_seed(r, p, j) for r in range(3) for p in "abc" for j in range(100)}
    assert len(seeds) == 900
    assert all(0 <= s < 2**63 for s in seeds)


def test_rows_survive_arrow() -> None:
    rollout = Rollout(
        problem_id="p",
        sample=3,
        seed=2**62,
        messages=[{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}],
        completion="!",
        finish_reason="stop",
        prompt_tokens=1,
        completion_tokens=1,
        logprobs=[-0.5],
    )
    batch = to_batch(Rollout, [rollout])
    assert Rollout.from_row(batch.to_pylist()[0]) == rollout
    verdict = Verdict(
        problem_id="p",
        sample=3,
        status="correct",
        extracted="4",
        detail="",
        rewards=Rewards(outcome=1.0, format=0.0),
    )
    assert Verdict.from_row(to_batch(Verdict, [verdict]).to_pylist()[0]) == verdict


def test_every_record_names_the_columns_of_its_schema() -> None:
    for record in RECORDS.values():
        assert record.SCHEMA.metadata is None
        assert [f.name for f in dataclasses.fields(record)] == record.SCHEMA.names


def test_payload_is_json_with_sorted_keys() -> None:
    p = Problem.make(task="maze", source="s", prompt="p", answer="a", payload={"b": 1, "a": "é"})
    assert p.payload == '{"a": "é", "b": 1}'
