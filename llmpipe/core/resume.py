"""What a run of samples may go on from: its journal, and the finished artifact that grows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmpipe.core.artifact import MANIFEST, Artifact
from llmpipe.core.journal import Journal, begun_with
from llmpipe.core.provenance import stamp
from llmpipe.core.records import Rollout
from llmpipe.core.spec import Mode, counted, plain, same_settings

log = logging.getLogger(__name__)


def open_journal(config: Any, partial: Path, out: Path, mode: Mode) -> Journal:
    """The journal to go on with.

    What may change between runs (n, limit, the problems) is not in its header, so a grown run and
    one on other problems keep the samples that still hold. A forced run starts afresh, and goes on
    when it is forced again after a kill; the journal of another run is moved aside, not deleted.
    """
    path = partial / "journal.jsonl"
    defaults = counted(config, {})
    begun = {**defaults, **begun_with(path)}
    fresh = mode.force or bool(begun.get("fresh"))
    header = {"journal": 1, **counted(config, plain(config)), "fresh": fresh}
    if path.exists() and begun != header and (mode.force or mode.remake):
        _aside(path, out, "samples begun under other settings")
    return Journal(path, header, defaults, _whole)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "problem_id": (str,),
    "sample": (int,),
    "seed": (int,),
    "messages": (list,),
    "completion": (str,),
    "finish_reason": (str,),
    "prompt_tokens": (int,),
    "completion_tokens": (int,),
    "token_ids": (list, type(None)),
    "logprobs": (list, type(None)),
    "error": (str, type(None)),
}
_OPEN: Mapping[str, tuple[type, ...]] = {**_TYPES, "open": (bool,), "turn": (int,)}


def _whole(row: Mapping[str, Any]) -> bool:
    """Whether a row has the columns of a `Rollout`, each of its type.

    Looked at before anything is sampled: at the end, when the table is written, it would cost the
    run. What is inside lists isn't looked at.
    """
    types = _OPEN if "open" in row else _TYPES
    return row.keys() == types.keys() and all(isinstance(row[k], t) for k, t in types.items())


def _aside(path: Path, out: Path, what: str) -> None:
    kept = out.with_name(f"{out.name}.old-{stamp()}.jsonl")
    path.rename(kept)
    log.info("%s are kept at %s", what, kept)


def to_grow(config: Any, out: Path, mode: Mode) -> Artifact | None:
    """The finished artifact whose samples still hold: sampled with the settings of this run."""
    if mode.force or not (out / MANIFEST).is_file():
        return None
    old = Artifact.open(out, Rollout)
    return old if same_settings(config, old.manifest.config) and not old.damage() else None


def take_over(old: Artifact, journal: Journal) -> None:
    """Put the finished samples of the artifact that grows into the journal."""
    for row in old.iter_rows(Rollout):
        if (row.problem_id, row.sample) not in journal:
            journal.append(row.as_row())


def holds(old: Artifact, wanted: Mapping[str, int]) -> bool:
    """Whether an artifact has every sample that is wanted now."""
    missing = dict(wanted)
    for batch in old.batches(["problem_id", "sample"]):
        for problem, sample in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            if sample < wanted.get(problem, 0):
                missing[problem] -= 1  # each is there once: it came through a journal
    return not any(missing.values())


def keep_unused(journal: Journal, wanted: Mapping[str, int], out: Path) -> None:
    """What is no longer asked for cost as much as the rest: keep samples of other problems, and
    conversations that are not whole (n or the limit has shrunk)."""
    unasked = any(problem not in wanted for problem in journal.problems())
    if unasked or next(journal.open_keys(), None):
        _aside(journal.path, out, "samples that are no longer asked for")
