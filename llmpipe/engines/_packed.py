"""Whether the segments of a packed row see each other in a model of transformers.

Trainers pack rows and give the model positions that begin again with each segment; transformers
keeps the segments apart by these alone, and only where no cache is kept (``use_cache=False``: with
one, logits are off by 30 without a word). So each segment's logits in the row are compared with
those that it has alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmpipe.algo.packed_rows import NO_LOSS
from llmpipe.core.records import PackedRow

# In float32 the order of the sums makes 0.0001 of difference, in bfloat16 1, and a segment that
# sees another one 25 (SmolLM2-135M).
TOLERANCE = 0.01

_LOGITS = 1 << 26  # compared at a time: 256 MB


@dataclass
class _Sums:
    """The largest difference of a logit, and losses over all targets: in rows and alone."""

    difference: float = 0.0
    mixed: float = 0.0
    targets: int = 0
    losses: dict[str, float] = field(default_factory=lambda: {"packed": 0.0, "alone": 0.0})


def compare(torch: Any, model: Any, rows: Sequence[PackedRow]) -> Mapping[str, Any]:
    """Logits and loss of packed rows, and of their segments one by one.

    Args:
        model: a causal model in float32.
        rows: each with two segments or more.

    Returns:
        ``agree``; ``logit_difference``, the largest, and ``logit_difference_mixed``, what it is
        where positions don't begin again; ``loss_packed`` and ``loss_alone``, means over the
        labels looked at; ``rows``, ``segments``, ``tokens``, ``positions`` that were looked at.
    """
    sums = _Sums()
    positions = 0
    with torch.inference_mode():
        for row in rows:
            places = _places(row, _LOGITS // model.config.get_text_config().vocab_size)
            positions += len(places)
            _compare(torch, model, row, places, sums)
    losses = {name: loss / max(sums.targets, 1) for name, loss in sums.losses.items()}
    near = sums.difference <= TOLERANCE and abs(losses["packed"] - losses["alone"]) <= TOLERANCE
    return {
        "agree": near,
        "logit_difference": round(sums.difference, 6),
        "logit_difference_mixed": round(sums.mixed, 6),
        "tolerance": TOLERANCE,
        "loss_packed": round(losses["packed"], 6),
        "loss_alone": round(losses["alone"], 6),
        "rows": len(rows),
        "segments": sum(len(row.seq_lengths) for row in rows),
        "tokens": sum(len(row.input_ids) for row in rows),
        "positions": positions,
    }


def _places(row: PackedRow, most: int) -> NDArray[np.int64]:
    """Where to look: before each label, and at the first tokens of each segment, where what is
    mixed in weighs most; thinned out evenly to ``most``."""
    wanted = np.array([*row.labels[1:], NO_LOSS]) != NO_LOSS
    starts = np.cumsum([0, *row.seq_lengths[:-1]])
    for k in range(4):
        wanted[np.minimum(starts + k, len(wanted) - 1)] = True
    places = np.flatnonzero(wanted)
    if len(places) > most:
        places = places[np.linspace(0, len(places) - 1, most).astype(np.int64)]
    return places


def _compare(
    torch: Any, model: Any, row: PackedRow, places: NDArray[np.int64], sums: _Sums
) -> None:
    labels = np.array([*row.labels[1:], NO_LOSS])[places]
    target = torch.as_tensor(labels, dtype=torch.long, device=model.device)
    sums.targets += int(np.count_nonzero(labels != NO_LOSS))

    def loss(logits: Any) -> float:
        return float(
            torch.nn.functional.cross_entropy(logits, target, ignore_index=NO_LOSS, reduction="sum")
        )

    alone = torch.cat([*_alone(torch, model, row, places)])
    sums.losses["alone"] += loss(alone)
    packed = _logits(torch, model, row.input_ids, row.position_ids, places)
    sums.losses["packed"] += loss(packed)
    sums.difference = max(sums.difference, float((packed - alone).abs().max()))
    del packed
    mixed = _logits(torch, model, row.input_ids, range(len(row.input_ids)), places)
    sums.mixed = max(sums.mixed, float((mixed - alone).abs().max()))


def _alone(torch: Any, model: Any, row: PackedRow, places: NDArray[np.int64]) -> Iterator[Any]:
    start = 0
    for length in row.seq_lengths:
        end = start + length
        here = places[(places >= start) & (places < end)] - start
        if len(here):
            yield _logits(torch, model, row.input_ids[start:end], range(length), here)
        start = end


def _logits(
    torch: Any,
    model: Any,
    input_ids: Sequence[int],
    position_ids: Sequence[int],
    places: NDArray[np.int64],
) -> Any:
    """Logits at ``places``, of shape (places, vocabulary)."""

    def tensor(values: Sequence[int]) -> Any:
        return torch.as_tensor(np.array([values]), dtype=torch.long, device=model.device)

    index = torch.as_tensor(places, dtype=torch.long, device=model.device)
    keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
    logits = model(
        input_ids=tensor(input_ids),
        position_ids=tensor(position_ids),
        use_cache=False,
        **({"logits_to_keep": index} if keeps else {}),
    ).logits[0]
    return (logits if keeps else logits[index]).float()
