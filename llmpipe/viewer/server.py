"""The viewer's server: pages for one reader, on this machine.

Whoever else is logged in here can reach the port, so every path begins with a secret; a page of
another site that a browser has open can reach it, too, so a request that names another host is
refused, and pages may load nothing but the two files beside this one.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from llmpipe.core.errors import UserError
from llmpipe.viewer.library import Library
from llmpipe.viewer.pages import Pages
from llmpipe.viewer.parts import Query

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",  # the secret is in the address
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STATIC = {
    "viewer.css": "text/css; charset=utf-8",
    "viewer.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class Server(ThreadingHTTPServer):
    """Serves the artifacts of ``library`` at ``url`` until it is closed."""

    daemon_threads = True

    def __init__(
        self, library: Library, *, host: str, port: int, tokenizer: str | None = None
    ) -> None:
        """Bind the port (0: a free one).

        Raises:
            UserError: it can't be bound, or DuckDB is not installed.
        """
        base = f"/{secrets.token_urlsafe(24)}"
        self.base, self.pages = base, Pages(library, base, tokenizer)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as e:
            raise UserError(f"can't serve at {host}, port {port}: {e}", "--port 0") from None
        name = socket.gethostname() if host in ("0.0.0.0", "::") else host
        shown = f"[{name}]" if ":" in name else name
        self.url = f"http://{shown}:{self.server_port}{base}/"
        self.loopback = is_loopback(host)

    def knows(self, host: str) -> bool:
        """Whether a Host header is this machine's. Names that resolve here by design are not."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if is_loopback(name):
            return True
        if self.loopback:
            return False
        return _is_address(name) or name in {socket.gethostname().lower(), socket.getfqdn().lower()}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader who goes away in the middle of a page is no error."""
        import sys

        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, seen from itself."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that a silent connection is kept

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        if not self.server.knows(self.headers.get("Host", "")):
            self._send(403, "text/plain; charset=utf-8", b"This is no name of this server.\n")
            return
        try:
            address = urlsplit(self.path)
            query = dict(parse_qsl(address.query, max_num_fields=50))
        except ValueError:
            self._send(400, "text/plain; charset=utf-8", b"This address can't be read.\n")
            return
        base, page = address.path[: len(self.server.base)], address.path[len(self.server.base) :]
        if not hmac.compare_digest(base.encode(), self.server.base.encode()) or page[:1] != "/":
            said = b"The address that llmpipe view printed is longer: open all of it.\n"
            self._send(403, "text/plain; charset=utf-8", said)
            return
        folder, _, name = page[1:].rpartition("/")
        if folder == "static" and name in _STATIC:
            self._send(200, _STATIC[name], static(name))
            return
        self._page(page[1:], query)

    def _page(self, name: str, query: Query) -> None:
        pages = self.server.pages
        make: dict[str, Callable[[], str]] = {
            "": pages.start,
            "list": partial(pages.rows, query),
            "row": partial(pages.row, query),
            "problem": partial(pages.problem, query),
        }
        code = 200
        try:
            shown = make[name]() if name in make else None
        except UserError as e:
            code, shown = 404, pages.error(e.message)
        except Exception:
            said = pages.error("This is a bug: the terminal has its traceback.")
            self._send(500, "text/html; charset=utf-8", said.encode())
            raise
        if shown is None:
            code, shown = 404, pages.error("There is no such page.")
        self._send(code, "text/html; charset=utf-8", shown.encode(errors="replace"))

    def _send(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "llmpipe"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Addresses hold the secret: nothing is logged."""


def static(name: str) -> bytes:
    """One of the files that pages load."""
    return (resources.files("llmpipe.viewer") / "static" / name).read_bytes()
