from __future__ import annotations

import pyarrow as pa

from llmpipe.cli.histogram import histogram


def test_ten_bars_from_0_to_1_and_the_rest() -> None:
    lines = histogram([pa.array([0.0, 0.1, 0.1, None]), pa.array([0.55, 1.0, 1.0, 1.0, 1.0])])
    assert [line.split() for line in lines[:2]] == [
        ["0", "-", "0.1", "1", "█" * 10],
        ["0.1", "-", "0.2", "2", "█" * 20],
    ]
    assert lines[5].split()[3] == "1"
    assert lines[9].split() == ["0.9", "-", "1", "4", "█" * 40]
    assert lines[2].split() == ["0.2", "-", "0.3", "0"]
    assert lines[10] == "without one 1"
    assert len({line.index("-") for line in lines[:10]}) == 1


def test_other_ranges_end_in_whole_numbers() -> None:
    lines = histogram([pa.array([1.5, 9.2, 9.2])])
    assert lines[0].split()[:4] == ["1", "-", "1.9", "1"]
    assert lines[9].split()[:4] == ["9.1", "-", "10", "2"]
    assert histogram([pa.array([7.0])])[0].split()[:4] == ["7", "-", "7.1", "1"]


def test_few_are_seen_beside_many_and_nothing_is_drawn_of_nothing() -> None:
    lines = histogram([pa.array([0.05] + [0.95] * 5000)])
    assert lines[0].endswith("1 ▏")
    assert histogram([]) == []
    assert histogram([pa.array([None, float("nan")], pa.float64())]) == []
