"""Every way a server fails: what passes, and what ends the run."""

from __future__ import annotations

import logging
import threading
import time
from email.utils import formatdate

import pytest
from api_server import ApiServer, Reply, completion, echo, error, prompt
from openai_requests import KEY, SUMS, Make, ask_for, failing, key_of

from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Generation
from llmpipe.engines import _openai_client

pytest.importorskip("openai", reason="the openai library is not installed here")


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
        Reply(body=completion({"content": "x"}, logprobs={"content": []}, token_ids=["x"])),
        Reply(body=completion({"content": 7})),
        Reply(body=completion({"content": ["x"]})),
        Reply(body=completion({"content": "x"}), delay=0.6),
    ],
    ids=lambda reply: f"{reply.status} {str(reply.body)[:20]}",
)
def test_what_passes_is_tried_again(make: Make, server: ApiServer, reply: Reply) -> None:
    engine = make(timeout="0.4")
    server.fault = failing("unlucky", reply, times=2)
    request = ask_for("unlucky")

    made = {key_of(g.request): g for g in engine.stream([request, *SUMS])}

    assert len(made) == 13
    assert made[key_of(request)].text == " ".join(map(str, range(min(16, 1 + request.seed % 30))))
    assert server.tries["unlucky"] == 3


@pytest.mark.parametrize("date", [False, True])
def test_retry_after_is_honoured(make: Make, server: ApiServer, date: bool) -> None:
    engine = make()
    start = time.time()
    until = formatdate(int(start) + 3, usegmt=True) if date else "2"
    server.fault = failing("busy", error(429, "slow down", headers={"Retry-After": until}), times=1)
    seen: list[float] = []
    server.answer = lambda body: seen.append(time.time()) or echo(body)  # type: ignore[func-returns-value]

    list(engine.stream([ask_for("busy")]))

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
    others = (ask_for(f"Say {i}.") for i in range(300))

    made = list(engine.stream([ask_for("unlucky"), *others]))

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
    server.fault = failing("poison", reply)

    made = {
        g.request.problem.prompt: g
        for g in make(timeout="0.4").stream([ask_for("poison"), SUMS[0]])
    }

    assert made["poison"].error == reason
    assert made["poison"].finish_reason == "error"
    assert made[SUMS[0].problem.prompt].error is None


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_request_is_its_own_error_and_not_tried_again(
    make: Make, server: ApiServer, status: int
) -> None:
    server.fault = failing("bad", error(status, "can't do\nthis"))

    [made] = make().stream([ask_for("bad")])

    assert made.error == "can't do this"
    assert server.tries["bad"] == 1


@pytest.mark.parametrize(
    ("reply", "match", "hint"),
    [
        (error(401, f"bad key {KEY}"), r"does not accept the key: bad key \*\*\*", "OPENAI_API"),
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
    server.fault = failing("bad", reply)

    with pytest.raises(UserError, match=match) as caught:
        list(engine.stream([ask_for("bad")]))

    assert hint in (caught.value.hint or "")
    assert KEY not in str(caught.value)


def test_a_server_that_goes_away_ends_the_run_and_what_was_answered_is_kept(
    make: Make, server: ApiServer
) -> None:
    engine = make()
    made: list[Generation] = []

    def go_on() -> None:
        for answer in engine.stream(ask_for(f"Say {i}.") for i in range(1000)):
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
        made = list(engine.stream(SUMS))

    assert len(made) == 12
    assert not any(g.error for g in made)
    assert len(caplog.records) == 1  # not one a request
    assert "trying again" in caplog.text
