from __future__ import annotations

import http.client
from html import unescape
from urllib.parse import urlencode

import pytest
from viewer_tree import HOSTILE, PROBLEMS

from llmpipe.viewer.library import Library
from llmpipe.viewer.server import Server


def ask(
    server: Server, path: str, method: str = "GET", base: str | None = None, **headers: str
) -> tuple[int, str, dict[str, str]]:
    """Status, body and headers of what a path below the secret one gives."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request(method, (server.base if base is None else base) + path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body, {k.lower(): v for k, v in answer.getheaders()}


def get(server: Server, page: str, /, **query: str) -> str:
    status, body, _ = ask(server, f"/{page}?{urlencode(query)}")
    assert status == 200, body
    return body


def test_the_start_page_lists_what_is_there(server: Server) -> None:
    body = get(server, "")
    for name in ("problems", "rollouts", "verdicts", "eval", "sft", "pairs"):
        assert f"/list?artifact={name}" in body


def test_pages_may_load_nothing_from_elsewhere(server: Server) -> None:
    status, _, headers = ask(server, "/")
    policy = headers["content-security-policy"]
    assert status == 200
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9000", 200),  # through ssh -L
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:80", 403),
        ("192.168.0.1", 403),
        ("[", 403),
        ("", 403),
    ],
)
def test_a_request_in_another_name_is_refused(server: Server, host: str, status: int) -> None:
    assert ask(server, "/", Host=host)[0] == status


@pytest.mark.parametrize("base", ["", "/", "/x", "/" + "a" * 32, "/%C3%A9"])
def test_without_the_secret_there_is_nothing(server: Server, base: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest("GET", "/")
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()
    status, body, _ = ask(server, "/list?artifact=sft", base=base)
    assert status == 403
    assert "sft" not in body


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/list?artifact=../../etc", "no artifact called"),
        ("/list", "no artifact called"),
        ("/static/../server.py", "no such page"),
        ("/static/server.py", "no such page"),
        ("/row?artifact=sft&n=60", "has 60 rows"),
        ("/row?artifact=sft&n=-1", "its number"),
        ("/problem?artifact=problems&id=nope", "no problem"),
        ("/nope", "no such page"),
    ],
)
def test_what_is_not_there_is_said(server: Server, path: str, said: str) -> None:
    status, body, _ = ask(server, path)
    assert status == 404
    assert said in unescape(body)


def test_only_reading_is_served(server: Server) -> None:
    assert ask(server, "/", method="POST")[0] == 501
    assert ask(server, "/", method="HEAD")[:2] == (200, "")
    assert ask(server, "/?" + "&".join(f"a{i}=1" for i in range(99)))[0] == 400


def test_a_list_is_filtered_and_paged(server: Server) -> None:
    body = get(server, "list", artifact="verdicts", status="wrong", length_from="17")
    assert "3 of 6 rows" in body
    assert body.count('class="status wrong"') == 3
    first, last = (get(server, "list", artifact="sft", page=n) for n in ("1", "99"))
    assert "page 1 of 2" in first
    assert 'rel="next"' in first
    assert last.count("<tr>") == 11  # a head, and the last ten rows
    assert "page 2 of 2" in last


def test_a_verdict_is_shown_with_its_answer_and_problem(server: Server) -> None:
    body = get(server, "row", artifact="verdicts", n="0")
    assert '<mark id="answer">3/4</mark>' in body
    assert "<mfrac>" in body  # of the problem
    assert "2 messages of worked examples" in body
    shown = HOSTILE.replace("\N{RIGHT-TO-LEFT OVERRIDE}", "⟦U+202E⟧").replace("3/4", "#")
    text = (
        body.replace('<mark id="answer">3/4</mark>', "#")
        .replace('<span class="thinking">', "")
        .replace("</think&gt;</span>", "</think&gt;")
        .replace("&lt;/think&gt;</span>", "</think>")
    )
    assert shown in unescape(text)
    assert "<script>" not in body
    assert "onerror=&quot;" in body


def test_a_maze_is_drawn_with_where_the_path_broke(server: Server) -> None:
    body = get(server, "row", artifact="verdicts", n="5")
    assert "<svg" in body
    assert body.count('class="x"') == 1
    assert "meets a wall" in body
    assert '<mark id="answer">R, R, D, D</mark>' in body
    assert 'class="x"' not in get(server, "row", artifact="verdicts", n="4")


def test_a_problem_has_all_answers_to_it(server: Server) -> None:
    body = get(server, "problem", artifact="problems", id=PROBLEMS[1].id)
    assert "What is &lt;i&gt;1&lt;/i&gt; + 1?" in body
    assert "2 of 2" in body
    right = get(server, "row", artifact="problems", n="1", answers="verdicts", of="correct")
    assert "1 of 2" in right
    assert 'class="status wrong"' not in right
    scored = get(server, "row", artifact="eval", n="1")
    assert scored.partition("Answers in")[2].count('class="status ') == 2


def test_an_eval_has_its_scores_at_the_head(server: Server) -> None:
    body = get(server, "list", artifact="eval")
    assert "<th>pass@2</th><td>1.0000</td>" in body
    given = get(server, "row", artifact="eval", n="1").partition("Answers given")[2]
    assert given.index(">2</td>") < given.index(">3</td>")


def test_turns_with_loss_are_marked_and_pairs_are_side_by_side(server: Server) -> None:
    body = get(server, "row", artifact="sft", n="0")
    assert body.count('class="trained"') == 1
    assert "&lt;b&gt;Hello&lt;/b&gt;" in body
    assert 'class="side rejected"' in get(server, "row", artifact="pairs", n="0")


def test_a_server_that_others_reach_knows_its_own_names_only(library: Library) -> None:
    with Server(library, host="0.0.0.0", port=0) as server:
        assert server.knows("192.168.0.1:80")
        assert server.knows("localhost")
        assert not server.knows("evil.example")
