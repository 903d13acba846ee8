"""A server on loopback and engines that ask it, with short waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from api_server import ApiServer
from openai_requests import KEY, Make

from llmpipe.core.protocols import Engine, Sampling
from llmpipe.engines import _openai_client
from llmpipe.engines.openai import OpenAIEngine


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_openai_client, "_FIRST_WAIT", 0.001)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer().running() as running:
        yield running


@pytest.fixture
def make(server: ApiServer) -> Iterator[Make]:
    made: list[Engine] = []

    def build(sampling: Sampling | None = None, model: str = "small", **options: str) -> Engine:
        given = {"base_url": server.url, "concurrency": "4", "retries": "3", **options}
        made.append(OpenAIEngine(model, sampling or Sampling(max_tokens=16), given))
        return made[-1]

    yield build
    for engine in made:
        engine.close()
