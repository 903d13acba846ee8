"""Rollouts of several turns, and their end at a given time, by the engine that asks a server."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer, Reply, completion
from scripted_rollouts import make_problems, rows, sample

from llmpipe.core.run import Mode

pytest.importorskip("openai", reason="the openai library is not installed here")


def test_second_turns_that_time_cuts_off_are_asked_for_again(
    server: ApiServer, tmp_path: Path
) -> None:
    asked: Counter[int] = Counter()
    server.answer = lambda _: completion({"content": r"It is \boxed{0}."})

    def slow_after_the_first(body: Mapping[str, Any], _tries: int) -> Reply | None:
        asked[len(body["messages"])] += 1
        late = len(body["messages"]) > 1
        return Reply(body=server.answer(body), delay=600) if late else None

    problems = make_problems(tmp_path / "problems", range(3))
    options = {"engine": "openai", "model": "small", "n": 2, "max_turns": 2}
    options["engine_args"] = {"base_url": server.url}
    server.fault = slow_after_the_first
    stopped = sample(problems, tmp_path / "out", Mode(deadline=time.monotonic() + 4), **options)
    assert (stopped.complete, stopped.figures["samples"]) == (False, 0)
    assert asked[1] == 7  # six, and the one that tries the server
    assert asked[3] == 6

    server.fault = lambda _body, _tries: None
    server.answer = lambda body: completion({"content": rf"Now \boxed{{{len(body['messages'])}}}."})
    assert sample(problems, tmp_path / "out", **options).complete
    made = rows(tmp_path / "out")
    assert len(made) == 6
    for row in made:
        said = [m["content"] for m in row.messages if m["role"] == "assistant"]
        assert said == [r"It is \boxed{0}.", r"Now \boxed{3}."]
        assert row.completion == said[-1]
