"""Tokenise conversations, mask what is not learnt, and pack them into rows of one length.

Tokens go to a spill file beside the output first: the plan needs only lengths, and rows are then
gathered from the file, so that memory doesn't grow with the tokens.
"""

from __future__ import annotations

import json
import logging
import math
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import tee
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from llmpipe.algo.chat import Chat, ChatTokenizer, Encoded
from llmpipe.algo.packed_rows import batches, marked, neighbours, pieces, rank_slices
from llmpipe.algo.packing import Plan, lower_bound, plan, utilisation
from llmpipe.algo.prompts import load_chat_tokenizer, tokenizer_files
from llmpipe.core.ahead import ahead
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Conversation, PackedRow
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute
from llmpipe.core.spill import Spill

log = logging.getLogger(__name__)

_BATCH = 256  # conversations read at a time
_GATHER = 1 << 20  # tokens moved at a time
_CHECKED_ROWS, _CHECKED_TOKENS = 3, 2048
_COLUMNS: dict[str, type[np.generic]] = {"tokens": np.int32}
_WEIGHTS: dict[str, type[np.generic]] = {"weights": np.float32}


@dataclass(frozen=True, kw_only=True)
class Config:
    """What the rows are like.

    ``max_length`` is the capacity of a row in tokens; ``seed`` shuffles the rows. A conversation
    over it is dropped, cut at its end, or split into pieces (``overlong``). Rows are padded to a
    multiple of ``pad_to_multiple_of`` and of ``sequence_parallel``, the number of ranks that share
    a row. ``shard_rows`` is the number of rows in a file; None leaves it to their bytes.
    ``loss_weights`` are written a token, for a loss that is the mean over turns.
    """

    max_length: int
    seed: int = 0
    overlong: Literal["drop", "truncate", "split"] = "drop"
    pad_to_multiple_of: int = 1
    sequence_parallel: int = 1
    shard_rows: int | None = None
    loss_weights: bool = False

    @property
    def multiple(self) -> int:
        return math.lcm(self.pad_to_multiple_of, self.sequence_parallel)


def run(
    config: Config, conversations: Sequence[Path], tokenizer: Path, out: Path, mode: Mode
) -> Result:
    """Rows for training, each holding several conversations; see `PackedRow`.

    Labels are -100 outside the assistant's trained spans, and for the first token of every
    segment, which nothing comes before. A segment is a conversation, or with ``overlong`` split a
    piece of one; a piece without a trained token is left out. Cut at its end, a conversation loses
    its answer, so by default it is dropped instead.

    ``loss_weights`` make sum(weight * loss) / sum(weight) over the rows the mean over the trained
    turns of each turn's mean, as a trainer has it that is given every turn as a sample of its own
    and takes the mean of samples. (One that takes the mean of all tokens needs none.) A token has
    the weight 1 / (trained tokens of its turn), times what makes their mean over the rows 1. Where
    single tokens are masked already, the turns are those of the messages, which must be the same
    tokens here (``tokens_differ``).

    Figures tell of the trained turns that lost their thinking to the template
    (``thoughtless_turns``), and of those that read otherwise than where they end the conversation
    (``rewritten_turns``): there, merged turns are not what split ones are.

    Raises:
        UserError: no conversations there, no tokenizer with a chat template, or settings that
            don't fit each other.
    """
    _check_config(config)
    sources = [Artifact.open(path, Conversation) for path in conversations]
    inputs: dict[str, Input] = {f"conversations/{i}": s for i, s in enumerate(sources)}
    inputs |= {f"tokenizer/{file.name}": file for file in tokenizer_files(tokenizer)}
    spec = Spec(
        stage="pack",
        record=PackedRow,
        config=config,
        inputs=inputs,
        out=out,
        version=4,
        libraries=("transformers", "tokenizers", "numpy"),
        shard_rows=config.shard_rows,
    )

    def build(writer: Writer) -> None:
        loaded = load_chat_tokenizer(tokenizer)
        pad = _pad(config, loaded, tokenizer)
        with (
            tempfile.TemporaryDirectory(dir=writer.partial, prefix="tokens-") as folder,
            Spill(Path(folder), _COLUMNS | (_WEIGHTS if config.loss_weights else {})) as spill,
        ):
            _tokenise(config, sources, ChatTokenizer(loaded), spill, writer)
            _pack(config, spill, pad, writer)

    return execute(spec, build, mode)


def check(result: Result, model: Path) -> Result:
    """Whether the conversations of a row see each other in a model, as a trainer would give it.

    Some rows, or a few conversations of them, go through the model whole and piece by piece. The
    figures are under ``check``: see `llmpipe.engines._packed`. Where the logits or the losses
    differ, the result wants attention.

    Raises:
        UserError: the model's folder has no weights, or they can't be loaded.
    """
    rows: list[PackedRow] = []
    for row in Artifact.open(result.out, PackedRow).iter_rows(PackedRow):
        part = neighbours(row, _CHECKED_TOKENS)
        rows += [part] if part else []
        if len(rows) == _CHECKED_ROWS:
            break
    if not rows:
        log.info("%s: no conversations share a row, so that none could see another", result.out)
        return result
    found = load("engines", "transformers").check_packed(model, rows)
    log.info(
        "%s: checked %d conversations in %d rows: logits differ by %g from those alone (mixed, by "
        "%g), loss %g and %g alone",
        result.out,
        found["segments"],
        found["rows"],
        found["logit_difference"],
        found["logit_difference_mixed"],
        found["loss_packed"],
        found["loss_alone"],
    )
    attention = result.attention
    if not found["agree"]:
        attention = (
            f"conversations that share a row see each other in {model}: logits are off by "
            f"{found['logit_difference']:g}"
        )
    return replace(result, figures={**result.figures, "check": found}, attention=attention)


def _check_config(config: Config) -> None:
    if config.max_length < 2:
        raise UserError(f"max-length is {config.max_length}", "--max-length 4096")
    for name in ("pad_to_multiple_of", "sequence_parallel", "shard_rows"):
        value, flag = getattr(config, name), name.replace("_", "-")
        if value is not None and value < 1:
            raise UserError(f"{flag} is {value}", f"--{flag} 1, or leave it out")
    length, multiple = config.max_length, config.multiple
    if length % multiple:
        raise UserError(
            f"rows of {length} tokens can't be padded to a multiple of {multiple}",
            f"--max-length {max(length // multiple, 1) * multiple}",
        )


def _pad(config: Config, tokenizer: Any, folder: Path) -> int:
    """The token that rows are padded with. It carries no loss, and no token comes after it."""
    for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    if config.multiple > 1:
        raise UserError(
            f"the tokenizer in {folder} has neither a pad token nor an end of text to pad with",
            "leave out --pad-to-multiple-of and --sequence-parallel",
        )
    return 0


def _tokenise(
    config: Config,
    sources: Sequence[Artifact],
    tokenizer: ChatTokenizer,
    spill: Spill,
    writer: Writer,
) -> None:
    total = sum(s.rows for s in sources)
    columns = ["id", "messages", "tools", "token_ids", "loss_mask"]
    counts: Counter[str] = Counter(
        conversations=0,
        cut=0,
        tokens_lost=0,
        trained_tokens=0,
        trained_turns=0,
        thoughtless_turns=0,
        rewritten_turns=0,
    )
    names = array("q")  # hashes: of millions of conversations, too
    rows = (
        row
        for source in sources
        for batch in source.batches(columns, batch_size=_BATCH)
        for row in batch.to_pylist()
    )
    for row, encoded in _encode(tokenizer, rows):
        writer.read += 1
        names.append(hash(row["id"]))
        fault = encoded if isinstance(encoded, Drop) else _add(config, encoded, spill, counts)
        if fault:
            writer.reject(row["id"], fault.reason, fault.detail)
        if writer.read % _BATCH == 0 or writer.read == total:
            writer.progress(writer.read, total)
    writer.figures |= counts
    if again := len(names) - len(np.unique(names)):
        log.warning(
            "%d conversations come again, by their ids, and are learnt as often as they come", again
        )
    if counts["thoughtless_turns"]:
        log.warning(
            "the chat template leaves out the thinking of %d of %d trained turns; where it keeps "
            "the last turn's, llmpipe build-sft --turns split has it learnt",
            counts["thoughtless_turns"],
            counts["trained_turns"],
        )


def _encode(
    tokenizer: ChatTokenizer, rows: Iterable[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], Encoded | Drop]]:
    """Each row with its tokens; where single ones are masked already, those stand."""
    to_encode, same = tee(rows)
    chats = (
        Chat(
            messages=row["messages"] or [],
            tools=json.loads(row["tools"]) if row["tools"] else None,
        )
        for row in to_encode
    )
    for encoded, row in zip(tokenizer.encode(chats), same, strict=True):
        if row["token_ids"] is None:
            yield row, encoded
        else:
            yield row, _masked(row, encoded if row["messages"] else None)


def _masked(row: Mapping[str, Any], encoded: Encoded | Drop | None) -> Encoded | Drop:
    """A conversation whose single tokens are masked; its turns are those of its messages.

    Without messages it is one turn. Tokens that this tokenizer would not make are another's.
    """
    if isinstance(encoded, Drop):
        return encoded
    ids = np.array(row["token_ids"], dtype=np.int32)
    loss = np.array(row["loss_mask"], dtype=np.int32)
    if encoded is None:
        return Encoded(input_ids=ids, turns=loss)
    if not np.array_equal(ids, encoded.input_ids):
        return Drop(
            reason="tokens_differ",
            detail=f"masked as {len(ids)} tokens; "
            f"this tokenizer makes {len(encoded.input_ids)} others",
        )
    # Learnt outside the turns, tokens are a turn of their own.
    turns = np.where(encoded.loss, encoded.turns, encoded.turns.max() + 1)
    return replace(encoded, turns=turns * loss)


def _add(config: Config, encoded: Encoded, spill: Spill, counts: Counter[str]) -> Drop | None:
    """Keep what is to be packed of a conversation, or say why nothing is.

    Tokens that are left out for their conversation's length count as lost.
    """
    length, most = len(encoded.input_ids), config.max_length
    if not encoded.loss[1:].any():
        return Drop(reason="nothing_to_learn", detail=f"{length} tokens")
    counts["tokens_lost"] += length
    if length > most and config.overlong == "drop":
        return Drop(reason="too_long", detail=f"{length} tokens")
    turns = np.zeros_like(encoded.turns)  # those that are kept
    kept = pieces(length, most, config.overlong)
    for piece in kept:
        turns[piece] = encoded.turns[piece]
        turns[piece.start] = 0  # nothing comes before it in its segment
    kept = [piece for piece in kept if turns[piece].any()]
    columns: dict[str, NDArray[Any]] = {"tokens": marked(encoded.input_ids, turns > 0)}
    if config.loss_weights:
        columns["weights"] = _weights(turns)
    for piece in kept:
        spill.add(**{name: values[piece] for name, values in columns.items()})
    if not kept:
        return Drop(
            reason="answer_cut_off",
            detail=f"{length} tokens; what is learnt comes after the first {most}",
        )
    counts["tokens_lost"] -= sum(piece.stop - piece.start for piece in kept)
    counts["trained_tokens"] += int(np.count_nonzero(turns))
    counts["trained_turns"] += int(np.count_nonzero(np.bincount(turns)[1:]))
    counts["thoughtless_turns"] += encoded.thoughtless
    counts["rewritten_turns"] += encoded.rewritten
    counts["conversations"] += 1
    counts["cut"] += length > most
    return None


def _weights(turns: NDArray[np.int32]) -> NDArray[np.float32]:
    """Shares of its turn for each token that is learnt, 0 for the others: a turn's sum to 1."""
    sizes = np.bincount(turns)[turns]
    return np.where(turns > 0, 1 / sizes, 0).astype(np.float32)


def _pack(config: Config, spill: Spill, pad: int, writer: Writer) -> None:
    lengths, found = spill.lengths, writer.figures
    rows = plan(lengths, config.max_length, seed=config.seed)
    padded, slices = 0, 0
    if len(rows):
        # So that the weights' mean is 1 over all that is learnt, and steps are as long as ever.
        scale = found["trained_tokens"] / found["trained_turns"]
        moved = batches(rows, spill, multiple=config.multiple, pad=pad, most=_GATHER, scale=scale)
        for batch in ahead(moved):
            slices += _check_ranks(batch, config.sequence_parallel)
            padded += len(batch.column("input_ids").values)
            writer.add_batch(batch)
    tokens = int(lengths.sum())
    writer.figures |= {
        "segments": len(lengths),
        "tokens": tokens,
        "padding_tokens": padded - tokens,
        "rank_slices": slices,
        **_fit(rows, lengths, config),
    }


def _fit(rows: Plan, lengths: Any, config: Config) -> dict[str, Any]:
    """How well the rows are filled, and how near their number is to the fewest possible."""
    least = lower_bound(lengths, config.max_length)
    segments = np.diff(rows.bounds)
    return {
        "max_length": config.max_length,
        "utilisation": round(utilisation(int(lengths.sum()), len(rows), config.max_length), 6),
        "fewest_rows": least,
        "excess_rows": len(rows) - least,
        "segments_per_row": round(len(lengths) / len(rows), 2) if len(rows) else 0.0,
        "most_segments": int(segments.max(initial=0)),
    }


def _check_ranks(batch: pa.RecordBatch, ranks: int) -> int:
    """See that what the ranks of a sequence-parallel group get of a row is all of it, once.

    Returns how many slices of rows were looked at; one rank gets the row as it is.
    """
    if ranks == 1:
        return 0
    for name in ("input_ids", "labels", "position_ids"):
        lists = batch.column(name)
        values, offsets = lists.values.to_numpy(), lists.offsets.to_numpy()
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            row = values[begin:end]
            parts = [row[part] for part in rank_slices(len(row), ranks)]
            if not np.array_equal(np.concatenate(parts), row):
                raise AssertionError(f"{ranks} ranks don't get all of a row of {len(row)} tokens")
    return ranks * len(batch)
