"""Some rows of an artifact as one page that needs nothing else: to send, or to keep."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

from llmpipe.core import fs
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.markup import Html, el, join
from llmpipe.viewer.library import Library
from llmpipe.viewer.pages import Pages
from llmpipe.viewer.server import static


def write(artifact: Artifact, file: Path, limit: int, tokenizer: str | None = None) -> int:
    """Write a page of the first ``limit`` rows to a file; returns how many rows are on it.

    Raises:
        UserError: the rows can't be read, or the file can't be written.
    """
    pages = Pages(Library(artifact.path, lambda: [artifact]), "", tokenizer)
    title, rows, body = pages.whole(artifact, limit)
    style, script = (static(name).decode() for name in ("viewer.css", "viewer.js"))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width"),
        el("title", title),
        el("style", Html(style)),
    )
    values = el("script", _json(rows), type="application/json", id="values")
    page = el("html", head, el("body", body, values, el("script", Html(script))), lang="en")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        whole = join(Html("<!doctype html>"), page)
        fs.write(file, whole.encode(errors="replace"))
    except OSError as e:
        raise UserError(f"can't write {file}: {e.strerror}", "--html FILE") from None
    return len(rows)


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _json(value: object) -> Html:
    """JSON that can't end the element it stands in."""
    return Html(json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e"))
