"""A model behind a server that speaks the OpenAI chat completions API: vLLM, SGLang, a service.

Every sample is a request of its own, with its own seed: asked for several at once (``n``), a server
gives one seed and one count of tokens for all. Answers aren't streamed, which would cost this
process more than the time to the first token is worth.
"""

from __future__ import annotations

import asyncio
import difflib
import importlib.metadata
import itertools
import queue
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar, TypeVar

from llmpipe.core.errors import UserError
from llmpipe.core.libraries import needs
from llmpipe.core.protocols import Generation, Request, Sampling, Timing
from llmpipe.engines._openai_answers import read_answer
from llmpipe.engines._openai_client import Client, RefusedError
from llmpipe.engines._openai_settings import OPTIONS, read_settings

_PROBE = 16  # tokens: the fewest that hosted models take

T = TypeVar("T")


class OpenAIEngine:
    """A model by its name on a server.

    Options: ``base_url``, ``concurrency`` (requests under way, 64), ``timeout`` (seconds for one
    answer, 3600), ``retries`` (16), ``api_key_env`` (the variable with the key, OPENAI_API_KEY).
    Thinking that the server's reasoning parser splits off is put back in front of the answer as
    ``<think>...</think>``.
    """

    local_model: ClassVar[bool] = False
    speed_options: ClassVar[frozenset[str]] = OPTIONS
    wraps: ClassVar[bool] = False

    @classmethod
    def check(cls, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        """Raise `UserError` for options and sampling that can't be right; asks no server."""
        read_settings(options, sampling)

    @classmethod
    def gpus_each(cls, options: Mapping[str, str]) -> int:
        return 0

    def __init__(self, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        """Ask the server for its models, and for one short answer with these parameters.

        Raises:
            UserError: no openai library, no answer, no such model, or parameters that are refused.
        """
        self._settings = read_settings(options, sampling)
        self._model = model
        self._sampling = sampling
        self._limit = "max_tokens"
        self._loop = asyncio.new_event_loop()
        with needs("openai", "pip install openai"):
            self._client = Client(self._settings)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._card = self._wait_for(self._find())
            self._body = self._parameters()
            self._probed = self._wait_for(self._probe())
        except BaseException:
            self.close()
            raise

    @property
    def seats(self) -> int:
        return self._settings.concurrency

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": "openai",
            "model": self._model,
            "base_url": self._settings.base_url,
            "server": self._card,
            "max_model_len": self._card.get("max_model_len"),
            "versions": {"openai": importlib.metadata.version("openai")},
            "seeds": "per sample, as far as the server heeds them"
            if self._sampling.seeds
            else "none",
            "prompt": "chat template of the server",
            "thinking": "put back as <think>...</think> where the server splits it off",
            "token_ids": self._probed["token_ids"] is not None,
            "first_token": "not timed: answers are not streamed",
        }

    def stream(self, requests: Iterable[Request]) -> Iterator[Generation]:
        """Answers as they come. A request that the server refuses is an answer with an error.

        Raises:
            UserError: the server takes no request any more, or stays away.
        """
        waiting = iter(requests)
        under_way: set[Future[Generation]] = set()
        finished: queue.SimpleQueue[Future[Generation]] = queue.SimpleQueue()
        try:
            while True:
                # Drawn in this thread: what reads them needn't be safe in another.
                for request in itertools.islice(
                    waiting, self._settings.concurrency - len(under_way)
                ):
                    future = asyncio.run_coroutine_threadsafe(
                        self._answer(request, time.monotonic()), self._loop
                    )
                    under_way.add(future)
                    future.add_done_callback(finished.put)
                if not under_way:
                    return
                future = finished.get()
                under_way.discard(future)
                yield future.result()
        finally:
            for future in under_way:
                future.cancel()  # which closes its connection, so that the server stops, too

    def close(self) -> None:
        """Close the connections, and end the thread."""
        self._wait_for(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _answer(self, request: Request, handed: float) -> Generation:
        body = {**self._body, "messages": [dict(m) for m in request.messages]}
        if self._sampling.seeds:
            body["seed"] = request.seed
        try:
            fields = await self._client.complete(body, read_answer)
        except RefusedError as e:
            return Generation(request=request, text="", finish_reason="error", error=str(e))
        timing = Timing(first_token=None, total=time.monotonic() - handed)
        return Generation(request=request, timing=timing, **fields)

    def _parameters(self) -> dict[str, Any]:
        """The body of every request, but for messages and seed."""
        sampling = self._sampling
        body = {
            **sampling.extra,
            "model": self._model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self._limit: sampling.max_tokens,
        }
        if sampling.logprobs:
            body["logprobs"] = True
            if self._card.get("owned_by") == "vllm":
                body["return_token_ids"] = True  # others may refuse what they don't know
        if sampling.chat_template is not None:
            body["chat_template"] = sampling.chat_template
        if sampling.chat_template_kwargs:
            body["chat_template_kwargs"] = dict(sampling.chat_template_kwargs)
        return body

    async def _find(self) -> dict[str, Any]:
        """What the server says of the model, as far as it matters; nothing if it has no list."""
        url = self._settings.base_url
        listed = await self._client.get("/models")
        if listed is None:
            return {}
        try:
            cards = {str(card["id"]): card for card in listed["data"]}
        except (KeyError, TypeError):
            raise UserError(
                f"{url} answers with something that is no list of models",
                "check base_url: it mostly ends in /v1",
            ) from None
        if self._model not in cards:
            near = difflib.get_close_matches(self._model, cards, n=3) or sorted(cards)[:5]
            raise UserError(f"{url} has no model {self._model!r}", f"it has {', '.join(near)}")
        kept = ("owned_by", "root", "max_model_len")
        card = {name: cards[self._model][name] for name in kept if cards[self._model].get(name)}
        most = card.get("max_model_len")
        if isinstance(most, int) and self._sampling.max_tokens >= most:
            raise UserError(
                f"answers of {self._sampling.max_tokens} tokens leave no room for a prompt: the "
                f"server has a context of {most}",
                f"--max-tokens {most // 2}",
            )
        if card.get("owned_by") == "vllm":
            version = await self._client.get(f"{url.removesuffix('/v1')}/version")
            card |= version if isinstance(version, dict) else {}
        return card

    async def _probe(self) -> dict[str, Any]:
        """One short answer: parameters that are refused are so before a night of refusals."""
        try:
            return await self._ask_briefly()
        except RefusedError as e:
            if "max_completion_tokens" not in str(e):  # what some models call it
                raise self._refused(e) from None
        self._limit = "max_completion_tokens"
        self._body = self._parameters()
        try:
            return await self._ask_briefly()
        except RefusedError as e:
            raise self._refused(e) from None

    async def _ask_briefly(self) -> dict[str, Any]:
        least = max(_PROBE, int(self._sampling.extra.get("min_tokens", 0)))
        fields = await self._client.complete(
            {
                **self._body,
                "messages": [{"role": "user", "content": "Hi"}],
                self._limit: min(self._sampling.max_tokens, least),
            },
            read_answer,
        )
        if self._sampling.logprobs and fields["logprobs"] is None:
            raise UserError(
                f"{self._settings.base_url} gives no logprobs", "leave out --logprobs, or use vLLM"
            )
        return fields

    def _refused(self, e: RefusedError) -> UserError:
        hint = "check what is given by --engine-arg and the sampling options"
        if self._sampling.chat_template is not None and "chat template" in str(e):
            hint = "vllm serve MODEL --trust-request-chat-template"
        return UserError(f"{self._settings.base_url} refuses such requests: {e}", hint)


ENGINE = OpenAIEngine
