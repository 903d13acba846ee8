"""Tokens a second of conversations tokenised and masked, beside the bare tokenizer on their texts.

All ways go over the same chats in turn, round by round, and are compared with the bare tokenizer in
each round: what the machine does beside is then in all of them. The bare tokenizer gets 256 texts
at a time. CPU seconds are of all threads. Chats are pieces of the text files in ``--text``, an
average of so many tokens each. Last, the memory of the process at two sizes.

    python benchmarks/tokenise.py --tokenizer models/HuggingFaceTB/SmolLM2-135M-Instruct
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from llmpipe.algo.chat import Chat, ChatTokenizer, Encoded
from llmpipe.algo.chat_spans import Rendered, Renderer
from llmpipe.algo.prompts import load_tokenizer
from llmpipe.algo.token_borders import Borders

ROOT = Path(__file__).parents[1]
BATCH = 256
TOKENS = 1_000_000
ROUNDS = 9


def chats(text: str, tokens: int, count: int, *, seed: int = 0) -> Iterator[Chat]:
    """Chats of two questions and two answers, three and a half characters a token."""
    draw = random.Random(seed)

    def piece(share: float) -> str:
        size = max(int(tokens * 3.5 * share * draw.uniform(0.2, 1.8)), 1)
        at = draw.randrange(max(len(text) - size, 1))
        return text[at : at + size]

    for _ in range(count):
        contents = [piece(share) for share in (0.1, 0.5, 0.05, 0.35)]
        yield Chat(
            messages=[
                {"role": "assistant" if i % 2 else "user", "content": c, "train": bool(i % 2)}
                for i, c in enumerate(contents)
            ]
        )


def batched(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for first in range(0, len(values), BATCH):
        yield values[first : first + BATCH]


def ways(tokenizer: Any, made: Sequence[Chat]) -> dict[str, Callable[[], int]]:
    """Each way's name and what does it, which returns how many tokens it made."""
    backend = tokenizer.backend_tokenizer
    renderer, borders, whole = Renderer(tokenizer), Borders(tokenizer), ChatTokenizer(tokenizer)
    rendered = [r for r in map(renderer.render, made) if isinstance(r, Rendered)]
    texts = [r.text for r in rendered]

    def bare() -> int:
        total = 0
        for batch in batched(texts):
            encodings = backend.encode_batch_fast(batch, add_special_tokens=False)
            total += sum(map(len, encodings))
        return total

    def with_ids() -> int:
        total = 0
        for batch in batched(texts):
            encodings = backend.encode_batch_fast(batch, add_special_tokens=False)
            total += sum(len(encoding.ids) for encoding in encodings)
        return total

    def masked() -> int:
        return sum(len(ids) for ids, _ in borders.tokenise((r.text, r.spans) for r in rendered))

    def from_chats() -> int:
        return sum(len(e.input_ids) for e in whole.encode(made) if isinstance(e, Encoded))

    def offsets() -> int:
        total = 0
        for batch in batched(texts):
            tokens = tokenizer(batch, add_special_tokens=False, return_offsets_mapping=True)
            total += sum(map(len, tokens["input_ids"]))
        return total

    return {
        "encode_batch_fast": bare,
        "... its ids read": with_ids,
        "text to ids and spans": masked,
        "chats to ids and mask": from_chats,
        "transformers, offsets": offsets,
    }


def measure(tokenizer: Any, text: str, tokens: int) -> None:
    made = list(chats(text, tokens, TOKENS // tokens))
    compared = ways(tokenizer, made)
    cpu: dict[str, list[float]] = {name: [] for name in compared}
    wall: dict[str, list[float]] = {name: [] for name in compared}
    total = 0
    for _ in range(ROUNDS):
        for name, way in compared.items():
            before, began = time.process_time(), time.perf_counter()
            total = way()
            cpu[name].append(time.process_time() - before)
            wall[name].append(time.perf_counter() - began)
    print(f"\n{len(made)} chats of {total / len(made):.0f} tokens, median of {ROUNDS} rounds")
    print(f"{'way':<24}{'tokens / CPU s':>16}{'of bare':>10}{'tokens / s':>14}{'of bare':>10}")
    for name in compared:
        figures = "".join(
            f"{total / median(s[name]):>{width},.0f}{_of_bare(s, name):>10.3f}"
            for s, width in ((cpu, 16), (wall, 14))
        )
        print(f"{name:<24}{figures}")


def _of_bare(seconds: dict[str, list[float]], name: str) -> float:
    return median(b / s for b, s in zip(seconds["encode_batch_fast"], seconds[name], strict=True))


def grow(tokenizer: Any, text: str, count: int) -> None:
    """Print the most memory this process had when it tokenised ``count`` chats."""
    tokens = done = 0
    for encoded in ChatTokenizer(tokenizer).encode(chats(text, 3000, count)):
        if isinstance(encoded, Encoded):
            tokens += len(encoded.input_ids)
            done += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{done} chats, {tokens:,} tokens: {peak / 1024:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--text", type=Path, default=ROOT / "llmpipe", help="a folder of texts")
    parser.add_argument("--grow", type=int, help="print the memory of so many chats")
    given = parser.parse_args()
    tokenizer = load_tokenizer(given.tokenizer)
    files = sorted(f for f in given.text.rglob("*") if f.suffix in {".py", ".md", ".txt"})
    text = "\n".join(f.read_text(encoding="utf-8") for f in files)
    if given.grow:
        grow(tokenizer, text, given.grow)
        return
    for tokens in (1000, 3000):
        measure(tokenizer, text, tokens)
    print("\nthe process at its peak")
    for count in (1000, 4000):
        arguments = ["--tokenizer", given.tokenizer, "--text", given.text, "--grow", str(count)]
        subprocess.run([sys.executable, __file__, *arguments], check=True)


if __name__ == "__main__":
    main()
