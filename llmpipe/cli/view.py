"""The command that shows artifacts in a browser."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from llmpipe.core.errors import UserError


def view(
    folder: Annotated[Path, typer.Argument(help="An artifact, or a folder of artifacts.")],
    html: Annotated[
        Path | None,
        typer.Option(help="Write one page that needs no server, of an artifact's first rows."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="The most rows of such a page.")] = 500,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 0,
    host: Annotated[str, typer.Option(help="The address to serve at: of this machine.")] = (
        "127.0.0.1"
    ),
    expose: Annotated[
        bool, typer.Option("--expose", help="Let --host be one that others can reach.")
    ] = False,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open it, where there is a screen.")
    ] = True,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="The model that packed rows are for, if its folder was moved."),
    ] = None,
) -> None:
    """Look at problems, answers, verdicts, conversations and packed rows in a browser."""
    from llmpipe.cli.show import find
    from llmpipe.core.artifact import MANIFEST, Artifact
    from llmpipe.viewer.library import Library
    from llmpipe.viewer.server import Server, is_loopback

    one = (folder / MANIFEST).is_file()
    if html is not None:
        _write(folder, html, limit, tokenizer)
        return
    if not is_loopback(host) and not expose:
        raise UserError(
            f"others can reach {host}, and need only the printed address",
            f"llmpipe view {folder}, and ssh -L from where the browser is; or --expose",
        )
    if not folder.is_dir() or not find(folder):
        Artifact.open(folder)  # says what is wrong with it, if it is no folder of other things
        raise UserError(f"there is no artifact in {folder}", "llmpipe --help lists what makes them")
    library = Library(folder.parent if one else folder, lambda: find(folder))
    with Server(library, host=host, port=port, tokenizer=tokenizer) as server:
        typer.echo(server.url)
        typer.echo(_hint(server.server_port), err=True)
        shown = _opened(server.url) if browser else contextlib.nullcontext()
        with shown, contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def _write(folder: Path, file: Path, limit: int, tokenizer: str | None) -> None:
    from llmpipe.cli.show import find
    from llmpipe.core.artifact import MANIFEST, Artifact
    from llmpipe.viewer.single import write

    if not (folder / MANIFEST).is_file() and folder.is_dir() and (inside := find(folder)):
        raise UserError(
            f"{folder} holds {len(inside)} artifacts, and a page is of one",
            f"llmpipe view {inside[-1].path} --html {file}",
        )
    artifact = Artifact.open(folder)
    count = write(artifact, file, limit, tokenizer)
    left = artifact.rows - count
    typer.echo(
        f"{count} rows in {file}" + (f", {left} left out (--limit)" if left else ""), err=True
    )


def _hint(port: int) -> str:
    if "SSH_CONNECTION" not in os.environ:
        return "Ctrl-C ends it. The address is a secret: whoever has it can read along."
    return (
        f"Where your browser is: ssh -N -L {port}:127.0.0.1:{port} {socket.gethostname()}, and "
        "open the address there. It is a secret; Ctrl-C ends it."
    )


@contextlib.contextmanager
def _opened(url: str) -> Iterator[None]:
    """Show the page on this machine's screen, if there is one.

    The browser is given a file that leads there: others could read an address in its arguments.
    """
    import webbrowser

    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:  # for its owner's eyes only
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={url}">')
        file.flush()
        webbrowser.open(Path(file.name).as_uri())
        yield
