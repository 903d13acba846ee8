"""What the engine that asks a server promises, sends and reads."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from api_server import ApiServer, Reply, completion, echo, error
from openai_requests import SUMS, Make, ask_for, failing, key_of

from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Request, Sampling

pytest.importorskip("openai", reason="the openai library is not installed here")


def test_one_answer_a_request_and_a_bad_one_stops_nobody(make: Make) -> None:
    long = ask_for("word " * 9000)
    wanted = [*SUMS[:5], long, *SUMS[5:]]

    made = list(make().stream(wanted))

    assert Counter(key_of(g.request) for g in made) == Counter(map(key_of, wanted))
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
            yield ask_for(f"Say {i}.")

    engine = make()
    server.fault = lambda _body, _tries: Reply(body=completion({"content": "x"}), delay=0.02)
    answers = engine.stream(requests())
    next(answers)

    assert len(drawn) == 4
    assert len(list(answers)) == 31
    assert set(drawn) == {threading.get_ident()}
    assert server.most_open == 4


def test_a_slow_answer_holds_no_other_up(make: Make, server: ApiServer) -> None:
    server.fault = failing("slow", Reply(body=completion({"content": "late"}), delay=0.5))

    made = list(make().stream([ask_for("slow"), *SUMS]))

    assert made[-1].text == "late"
    assert len(made) == 13


def test_a_stream_that_is_given_up_leaves_the_engine_usable(make: Make) -> None:
    engine = make()
    answers = engine.stream(SUMS)
    next(answers)
    answers.close()  # type: ignore[attr-defined]

    assert {key_of(g.request) for g in engine.stream(SUMS[:2])} == {key_of(r) for r in SUMS[:2]}


def test_an_error_of_the_iterable_comes_through(make: Make) -> None:
    def requests() -> Iterator[Request]:
        yield SUMS[0]
        raise OSError("the table is gone")

    engine = make()
    with pytest.raises(OSError, match="the table is gone"):
        list(engine.stream(requests()))
    assert len(list(engine.stream(SUMS))) == 12


def test_the_body_holds_all_sampling_parameters(make: Make, server: ApiServer) -> None:
    sampling = Sampling(
        temperature=0.6,
        top_p=0.9,
        max_tokens=20,
        extra={"top_k": 5, "stop": ["END"]},
        chat_template_kwargs={"enable_thinking": False},
    )
    [made] = make(sampling).stream([SUMS[1]])

    assert server.asked[-1] == {
        "model": "small",
        "messages": SUMS[1].messages,
        "temperature": 0.6,
        "top_p": 0.9,
        "max_tokens": 20,
        "seed": SUMS[1].seed,
        "top_k": 5,
        "stop": ["END"],
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert made.token_ids is None
    assert made.logprobs is None


def test_without_seeds_none_is_sent(make: Make, server: ApiServer) -> None:
    engine = make(Sampling(max_tokens=16, seeds=False))
    list(engine.stream(SUMS))

    assert len(server.asked) == 13
    assert not any("seed" in body for body in server.asked)
    assert engine.describe()["seeds"] == "none"


def test_logprobs_come_with_token_ids_from_vllm(make: Make) -> None:
    engine = make(Sampling(max_tokens=3, logprobs=True))
    request = next(r for r in SUMS if r.seed % 30 >= 3)
    [made] = engine.stream([request])

    assert made.token_ids == [100, 101, 102]
    assert made.logprobs == [0, -0.5, -1]
    assert engine.describe()["token_ids"] is True


def test_other_servers_are_not_asked_for_token_ids(make: Make, server: ApiServer) -> None:
    server.models = {"data": [{"id": "small", "owned_by": "sglang"}]}
    engine = make(Sampling(max_tokens=3, logprobs=True))
    [made] = engine.stream([SUMS[0]])

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
        ({"content": [{"type": "text", "text": "4"}, {"text": "2"}]}, "stop", "42"),
        (
            {"content": "4\ud800 \ud83d\ude00", "reasoning": "\udc00"},
            "stop",
            "<think>\ufffd</think>4\ufffd \U0001f600",
        ),
    ],
)
def test_thinking_is_put_back(
    make: Make, server: ApiServer, message: Mapping[str, Any], finish_reason: str, text: str
) -> None:
    server.answer = lambda _: completion(message, finish_reason=finish_reason)
    [made] = make().stream([SUMS[0]])

    assert made.text == text


@pytest.mark.parametrize("count", ["x", 10**30, -4, None])
def test_a_count_of_tokens_that_is_none_costs_no_answer(
    make: Make, server: ApiServer, count: object
) -> None:
    said = {**completion({"content": "4"}), "usage": {"completion_tokens": count}}
    server.answer = lambda _: said
    [made] = make().stream([SUMS[0]])

    assert (made.text, made.completion_tokens) == ("4", 0)


def test_an_answer_that_is_withheld_is_an_error(make: Make, server: ApiServer) -> None:
    engine = make()
    server.answer = lambda _: completion({"content": "x"}, finish_reason="content_filter")
    [made] = engine.stream([SUMS[0]])

    assert (made.finish_reason, made.error) == ("error", "the server ended it: content_filter")


def test_the_other_name_of_max_tokens(make: Make, server: ApiServer) -> None:
    refusal = error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.")
    server.fault = lambda body, _tries: refusal if "max_tokens" in body else None
    server.answer = lambda body: echo({**body, "max_tokens": body["max_completion_tokens"]})

    made = list(make(Sampling(max_tokens=12)).stream(SUMS))

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
