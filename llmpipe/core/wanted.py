"""Rows of rollouts that verdicts speak of, in batches; no text is held."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError

Samples = Mapping[str, Collection[int]]
"""Sample numbers by problem id; a set or dict for each, so that looking one up is quick."""


def wanted_batches(
    rollouts: Artifact, verdicts: Artifact, wanted: Samples, columns: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
    """The ``wanted`` rows of the rollouts, with their numbers among all rows, from 0.

    ``columns`` hold problem_id and sample. Batches without such a row are left out.

    Raises:
        UserError: at the end, if some are not there: they are not the rollouts of the verdicts.
    """
    found = first = 0
    for batch in rollouts.batches(columns, batch_size=256):
        keys = zip(
            batch.column("problem_id").to_pylist(), batch.column("sample").to_pylist(), strict=True
        )
        here = np.flatnonzero([sample in wanted.get(problem, ()) for problem, sample in keys])
        if len(here):
            yield batch.take(here), here + first
        found += len(here)
        first += batch.num_rows
    missing = sum(map(len, wanted.values())) - found
    if missing:
        raise UserError(
            f"{rollouts.path} lacks {missing} of the rollouts that {verdicts.path} judges",
            "give the rollouts that were verified: --rollouts DIR",
        )
