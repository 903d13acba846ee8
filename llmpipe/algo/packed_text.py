"""Packed rows as text: which stretches of their tokens are learnt, and what these say."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from llmpipe.algo.packed_rows import NO_LOSS
from llmpipe.algo.prompts import load_tokenizer
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.paths import find_model
from llmpipe.core.records import PackedRow


@dataclass(frozen=True, slots=True)
class Stretch:
    """Tokens side by side that are learnt, or are not."""

    ids: Sequence[int]
    learnt: bool


class PackedReader:
    """Reads the tokens of an artifact's packed rows."""

    def __init__(self, artifact: Artifact, tokenizer: str | None = None) -> None:
        """Load the tokenizer that the rows were made with, or that of the model ``tokenizer``.

        Raises:
            UserError: it is not there any more, or can't be read.
        """
        folder = find_model(tokenizer) if tokenizer else _tokenizer_of(artifact)
        self._tokenizer = load_tokenizer(folder)
        added = self._tokenizer.added_tokens_decoder
        self._special = {i for i, token in added.items() if token.special}

    def words(self, ids: Sequence[int]) -> Iterator[tuple[str, bool]]:
        """What tokens say, and whether that is a special token, which stands alone.

        What lies between special tokens is decoded as one: characters have several tokens.
        """
        words: list[int] = []
        for token in [*ids, None]:
            if token is not None and token not in self._special:
                words.append(token)
                continue
            if words:
                yield self._tokenizer.decode(words), False
            words = []
            if token is not None:
                yield self._tokenizer.decode([token]), True


def stretches(ids: Sequence[int], labels: Sequence[int]) -> Iterator[Stretch]:
    """The tokens of a segment, cut where learning begins and ends."""
    learnt = np.array(labels) != NO_LOSS
    cuts = [0, *(np.flatnonzero(np.diff(learnt)) + 1).tolist(), len(ids)]
    for start, end in itertools.pairwise(cuts):
        yield Stretch(ids[start:end], bool(learnt[start]))


def about(row: PackedRow, part: slice) -> str:
    """How many tokens a segment has, how many are learnt, and by which weights."""
    labels = row.labels[part]
    said = f"{len(labels)} tokens, {sum(label != NO_LOSS for label in labels)} learnt"
    if row.loss_weights is None:
        return said
    pairs = zip(labels, row.loss_weights[part], strict=True)
    weights = [weight for label, weight in pairs if label != NO_LOSS]
    return f"{said}, weights {min(weights):.3g} to {max(weights):.3g}" if weights else said


def _tokenizer_of(artifact: Artifact) -> Path:
    """The folder of the tokenizer files that the artifact says it was made with."""
    paths = [e["path"] for role, e in artifact.manifest.inputs.items() if "tokenizer/" in role]
    folders = {Path(artifact.path, path).resolve().parent for path in paths}
    folder = next((f for f in folders if f.is_dir()), None)
    if folder is None:
        where = ", ".join(map(str, folders)) or "an unknown place"
        raise UserError(
            f"the tokenizer of {artifact.path} was at {where}, which is gone",
            f"llmpipe show {artifact.path} --tokenizer DIR",
        )
    return folder
