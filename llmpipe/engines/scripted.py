"""Made-up answers, right with a given probability. For tests only: it knows the gold answers.

What it says depends on the request's seed and problem alone, so a resumed run repeats itself
whatever the order. Answers come back out of order, as from a real engine.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from llmpipe.core.errors import UserError
from llmpipe.core.options import parse_options
from llmpipe.core.protocols import Generation, Request, Sampling
from llmpipe.core.records import FinishReason

_DEFAULTS: Mapping[str, float] = {
    "p_correct": 0.5,
    "p_truncated": 0.0,
    "p_no_answer": 0.0,
    "delay": 0.0,  # seconds that each answer takes
    "fail_after": 0,  # answers, after which the engine breaks; 0 for never
    "window": 16,  # requests under way at a time
    "context": 8192,  # tokens of prompt and answer
}
_BACK = {"U": "D", "D": "U", "L": "R", "R": "L"}


class ScriptedEngine:
    """Deterministic answers, derived from seed and problem id. A token is a word."""

    local_model: ClassVar[bool] = False
    speed_options: ClassVar[frozenset[str]] = frozenset({"delay", "fail_after", "window"})
    wraps: ClassVar[bool] = False

    @classmethod
    def check(cls, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        _read(options)
        if sampling.logprobs or sampling.extra:
            raise UserError(
                "the scripted engine has no logprobs, and no sampling parameters of its own",
                "use --engine vllm",
            )

    @classmethod
    def gpus_each(cls, options: Mapping[str, str]) -> int:
        return 1  # so that tests have several

    def __init__(self, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        self._model = model
        self._max_tokens = sampling.max_tokens
        self._options = _read(options)

    @property
    def seats(self) -> int:
        return max(1, int(self._options["window"]))

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": "scripted",
            "for_tests_only": True,
            "model": self._model,
            "seeds": "per sample",
            **self._options,
        }

    def stream(self, requests: Iterable[Request]) -> Iterator[Generation]:
        """Answers out of order, within a bounded window.

        Raises:
            RuntimeError: after ``fail_after`` answers.
        """
        for count, request in enumerate(self._shuffled(requests)):
            if self._options["fail_after"] and count >= self._options["fail_after"]:
                raise RuntimeError(f"the scripted engine breaks after {count} answers")
            if self._options["delay"]:
                time.sleep(self._options["delay"])
            yield self._answer(request)

    def close(self) -> None:
        """Nothing to free."""

    def _shuffled(self, requests: Iterable[Request]) -> Iterator[Request]:
        under_way: list[Request] = []
        for request in requests:
            under_way.append(request)
            if len(under_way) >= self._options["window"]:
                yield under_way.pop(request.seed % len(under_way))
        while under_way:
            yield under_way.pop(under_way[-1].seed % len(under_way))

    def _answer(self, request: Request) -> Generation:
        prompt_tokens = sum(len(m["content"]) // 4 + 1 for m in request.messages)
        room = min(self._max_tokens, int(self._options["context"]) - prompt_tokens)
        if room <= 0:
            error = f"the prompt has {prompt_tokens} tokens of {self._options['context']}"
            return Generation(
                request=request,
                text="",
                finish_reason="error",
                prompt_tokens=prompt_tokens,
                error=error,
            )
        words, finish_reason = self._words(request)
        if len(words) > room:
            words, finish_reason = words[:room], "length"
        return Generation(
            request=request,
            text=" ".join(words),
            finish_reason=finish_reason,
            prompt_tokens=prompt_tokens,
            completion_tokens=len(words),
        )

    def _words(self, request: Request) -> tuple[list[str], FinishReason]:
        key = f"{request.seed}\0{request.problem.id}".encode()
        dice = hashlib.blake2b(key, digest_size=12).digest()
        kind = int.from_bytes(dice[:4], "big") / 2**32
        right = int.from_bytes(dice[4:8], "big") / 2**32 < self._options["p_correct"]
        words = ["Let", "me", "think."] + ["Then", "on."] * (dice[8] % 16)
        if kind < self._options["p_truncated"]:
            return [*words, "So", "we", "get"], "length"
        if kind < self._options["p_truncated"] + self._options["p_no_answer"]:
            return [*words, "I", "do", "not", "know."], "stop"
        answer = request.problem.answer if right else _wrong(request, dice[9])
        return [*words, "The", "answer", "is", *f"\\boxed{{{answer}}}.".split(" ")], "stop"


def _read(options: Mapping[str, str]) -> dict[str, float]:
    given = parse_options(options, _DEFAULTS.keys(), "the scripted engine")
    for name, value in given.items():
        if not isinstance(value, int | float) or value < 0:
            raise UserError(f"{name} is {value!r}", f"--engine-arg {name}={_DEFAULTS[name]}")
    return {**_DEFAULTS, **given}


def _wrong(request: Request, die: int) -> str:
    """An answer that can't be right: back from the goal of a maze, else one of seven numbers."""
    gold = request.problem.answer
    if request.problem.task == "maze" and gold[-1:] in _BACK:
        return gold + _BACK[gold[-1]]
    wrong = str(1_000_003 + die % 7)
    return wrong if wrong != gold else f"{wrong}1"


ENGINE = ScriptedEngine
