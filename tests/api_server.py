"""A server on the loopback that speaks the chat completions API, and fails as it is told."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTEXT = 8192  # tokens; a token is a word


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is sent: a status, a body (JSON, or text as it is) and headers.

    ``delay`` seconds after the request, and only the first half of the body where ``half``.
    A status of 0 drops the connection.
    """

    status: int = 200
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0
    half: bool = False


Fault = Callable[[Mapping[str, Any], int], Reply | None]
"""What goes wrong with a request's body at a try (from 1) of its prompt; None: nothing."""


class ApiServer:
    """``url`` is what clients are given. ``asked`` holds the bodies, ``headers`` those sent,
    by their names in lower case."""

    def __init__(self) -> None:
        self.models: Any = {"data": [{"id": "small", "owned_by": "vllm", "max_model_len": CONTEXT}]}
        self.fault: Fault = lambda _body, _tries: None
        self.answer: Callable[[Mapping[str, Any]], Mapping[str, Any]] = echo
        self.asked: list[Mapping[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.tries: Counter[str] = Counter()
        self.open = self.most_open = 0
        self.lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.api = self
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    @contextlib.contextmanager
    def running(self) -> Iterator[ApiServer]:
        thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self.stop()
            thread.join()

    def stop(self) -> None:
        """Go away: connections are closed, and new ones refused."""
        self._http.shutdown()
        self._http.server_close()
        for connection in list(self._http.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def prompt(body: Mapping[str, Any]) -> str:
    """The last message of a request."""
    said: str = body["messages"][-1]["content"]
    return said


def echo(body: Mapping[str, Any]) -> dict[str, Any]:
    """Counts up to the seed's last digit, so that a seed has one answer."""
    words = [str(i) for i in range(1 + body.get("seed", 0) % 30)]
    kept = words[: body["max_tokens"]]
    tokens: dict[str, Any] = {}
    if body.get("logprobs"):
        tokens["logprobs"] = {"content": [{"token": w, "logprob": -int(w) / 2} for w in kept]}
    if body.get("return_token_ids"):
        tokens["token_ids"] = [int(w) + 100 for w in kept]
    return completion(
        {"content": " ".join(kept)},
        finish_reason="stop" if kept == words else "length",
        prompt_tokens=len(prompt(body).split()),
        completion_tokens=len(kept),
        **tokens,
    )


def completion(
    message: Mapping[str, Any],
    *,
    finish_reason: str = "stop",
    prompt_tokens: int = 3,
    completion_tokens: int = 5,
    **choice: Any,
) -> dict[str, Any]:
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason, **choice}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens},
    }


def error(status: int, message: str, **rest: Any) -> Reply:
    headers = rest.pop("headers", {})
    return Reply(
        status=status, body={"error": {"message": message, "code": status, **rest}}, headers=headers
    )


def free_port() -> int:
    """A port on the loopback where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    api: ApiServer

    def __init__(self, *arguments: Any) -> None:
        self.connections: set[socket.socket] = set()
        super().__init__(*arguments)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body waits 40 ms for the head's acknowledgement
    server: _Http

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, *arguments: object) -> None:
        """Nothing is logged."""

    def do_GET(self) -> None:
        api = self.server.api
        api.headers.append(self._lower())
        if self.path == "/version":
            self._send(Reply(body={"version": "0.0.1"}))
        elif self.path == "/v1/models" and isinstance(api.models, Reply):
            self._send(api.models)
        elif self.path == "/v1/models":
            self._send(Reply(body=api.models))
        else:
            self._send(error(404, "Not Found"))

    def do_POST(self) -> None:
        api = self.server.api
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self._send(error(404, "Not Found"))
            return
        with api.lock:
            api.asked.append(body)
            api.headers.append(self._lower())
            api.tries[prompt(body)] += 1
            tries = api.tries[prompt(body)]
            api.open += 1
            api.most_open = max(api.most_open, api.open)
        try:
            self._send(api.fault(body, tries) or _served(api, body))
        finally:
            with api.lock:
                api.open -= 1

    def _lower(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _send(self, reply: Reply) -> None:
        time.sleep(reply.delay)
        if not reply.status:
            self.close_connection = True
            return
        text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
        sent = text.encode()
        with contextlib.suppress(ConnectionError):  # a client that left
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent[: len(sent) // 2] if reply.half else sent)
        self.close_connection = self.close_connection or reply.half


def _served(api: ApiServer, body: Mapping[str, Any]) -> Reply:
    count = len(prompt(body).split())
    if count >= CONTEXT:
        return error(
            400, f"This model's maximum context length is {CONTEXT} tokens: there are {count}"
        )
    return Reply(body=api.answer(body))
