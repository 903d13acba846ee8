from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmpipe.core.spill import Spill


def test_what_was_added_is_read_from_anywhere_to_anywhere(tmp_path: Path) -> None:
    with Spill(tmp_path, {"a": np.int32, "b": np.float32}) as spill:
        spill.add(a=np.array([1, 2, 3]), b=np.array([0.5, 1, 1.5]))
        spill.add(a=np.array([4, 5]), b=np.array([2, 2.5]))
        assert spill.lengths.tolist() == [3, 2]
        into = np.full(6, -1, np.int32)
        spill.read("a", np.array([3, 1]), np.array([2, 2]), np.array([0, 3]), into)
        assert into.tolist() == [4, 5, -1, 2, 3, -1]
        spill.add(a=np.array([6]), b=np.array([3]))  # goes on after reading
        values = np.zeros(2, np.float32)
        spill.read("b", np.array([4]), np.array([2]), np.array([0]), values)
        assert values.tolist() == [2.5, 3]


def test_columns_of_unequal_length_are_refused(tmp_path: Path) -> None:
    with (
        Spill(tmp_path, {"a": np.int32, "b": np.int32}) as spill,
        pytest.raises(ValueError, match="too many values"),
    ):
        spill.add(a=np.array([1, 2]), b=np.array([1]))


def test_a_file_that_was_cut_short_is_noticed(tmp_path: Path) -> None:
    with Spill(tmp_path, {"a": np.int32}) as spill:
        spill.add(a=np.arange(10))
        spill.read("a", np.array([0]), np.array([10]), np.array([0]), np.zeros(10, np.int32))
        (tmp_path / "a").write_bytes(b"1234")
        with pytest.raises(OSError, match="4 bytes of 40"):
            spill.read("a", np.array([0]), np.array([10]), np.array([0]), np.zeros(10, np.int32))
