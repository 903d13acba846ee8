"""Talks to a server with the openai library, and decides what is tried again.

What may pass is tried again, the wait growing from half a second to a minute: a server that is
busy (429, and 502 to 504, as long as the others are served without an end), broken connections,
timeouts, errors of the server and answers that make no sense. What the server says about one
request (the other 4xx) is that request's error. What would be said to every request ends the run.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
import textwrap
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from llmpipe.core.errors import UserError
from llmpipe.core.refusals import retry_after
from llmpipe.engines._openai_answers import words
from llmpipe.engines._openai_settings import Settings

log = logging.getLogger(__name__)

_FIRST_WAIT = 0.5  # seconds
_LONGEST_WAIT = 60.0
_LONGEST_ASKED = 900.0  # a server that wants to be left alone for longer won't serve this run
_CONNECT = 10.0  # seconds
_QUIET = 30.0  # seconds between two warnings: many requests have the same trouble
_PASSING = {408, 409, 425, 429}  # these and 5xx
_BUSY = {429, 502, 503, 504}
_GO_ON = "the same command goes on from what is kept, once it does"

T = TypeVar("T")


class RefusedError(Exception):
    """This request won't be served, whatever is done about the others; why."""


class _PassingError(Exception):
    """What may pass. ``wait`` are the seconds that the server asked for."""

    def __init__(self, reason: str, *, wait: float | None = None, busy: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait
        self.busy = busy


class Client:
    """One server, asked from within one event loop."""

    def __init__(self, settings: Settings) -> None:
        import openai

        self._openai = openai
        self._settings = settings
        self._key = settings.key
        host = urlsplit(settings.base_url).hostname
        self._client = openai.AsyncOpenAI(
            base_url=settings.base_url,
            api_key=self._key or "EMPTY",  # some value is required; servers without keys take any
            timeout=openai.Timeout(settings.timeout, connect=_CONNECT),
            max_retries=0,
            # A proxy set for the outside can't know what this machine's localhost is.
            http_client=openai.DefaultAsyncHttpxClient(
                trust_env=host not in ("localhost", "127.0.0.1", "::1")
            ),
        )
        self._answered = 0
        self._warned = -_QUIET

    async def get(self, path: str) -> Any:
        """The JSON at a path, or a whole URL; None where there is no such page.

        Raises:
            UserError: the server doesn't answer, or not with JSON.
        """

        async def send() -> Any:
            return json.loads(await self._client.get(path, cast_to=str))

        try:
            return await self._once(send)
        except RefusedError:
            return None
        except _PassingError as e:
            raise UserError(
                f"{self._settings.base_url} does not serve {path}: {e}",
                "check base_url; for vLLM: vllm serve MODEL --port 8000, then "
                "--base-url http://HOST:8000/v1",
            ) from None

    async def complete(self, body: Any, read: Callable[[Any], T]) -> T:
        """What ``read`` makes of the chat completion; what it raises ValueError for comes again.

        Raises:
            RefusedError: this request can't be served.
            UserError: no request can, or the server stays away.
        """

        async def send() -> T:
            text = await self._client.post("/chat/completions", body=body, cast_to=str)
            return read(json.loads(text))

        before = self._answered
        for tries in itertools.count(1):
            try:
                value = await self._once(send)
            except _PassingError as e:
                others_served = self._answered > before
                if tries > self._settings.retries and not (e.busy and others_served):
                    await self._give_up(e, tries)
                before = self._answered
                await asyncio.sleep(self._wait(e, tries))
            else:
                self._answered += 1
                return value
        raise AssertionError  # the loop has no end

    async def close(self) -> None:
        await self._client.close()

    async def _once(self, send: Callable[[], Awaitable[T]]) -> T:
        """What ``send`` gives, its errors turned into ours."""
        openai = self._openai
        try:
            return await send()
        except openai.APIStatusError as e:
            raise self._refusal(e) from None
        except openai.APIConnectionError as e:
            cause = e.__cause__ or e
            if type(cause).__name__ == "ReadTimeout":
                raise _PassingError(f"no answer within {self._settings.timeout:g} s") from None
            reason = self._clean(str(cause)) or type(cause).__name__
            raise _PassingError(f"the connection fails: {reason}") from None
        except json.JSONDecodeError:
            raise _PassingError("it answers with something that is not JSON") from None
        except ValueError as e:
            raise _PassingError(self._clean(str(e))) from None

    def _refusal(self, e: Any) -> Exception:
        """What a status of 400 or more means."""
        url, status = self._settings.base_url, e.status_code
        said = self._clean(words(e.body if e.body is not None else e.response.text))
        if status in (401, 403):
            what = "does not accept the key" if self._key else "wants a key"
            return UserError(f"{url} {what}: {said}", f"export {self._settings.key_name}=...")
        if status == 429 and e.code == "insufficient_quota":
            return UserError(f"{url} serves no more: {said}", _GO_ON)
        if status == 404 and e.request.method == "POST":
            hint = "llmpipe takes --model from the server's list: curl BASE_URL/models"
            if not urlsplit(url).path:
                hint = f"most servers answer at {url}/v1"
            return UserError(f"{url} does not know this model or page: {said}", hint)
        if status not in _PASSING and status < 500:
            return RefusedError(said or f"HTTP {status}")
        wait = retry_after(e.response.headers)
        if wait is not None and wait > _LONGEST_ASKED:
            return UserError(f"{url} wants to be left alone for {wait:.0f} s: {said}", _GO_ON)
        return _PassingError(f"HTTP {status}: {said}", wait=wait, busy=status in _BUSY)

    async def _give_up(self, e: _PassingError, tries: int) -> None:
        """Is it the request, or the server? One that is well answers what costs it nothing."""
        if not e.busy:
            try:
                await self.get("/models")
            except UserError:
                pass
            else:
                raise RefusedError(f"{e} ({tries} tries)")
        raise UserError(
            f"{self._settings.base_url} does not serve, after {tries} tries: {e}", _GO_ON
        ) from None

    def _wait(self, e: _PassingError, tries: int) -> float:
        """Seconds until the next try, never fewer than the server asked for."""
        if time.monotonic() - self._warned > _QUIET:
            self._warned = time.monotonic()
            log.warning("%s: %s; trying again", self._settings.base_url, e)
        # Those that failed together shall not come back together.
        most = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(tries - 1, 20))
        return (e.wait or 0.0) + most * random.uniform(0.5, 1.0)

    def _clean(self, said: str) -> str:
        """A server's words in short, without the key, which some repeat."""
        if self._key:
            said = said.replace(self._key, "***")
        return textwrap.shorten(said, 400, placeholder=" ...")
