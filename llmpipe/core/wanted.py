"""What verdicts speak of: rows of rollouts, in batches so that no text is held, and problems."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

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

    ``columns`` hold problem_id and sample. Batches without such a row are left out. Samples that
    were given may be taken out of ``wanted`` meanwhile.

    Raises:
        UserError: at the end, if some are not there: they are not the rollouts of the verdicts.
    """
    missing = sum(map(len, wanted.values()))
    first = 0
    for batch in rollouts.batches(columns, batch_size=256):
        keys = zip(
            batch.column("problem_id").to_pylist(), batch.column("sample").to_pylist(), strict=True
        )
        here = np.flatnonzero([sample in wanted.get(problem, ()) for problem, sample in keys])
        if len(here):
            yield batch.take(here), here + first
        missing -= len(here)
        first += batch.num_rows
    if missing:
        raise UserError(
            f"{rollouts.path} lacks {missing} of the rollouts that {verdicts.path} judges",
            "give the rollouts that were verified: --rollouts DIR",
        )


class About(NamedTuple):
    """What tells problems apart beside their text."""

    task: str
    level: str | None
    source: str


def about(problems: Artifact, verdicts: Artifact, judged: Collection[str]) -> dict[str, About]:
    """Of the problems whose ids are in ``judged``, a set or dict.

    Raises:
        UserError: some are not there: they are not the problems of the verdicts.
    """
    found: dict[str, About] = {}
    for batch in problems.batches(["id", *About._fields]):
        for name, *rest in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            if name in judged:
                found[name] = About(*rest)
    if missing := len(judged) - len(found):
        raise UserError(
            f"{problems.path} lacks {missing} of the problems that {verdicts.path} is about",
            "give the problems that were sampled: --problems DIR",
        )
    return found
