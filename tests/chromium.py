"""Chromium without a screen, told what to do by its own protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.sync.client import ClientConnection, connect

PATH = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-extensions "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage "
    "--hide-scrollbars --window-size=1280,800 --remote-debugging-port=0"
)


class Chromium:
    """One tab. ``requests`` are all addresses it asked for, ``said`` is what its console said."""

    def __enter__(self) -> Self:
        assert PATH
        self._home = tempfile.TemporaryDirectory()
        home = Path(self._home.name)
        command = [PATH, *_FLAGS.split(), f"--user-data-dir={home}", "about:blank"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        port = _wait(lambda: (home / "DevToolsActivePort").read_text().split()[0])
        tabs = _wait(lambda: json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json")))
        tab = next(t for t in tabs if t["type"] == "page")
        self._open = contextlib.ExitStack()
        self._socket: ClientConnection = self._open.enter_context(
            connect(tab["webSocketDebuggerUrl"], max_size=None)
        )
        self._count = 0
        self.requests: list[str] = []
        self.said: list[str] = []
        self._loaded = False
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._open.close()
        self._process.terminate()
        self._process.wait(20)
        shutil.rmtree(self._home.name, ignore_errors=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command of the protocol, and what came of it."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": params}))
        while (found := self._next()).get("id") != self._count:
            pass
        assert "error" not in found, found
        result: dict[str, Any] = found["result"]
        return result

    def _next(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._socket.recv(timeout=60))
        method, params = found.get("method"), found.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.said.append(str(params["exceptionDetails"]))
        return found

    def open(self, url: str) -> None:
        """Go to a page, and wait until it is there."""
        self._loaded = False
        self.call("Page.navigate", url=url)
        self.loaded()

    def loaded(self) -> None:
        """Wait for the page that something led to."""
        while not self._loaded:
            self._next()
        self._loaded = False

    def run(self, script: str) -> Any:
        """The value of an expression on the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """A key, down and up."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"windowsVirtualKeyCode": 13} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def dark(self, wanted: bool) -> None:
        """Prefer dark colours, or light ones."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if wanted else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, file: Path) -> None:
        """What is seen of the page, as PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


def _wait(get: Any) -> Any:
    for _ in range(300):
        try:
            return get()
        except (OSError, IndexError, ValueError):
            time.sleep(0.1)
    raise TimeoutError("Chromium did not start")
