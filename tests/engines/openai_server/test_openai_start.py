"""What is checked before anything is sampled, and the key that is told to nobody."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from api_server import ApiServer, Reply, error, free_port
from openai_requests import KEY, SUMS, Make, ask_for, failing

from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Sampling
from llmpipe.engines.openai import OpenAIEngine

pytest.importorskip("openai", reason="the openai library is not installed here")


def test_a_model_that_the_server_has_not(make: Make, server: ApiServer) -> None:
    with pytest.raises(UserError, match="has no model 'smal'") as caught:
        make(model="smal")
    assert caught.value.hint == "it has small"
    assert server.asked == []


def test_a_server_without_a_list_of_models_is_asked_for_an_answer(
    make: Make, server: ApiServer
) -> None:
    server.models = error(404, "Not Found")
    engine = make(model="any")

    assert len(list(engine.stream(SUMS))) == 12
    assert engine.describe()["server"] == {}


def test_nobody_there() -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(UserError, match=r"does not serve /models: the connection fails") as caught:
        OpenAIEngine("small", Sampling(), {"base_url": url})
    assert "vllm serve" in (caught.value.hint or "")


def test_a_forgotten_v1_is_thought_of(make: Make, server: ApiServer) -> None:
    with pytest.raises(UserError, match="does not know this model or page") as caught:
        make(base_url=server.url.removesuffix("/v1"))
    assert caught.value.hint == f"most servers answer at {server.url}"


@pytest.mark.parametrize("models", [Reply(body="<html>"), {"models": []}, [1], {"data": 1}])
def test_something_else_answers(make: Make, server: ApiServer, models: Any) -> None:
    server.models = models
    with pytest.raises(UserError, match=r"not JSON|no list of models"):
        make()


def test_refused_parameters_are_said_before_the_night(make: Make, server: ApiServer) -> None:
    server.fault = lambda body, _: error(400, "Unknown: topk") if "topk" in body else None
    with pytest.raises(UserError, match="refuses such requests: Unknown: topk"):
        make(Sampling(extra={"topk": 1}))
    assert len(server.asked) == 1


def test_an_answer_as_long_as_the_context(make: Make) -> None:
    with pytest.raises(UserError, match="no room for a prompt: the server has a context of 8192"):
        make(Sampling(max_tokens=8192))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "needs to know where the server is"),
        ({"base_url": "localhost:8000"}, "is no plain URL"),
        ({"base_url": "http://x:99999/v1"}, "is no plain URL"),
        ({"base_url": "http://x/v1", "concurrency": "0"}, "concurrency is 0"),
        ({"base_url": "http://x/v1", "concurrency": "2000"}, "from 1 to 1000"),
        ({"base_url": "http://x/v1", "retries": "-1"}, "retries is -1"),
        ({"base_url": "http://x/v1", "timeout": "0"}, "timeout is 0"),
        ({"base_url": "http://x/v1", "timeout": "NaN"}, "timeout is nan"),
        ({"base_url": "http://x/v1", "timeout": "soon"}, "timeout is 'soon'"),
        ({"base_url": "http://x/v1", "api_key": KEY}, "has no option 'api_key'"),
        ({"base_url": "http://x/v1", "api_key_env": "NOT_SET"}, "names no variable"),
        ({"base_url": "http://x/v1", "api_key_env": KEY}, "names no variable"),
        ({"base_url": f"http://me:{KEY}@x/v1"}, "http://x/v1 comes with a name or a password"),
        ({"base_url": f"http://x/v1?key={KEY}"}, "'http://x/v1' is no plain URL"),
    ],
)
def test_options_are_checked_without_a_server_and_no_secret_is_repeated(
    options: Mapping[str, str], match: str
) -> None:
    with pytest.raises(UserError, match=match) as caught:
        OpenAIEngine.check("small", Sampling(), options)
    assert KEY not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("sampling", "match"),
    [
        (Sampling(extra={"n": 8, "stream": True}), "n, stream can't be given"),
        (Sampling(extra={"temperature": 1}), "temperature can't be given"),
        (Sampling(chat_template=""), "bare text"),
    ],
)
def test_sampling_is_checked_without_a_server(sampling: Sampling, match: str) -> None:
    with pytest.raises(UserError, match=match):
        OpenAIEngine.check("small", sampling, {"base_url": "http://x/v1"})


def test_the_key_is_sent_and_told_to_nobody(
    make: Make, server: ApiServer, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    server.fault = failing("bad", error(400, f"what is {KEY}?"))
    with caplog.at_level(logging.DEBUG):
        engine = make()
        made = list(engine.stream([ask_for("bad"), *SUMS]))

    assert {h["authorization"] for h in server.headers} == {f"Bearer {KEY}"}
    assert {g.error for g in made} == {None, "what is ***?"}
    assert KEY not in caplog.text
    assert KEY not in json.dumps(engine.describe())
    out, err = capfd.readouterr()
    assert out == ""
    assert KEY not in err


def test_the_key_of_another_variable(
    make: Make, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "mine-1")
    list(make(api_key_env="MINE").stream(SUMS[:1]))

    assert {h["authorization"] for h in server.headers} == {"Bearer mine-1"}


def test_without_a_key_a_server_that_wants_none_is_asked(
    make: Make, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert len(list(make().stream(SUMS))) == 12
    server.fault = lambda _body, _tries: error(401, "who are you?")
    with pytest.raises(UserError, match=r"wants a key: who are you\?"):
        make()


def test_a_proxy_is_not_asked_for_the_loopback(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    assert len(list(make().stream(SUMS))) == 12
