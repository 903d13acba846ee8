"""Packed rows as text: where each conversation begins, and which of its tokens are learnt."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from llmpipe.algo.packed_rows import NO_LOSS
from llmpipe.algo.prompts import load_tokenizer
from llmpipe.cli.text import printable
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.paths import find_model
from llmpipe.core.records import PackedRow

# What is printed of a row where not all of it is asked for.
_SEGMENTS, _HEAD, _TAIL = 3, 60, 20
_LEARNT, _SPECIAL = "green", "bold"


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Tokens side by side that are learnt, or are not."""

    ids: Sequence[int]
    learnt: bool


class PackedText:
    """Prints packed rows. Learnt tokens are green; without colours they stand in ⟦brackets⟧."""

    def __init__(self, artifact: Artifact, tokenizer: str | None) -> None:
        """Load the tokenizer that the rows were made with, or that of the model ``tokenizer``.

        Raises:
            UserError: it is not there any more, or can't be read.
        """
        folder = find_model(tokenizer) if tokenizer else _tokenizer_of(artifact)
        self._tokenizer = load_tokenizer(folder)
        added = self._tokenizer.added_tokens_decoder
        self._special = {i for i, token in added.items() if token.special}

    def print(self, number: int, row: PackedRow, out: Console, *, whole: bool) -> None:
        """Row ``number`` of the artifact: all of it, or its first conversations, abridged."""
        learnt = sum(label != NO_LOSS for label in row.labels)
        many = len(row.seq_lengths)
        out.rule(f"row {number}: {len(row.input_ids)} tokens, {learnt} learnt", style="dim")
        start = 0
        for n, length in enumerate(row.seq_lengths[: None if whole else _SEGMENTS], start=1):
            part = slice(start, start + length)
            out.print(
                f"[conversation {n} of {many}: {_about(row, part)}]", style="dim", markup=False
            )
            text = Text()
            for stretch in _stretches(row.input_ids[part], row.labels[part]):
                self._append(text, stretch, whole, plain=out.color_system is None or out.no_color)
            out.print(text, soft_wrap=True)
            start += length
        if not whole and many > _SEGMENTS:
            out.print(
                f"[{many - _SEGMENTS} more; --row {number} prints all]", style="dim", markup=False
            )

    def _append(self, text: Text, stretch: _Stretch, whole: bool, *, plain: bool) -> None:
        ids, left_out = list(stretch.ids), 0
        if not whole and len(ids) > _HEAD + _TAIL:
            left_out = len(ids) - _HEAD - _TAIL
        style = _LEARNT if stretch.learnt else ""
        text.append("⟦" if plain and stretch.learnt else "")
        if left_out:
            self._decode(text, ids[:_HEAD], style)
            text.append(f" [... {left_out} tokens ...] ", style="dim")
            self._decode(text, ids[-_TAIL:], style)
        else:
            self._decode(text, ids, style)
        text.append("⟧" if plain and stretch.learnt else "")

    def _decode(self, text: Text, ids: Sequence[int], style: str) -> None:
        """Special tokens stand out; what lies between is decoded as one: characters have several
        tokens."""
        words: list[int] = []
        for token in [*ids, None]:
            if token is not None and token not in self._special:
                words.append(token)
                continue
            text.append(printable(self._tokenizer.decode(words)), style=style or None)
            words = []
            if token is not None:
                shown = printable(self._tokenizer.decode([token]))
                text.append(shown, style=f"{_SPECIAL} {style}".strip())


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


def _stretches(ids: Sequence[int], labels: Sequence[int]) -> Iterator[_Stretch]:
    learnt = np.array(labels) != NO_LOSS
    cuts = [0, *(np.flatnonzero(np.diff(learnt)) + 1).tolist(), len(ids)]
    for start, end in itertools.pairwise(cuts):
        yield _Stretch(ids[start:end], bool(learnt[start]))


def _about(row: PackedRow, part: slice) -> str:
    labels = row.labels[part]
    about = f"{len(labels)} tokens, {sum(label != NO_LOSS for label in labels)} learnt"
    if row.loss_weights is None:
        return about
    pairs = zip(labels, row.loss_weights[part], strict=True)
    weights = [weight for label, weight in pairs if label != NO_LOSS]
    return f"{about}, weights {min(weights):.3g} to {max(weights):.3g}" if weights else about
