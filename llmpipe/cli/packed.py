"""Packed rows on a terminal: where each conversation begins, and which of its tokens are learnt."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from llmpipe.algo.packed_rows import NO_LOSS
from llmpipe.algo.packed_text import PackedReader, Stretch, about, stretches
from llmpipe.cli.text import printable
from llmpipe.core.artifact import Artifact
from llmpipe.core.records import PackedRow

# What is printed of a row where not all of it is asked for.
_SEGMENTS, _HEAD, _TAIL = 3, 60, 20
_LEARNT, _SPECIAL = "green", "bold"


class PackedText:
    """Prints packed rows. Learnt tokens are green; without colours they stand in ⟦brackets⟧."""

    def __init__(self, artifact: Artifact, tokenizer: str | None) -> None:
        """Load the tokenizer that the rows were made with, or that of the model ``tokenizer``.

        Raises:
            UserError: it is not there any more, or can't be read.
        """
        self._reader = PackedReader(artifact, tokenizer)

    def print(self, number: int, row: PackedRow, out: Console, *, whole: bool) -> None:
        """Row ``number`` of the artifact: all of it, or its first conversations, abridged."""
        learnt = sum(label != NO_LOSS for label in row.labels)
        many = len(row.seq_lengths)
        out.rule(f"row {number}: {len(row.input_ids)} tokens, {learnt} learnt", style="dim")
        start = 0
        for n, length in enumerate(row.seq_lengths[: None if whole else _SEGMENTS], start=1):
            part = slice(start, start + length)
            out.print(
                f"[conversation {n} of {many}: {about(row, part)}]", style="dim", markup=False
            )
            text = Text()
            for stretch in stretches(row.input_ids[part], row.labels[part]):
                self._append(text, stretch, whole, plain=out.color_system is None or out.no_color)
            out.print(text, soft_wrap=True)
            start += length
        if not whole and many > _SEGMENTS:
            out.print(
                f"[{many - _SEGMENTS} more; --row {number} prints all]", style="dim", markup=False
            )

    def _append(self, text: Text, stretch: Stretch, whole: bool, *, plain: bool) -> None:
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
        """Special tokens stand out."""
        for words, special in self._reader.words(ids):
            shown = f"{_SPECIAL} {style}".strip() if special else style
            text.append(printable(words), style=shown or None)
