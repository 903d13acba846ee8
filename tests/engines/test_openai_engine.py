"""The engine that asks a server: what it promises as an engine, and every way a server fails."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer, Reply, completion, echo, error, free_port, prompt

from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Engine, Generation, Request, Sampling
from llmpipe.core.records import Problem
from llmpipe.core.seeds import sample_seed
from llmpipe.engines import _openai_client
from llmpipe.engines.openai import OpenAIEngine

pytest.importorskip("openai", reason="the openai library is not installed here")

_KEY = "sk-secret-1234"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_openai_client, "_FIRST_WAIT", 0.001)
    monkeypatch.setenv("OPENAI_API_KEY", _KEY)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer().running() as running:
        yield running


Make = Callable[..., Engine]


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


def _request(text: str, sample: int = 0) -> Request:
    problem = Problem.make(task="math", source="test", prompt=text, answer="4")
    return Request(
        problem=problem,
        sample=sample,
        seed=sample_seed(0, problem.id, sample),
        messages=[{"role": "user", "content": text}],
    )


def _key(request: Request) -> tuple[str, int]:
    return request.problem.id, request.sample


_SUMS = [_request(f"What is {i} + {i}?", sample) for i in range(4) for sample in range(3)]


def _fail(text: str, reply: Reply, times: int = 1000) -> Callable[..., Reply | None]:
    """The first ``times`` tries of the prompt ``text`` go wrong."""
    return lambda body, tries: reply if prompt(body) == text and tries <= times else None


# What every engine promises


def test_one_answer_a_request_and_a_bad_one_stops_nobody(make: Make) -> None:
    long = _request("word " * 9000)
    wanted = [*_SUMS[:5], long, *_SUMS[5:]]

    made = list(make().stream(wanted))

    assert Counter(_key(g.request) for g in made) == Counter(map(_key, wanted))
    [failed] = [g for g in made if g.finish_reason == "error"]
    assert failed.request is long
    assert failed.error == "This model's maximum context length is 8192 tokens: there are 9000"
    assert failed.text == ""
    for g in made:
        if g is not failed:
            count = 1 + g.request.seed % 30
            assert g.text == " ".join(map(str, range(min(16, count))))
            assert g.finish_reason == ("length" if count > 16 else "stop")
            assert (g.prompt_tokens, g.completion_tokens) == (5, min(16, count))
            assert g.error is None
            assert g.timing is not None
            assert g.timing.first_token is None
            assert g.timing.total > 0
    assert {g.finish_reason for g in made} >= {"stop", "length"}


def test_requests_are_drawn_as_there_is_room_and_in_the_calling_thread(
    make: Make, server: ApiServer
) -> None:
    drawn: list[int] = []

    def requests() -> Iterator[Request]:
        for i in range(32):
            drawn.append(threading.get_ident())
            yield _request(f"Say {i}.")

    engine = make()
    server.fault = lambda _body, _tries: Reply(body=completion({"content": "x"}), delay=0.02)
    answers = engine.stream(requests())
    next(answers)

    assert len(drawn) == 4
    assert len(list(answers)) == 31
    assert set(drawn) == {threading.get_ident()}
    assert server.most_open == 4


def test_a_slow_answer_holds_no_other_up(make: Make, server: ApiServer) -> None:
    server.fault = _fail("slow", Reply(body=completion({"content": "late"}), delay=0.5))

    made = list(make().stream([_request("slow"), *_SUMS]))

    assert made[-1].text == "late"
    assert len(made) == 13


def test_a_stream_that_is_given_up_leaves_the_engine_usable(make: Make) -> None:
    engine = make()
    answers = engine.stream(_SUMS)
    next(answers)
    answers.close()  # type: ignore[attr-defined]

    assert {_key(g.request) for g in engine.stream(_SUMS[:2])} == {_key(r) for r in _SUMS[:2]}


def test_an_error_of_the_iterable_comes_through(make: Make) -> None:
    def requests() -> Iterator[Request]:
        yield _SUMS[0]
        raise OSError("the table is gone")

    engine = make()
    with pytest.raises(OSError, match="the table is gone"):
        list(engine.stream(requests()))
    assert len(list(engine.stream(_SUMS))) == 12


# What is sent, and what is read


def test_the_body_holds_all_sampling_parameters(make: Make, server: ApiServer) -> None:
    sampling = Sampling(
        temperature=0.6,
        top_p=0.9,
        max_tokens=20,
        extra={"top_k": 5, "stop": ["END"]},
        chat_template_kwargs={"enable_thinking": False},
    )
    [made] = make(sampling).stream([_SUMS[1]])

    assert server.asked[-1] == {
        "model": "small",
        "messages": _SUMS[1].messages,
        "temperature": 0.6,
        "top_p": 0.9,
        "max_tokens": 20,
        "seed": _SUMS[1].seed,
        "top_k": 5,
        "stop": ["END"],
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert made.token_ids is None
    assert made.logprobs is None


def test_without_seeds_none_is_sent(make: Make, server: ApiServer) -> None:
    engine = make(Sampling(max_tokens=16, seeds=False))
    list(engine.stream(_SUMS))

    assert len(server.asked) == 13
    assert not any("seed" in body for body in server.asked)
    assert engine.describe()["seeds"] == "none"


def test_logprobs_come_with_token_ids_from_vllm(make: Make) -> None:
    engine = make(Sampling(max_tokens=3, logprobs=True))
    request = next(r for r in _SUMS if r.seed % 30 >= 3)
    [made] = engine.stream([request])

    assert made.token_ids == [100, 101, 102]
    assert made.logprobs == [0, -0.5, -1]
    assert engine.describe()["token_ids"] is True


def test_other_servers_are_not_asked_for_token_ids(make: Make, server: ApiServer) -> None:
    server.models = {"data": [{"id": "small", "owned_by": "sglang"}]}
    engine = make(Sampling(max_tokens=3, logprobs=True))
    [made] = engine.stream([_SUMS[0]])

    assert "return_token_ids" not in server.asked[-1]
    assert made.token_ids is None
    assert made.logprobs
    assert engine.describe()["token_ids"] is False


def test_a_server_without_logprobs_is_told_at_once(make: Make, server: ApiServer) -> None:
    server.answer = lambda _: completion({"content": "x"})
    with pytest.raises(UserError, match="gives no logprobs"):
        make(Sampling(logprobs=True))


@pytest.mark.parametrize(
    ("message", "finish_reason", "text"),
    [
        ({"content": "4", "reasoning_content": "2 and 2"}, "stop", "<think>2 and 2</think>4"),
        ({"content": "4", "reasoning": "2 and 2"}, "stop", "<think>2 and 2</think>4"),
        ({"content": None, "reasoning": "2 and"}, "length", "<think>2 and"),
        ({"content": "4", "reasoning": "2 and 2"}, "length", "<think>2 and 2</think>4"),
        ({"content": "4", "reasoning": None}, "stop", "4"),
        ({"content": None}, "stop", ""),
    ],
)
def test_thinking_is_put_back(
    make: Make, server: ApiServer, message: Mapping[str, Any], finish_reason: str, text: str
) -> None:
    server.answer = lambda _: completion(message, finish_reason=finish_reason)
    [made] = make().stream([_SUMS[0]])

    assert made.text == text


def test_an_answer_that_is_withheld_is_an_error(make: Make, server: ApiServer) -> None:
    engine = make()
    server.answer = lambda _: completion({"content": "x"}, finish_reason="content_filter")
    [made] = engine.stream([_SUMS[0]])

    assert (made.finish_reason, made.error) == ("error", "the server ended it: content_filter")


def test_the_other_name_of_max_tokens(make: Make, server: ApiServer) -> None:
    refusal = error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.")
    server.fault = lambda body, _tries: refusal if "max_tokens" in body else None
    server.answer = lambda body: echo({**body, "max_tokens": body["max_completion_tokens"]})

    made = list(make(Sampling(max_tokens=12)).stream(_SUMS))

    assert {g.finish_reason for g in made} == {"stop", "length"}
    assert {body.get("max_completion_tokens") for body in server.asked[1:]} == {12}


def test_description_is_json_and_says_where_answers_come_from(
    make: Make, server: ApiServer
) -> None:
    described = json.loads(json.dumps(make().describe()))

    assert described["seeds"].startswith("per sample")
    assert described["base_url"] == server.url
    assert described["server"] == {"owned_by": "vllm", "max_model_len": 8192, "version": "0.0.1"}
    assert described["max_model_len"] == 8192
    assert described["versions"]["openai"]


# What goes wrong and passes


@pytest.mark.parametrize(
    "reply",
    [
        error(429, "slow down", headers={"Retry-After": "0"}),
        error(500, "oops"),
        error(503, "loading"),
        Reply(status=502, body="<html>bad gateway</html>"),
        Reply(status=0),
        Reply(body=completion({"content": "x"}), half=True),
        Reply(body="<html>log in</html>"),
        Reply(body='{"choices": ['),
        Reply(body={"choices": []}),
        Reply(body=[1]),
        Reply(body="null"),
        Reply(body={"error": {"message": "upstream"}}),
        Reply(body=completion({"content": "x"}, finish_reason="abort")),
        Reply(body=completion({"content": "x"}, logprobs={"content": []}, token_ids=[1])),
        Reply(body=completion({"content": "x"}), delay=0.6),
    ],
    ids=lambda reply: f"{reply.status} {str(reply.body)[:20]}",
)
def test_what_passes_is_tried_again(make: Make, server: ApiServer, reply: Reply) -> None:
    engine = make(timeout="0.4")
    server.fault = _fail("unlucky", reply, times=2)
    request = _request("unlucky")

    made = {_key(g.request): g for g in engine.stream([request, *_SUMS])}

    assert len(made) == 13
    assert made[_key(request)].text == " ".join(map(str, range(min(16, 1 + request.seed % 30))))
    assert server.tries["unlucky"] == 3


@pytest.mark.parametrize("date", [False, True])
def test_retry_after_is_honoured(make: Make, server: ApiServer, date: bool) -> None:
    engine = make()
    start = time.time()
    until = formatdate(int(start) + 3, usegmt=True) if date else "2"
    server.fault = _fail("busy", error(429, "slow down", headers={"Retry-After": until}), times=1)
    seen: list[float] = []
    server.answer = lambda body: seen.append(time.time()) or echo(body)  # type: ignore[func-returns-value]

    list(engine.stream([_request("busy")]))

    assert seen[0] >= (int(start) + 3 if date else start + 2)


def test_a_busy_server_is_waited_for_as_long_as_it_serves_others(
    make: Make, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(retries="1", concurrency="2")
    busy = error(429, "slow down", headers={"Retry-After": "0"})
    server.fault = lambda body, tries: (
        (busy if prompt(body) == "unlucky" and tries <= 6 else None)
        or Reply(body=echo(body), delay=0.005)
    )
    # The other seat is never empty, so there is an answer between any two tries of the unlucky.
    monkeypatch.setattr(_openai_client, "_FIRST_WAIT", 0.1)
    monkeypatch.setattr(_openai_client, "_LONGEST_WAIT", 0.1)
    others = (_request(f"Say {i}.") for i in range(300))

    made = list(engine.stream([_request("unlucky"), *others]))

    assert len(made) == 301
    assert not any(g.error for g in made)
    assert server.tries["unlucky"] == 7


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (error(500, "out of memory"), "HTTP 500: out of memory (4 tries)"),
        (Reply(body="{"), "it answers with something that is not JSON (4 tries)"),
        (Reply(body=completion({"content": "x"}), delay=0.6), "no answer within 0.4 s (4 tries)"),
    ],
)
def test_what_does_not_pass_is_the_requests_error_if_the_server_is_well(
    make: Make, server: ApiServer, reply: Reply, reason: str
) -> None:
    server.fault = _fail("poison", reply)

    made = {
        g.request.problem.prompt: g
        for g in make(timeout="0.4").stream([_request("poison"), _SUMS[0]])
    }

    assert made["poison"].error == reason
    assert made["poison"].finish_reason == "error"
    assert made[_SUMS[0].problem.prompt].error is None


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_request_is_its_own_error_and_not_tried_again(
    make: Make, server: ApiServer, status: int
) -> None:
    server.fault = _fail("bad", error(status, "can't do\nthis"))

    [made] = make().stream([_request("bad")])

    assert made.error == "can't do this"
    assert server.tries["bad"] == 1


# What ends the run


@pytest.mark.parametrize(
    ("reply", "match", "hint"),
    [
        (error(401, f"bad key {_KEY}"), r"does not accept the key: bad key \*\*\*", "OPENAI_API"),
        (error(403, "no access"), "does not accept the key: no access", "export OPENAI_API_KEY"),
        (error(404, "no such model"), "does not know this model or page: no such model", "models"),
        (
            error(429, "pay first", code="insufficient_quota"),
            "serves no more: pay first",
            "the same command goes on",
        ),
        (
            error(429, "come tomorrow", headers={"Retry-After": "86400"}),
            "wants to be left alone for 86400 s",
            "the same command goes on",
        ),
        (error(429, "busy"), "does not serve, after 4 tries: HTTP 429: busy", "goes on"),
        (error(503, "away"), "does not serve, after 4 tries: HTTP 503: away", "goes on"),
    ],
)
def test_what_all_requests_would_meet_ends_the_run(
    make: Make, server: ApiServer, reply: Reply, match: str, hint: str
) -> None:
    engine = make()
    server.fault = _fail("bad", reply)

    with pytest.raises(UserError, match=match) as caught:
        list(engine.stream([_request("bad")]))

    assert hint in (caught.value.hint or "")
    assert _KEY not in str(caught.value)


def test_a_server_that_goes_away_ends_the_run_and_what_was_answered_is_kept(
    make: Make, server: ApiServer
) -> None:
    engine = make()
    made: list[Generation] = []

    def go_on() -> None:
        for answer in engine.stream(_request(f"Say {i}.") for i in range(1000)):
            made.append(answer)
            if len(made) == 10:
                server.stop()

    with pytest.raises(UserError, match="does not serve, after 4 tries: the connection fails"):
        go_on()

    assert 10 <= len(made) < 1000
    assert not any(g.error for g in made)


def test_a_server_that_comes_back_is_gone_on_with(
    make: Make, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make(retries="30")
    down = threading.Event()
    server.fault = lambda _body, _tries: Reply(status=0) if down.is_set() else None
    threading.Timer(0.05, down.set).start()
    threading.Timer(0.5, down.clear).start()

    with caplog.at_level(logging.WARNING, logger="llmpipe"):
        while not down.is_set():
            time.sleep(0.01)
        made = list(engine.stream(_SUMS))

    assert len(made) == 12
    assert not any(g.error for g in made)
    assert len(caplog.records) == 1  # not one a request
    assert "trying again" in caplog.text


# Before anything is sampled


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

    assert len(list(engine.stream(_SUMS))) == 12
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
        ({"base_url": "http://x/v1", "api_key": _KEY}, "has no option 'api_key'"),
        ({"base_url": "http://x/v1", "api_key_env": "NOT_SET"}, "names no variable"),
        ({"base_url": "http://x/v1", "api_key_env": _KEY}, "names no variable"),
        ({"base_url": f"http://me:{_KEY}@x/v1"}, "http://x/v1 comes with a name or a password"),
        ({"base_url": f"http://x/v1?key={_KEY}"}, "'http://x/v1' is no plain URL"),
    ],
)
def test_options_are_checked_without_a_server_and_no_secret_is_repeated(
    options: Mapping[str, str], match: str
) -> None:
    with pytest.raises(UserError, match=match) as caught:
        OpenAIEngine.check("small", Sampling(), options)
    assert _KEY not in f"{caught.value} {caught.value.hint}"


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


# The key


def test_the_key_is_sent_and_told_to_nobody(
    make: Make, server: ApiServer, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    server.fault = _fail("bad", error(400, f"what is {_KEY}?"))
    with caplog.at_level(logging.DEBUG):
        engine = make()
        made = list(engine.stream([_request("bad"), *_SUMS]))

    assert {h["authorization"] for h in server.headers} == {f"Bearer {_KEY}"}
    assert {g.error for g in made} == {None, "what is ***?"}
    assert _KEY not in caplog.text
    assert _KEY not in json.dumps(engine.describe())
    out, err = capfd.readouterr()
    assert out == ""
    assert _KEY not in err


def test_the_key_of_another_variable(
    make: Make, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "mine-1")
    list(make(api_key_env="MINE").stream(_SUMS[:1]))

    assert {h["authorization"] for h in server.headers} == {"Bearer mine-1"}


def test_without_a_key_a_server_that_wants_none_is_asked(
    make: Make, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert len(list(make().stream(_SUMS))) == 12
    server.fault = lambda _body, _tries: error(401, "who are you?")
    with pytest.raises(UserError, match=r"wants a key: who are you\?"):
        make()


def test_a_proxy_is_not_asked_for_the_loopback(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    assert len(list(make().stream(_SUMS))) == 12


# A real server


@pytest.fixture(scope="module")
def vllm_server(smol_model: Path, tmp_path_factory: Any) -> Iterator[tuple[str, Any]]:
    """``vllm serve`` of the small model on the CPU; its URL and process."""
    pytest.importorskip("vllm", reason="vLLM is not installed here")
    requests = pytest.importorskip("requests")
    port = free_port()
    log = tmp_path_factory.mktemp("vllm") / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
                *("--model", str(smol_model), "--served-model-name", "smol"),
                *("--host", "127.0.0.1", "--port", str(port)),
                *("--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "8"),
                *("--no-enable-chunked-prefill", "--dtype", "bfloat16"),
            ],
            env={
                **os.environ,
                "VLLM_CPU_KVCACHE_SPACE": "1",
                "VLLM_NO_USAGE_STATS": "1",
                "HF_HUB_OFFLINE": "1",
                "OMP_WAIT_POLICY": "PASSIVE",
                "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))),
            },
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert process.poll() is None, log.read_text()[-4000:]
            try:
                if requests.get(f"{url}/health", timeout=5).ok:
                    break
            except requests.RequestException:
                time.sleep(0.5)
        else:
            pytest.fail(f"vllm serve does not start: {log.read_text()[-4000:]}")
        yield f"{url}/v1", process
    finally:
        _end(process)


def _end(process: Any) -> None:
    """End the server and its engine process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


@pytest.mark.slow
def test_a_real_vllm_server_and_how_it_ends_when_that_is_killed(
    vllm_server: tuple[str, Any],
) -> None:
    url, process = vllm_server
    sampling = Sampling(temperature=1.0, max_tokens=24, logprobs=True, extra={"top_k": 50})
    engine: Engine = load("engines", "openai")(
        "smol", sampling, {"base_url": url, "concurrency": "8", "retries": "4"}
    )
    try:
        described = engine.describe()
        assert described["server"]["owned_by"] == "vllm"
        assert described["server"]["version"]
        assert described["max_model_len"] == 2048
        assert described["token_ids"] is True

        long = _request("word " * 4000)
        first, second = (
            {_key(g.request): g for g in engine.stream([*_SUMS, long])} for _ in range(2)
        )
        failed = first.pop(_key(long))
        assert failed.finish_reason == "error"
        assert "2048" in (failed.error or "")
        assert len(first) == 12
        for key, g in first.items():
            assert g.error is None
            assert g.text
            assert g.prompt_tokens > 0
            assert g.token_ids is not None
            assert g.logprobs is not None
            assert len(g.token_ids) == len(g.logprobs) == g.completion_tokens <= 24
            assert all(-30 < p <= 0 for p in g.logprobs)
            assert g.text == second[key].text  # the same seed
        assert len({g.text for g in first.values()}) > 6  # other seeds

        made: list[Generation] = []

        def go_on() -> None:
            for answer in engine.stream(_request(f"Say {i}.") for i in range(10_000)):
                made.append(answer)
                if len(made) == 8:
                    _end(process)

        with pytest.raises(UserError, match="does not serve, after 5 tries: the conn") as caught:
            go_on()
        assert "the same command goes on" in (caught.value.hint or "")
        assert len(made) >= 8
        assert not any(g.error for g in made)
    finally:
        engine.close()
