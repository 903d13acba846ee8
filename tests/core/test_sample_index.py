"""The index of samples says what a plain dict would."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.core.sample_index import SampleIndex

_PUTS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(min_value=0, max_value=9),
        st.integers(min_value=1, max_value=2**62),
        st.booleans(),
    )
)


@given(puts=_PUTS)
def test_it_says_what_a_dict_says(puts: list[tuple[str, int, int, bool]]) -> None:
    index = SampleIndex()
    finished: dict[tuple[str, int], int] = {}
    going_on: dict[tuple[str, int], int] = {}
    for problem, sample, place, open_ in puts:
        key = (problem, sample)
        if key in finished:
            with pytest.raises(ValueError, match="is there already"):
                index.put(problem, sample, place, open_=open_)
            continue
        index.put(problem, sample, place, open_=open_)
        going_on.pop(key, None)
        (going_on if open_ else finished)[key] = place

    for problem in "abcd":
        for sample in range(-1, 12):
            key = (problem, sample)
            assert index.place(problem, sample) == finished.get(key)
            assert index.place(problem, sample, open_=True) == going_on.get(key)
        assert list(index.samples(problem)) == sorted(s for p, s in finished if p == problem)
        opened = sorted(s for p, s in going_on if p == problem)
        assert list(index.samples(problem, open_=True)) == opened
    assert (index.finished, index.open) == (len(finished), len(going_on))
    assert list(index.problems()) == list(dict.fromkeys(p for p, *_ in puts))


def test_a_sample_costs_bytes_not_objects() -> None:
    ids = [f"{i:016x}" for i in range(10_000)]
    tracemalloc.start()
    try:
        index = SampleIndex()
        for place, problem in enumerate(ids, 1):
            for sample in (3, 0, 7, 1, 2, 5, 4, 6):
                index.put(problem, sample, place)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert index.finished == 80_000
    assert size / index.finished < 40


@pytest.mark.parametrize("sample", [-1, 1 << 40])
def test_what_is_no_number_of_a_sample_is_refused(sample: int) -> None:
    with pytest.raises(ValueError, match="no number of a sample"):
        SampleIndex().put("a", sample, 1)
