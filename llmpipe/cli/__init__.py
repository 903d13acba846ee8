"""The command line: commands, options, output. The only room that knows Typer and Rich."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a command; the one place where an error becomes a message and an exit code.

    0 done or up to date, 1 a bug (traceback), 2 something the user can put right, 3 finished but
    the result wants a look, 130 stopped by Ctrl-C, 141 nobody reads what is said any more.
    """
    _hide_secrets()
    try:
        _run()
    except KeyboardInterrupt:  # while the rest is loaded
        sys.exit(130)


def _run() -> None:
    from llmpipe.cli.app import app
    from llmpipe.cli.output import say_error, say_stopped
    from llmpipe.cli.stdout import guard
    from llmpipe.core.errors import UserError, path_error
    from llmpipe.core.surrogates import has_half

    guard()
    try:
        if any(map(has_half, sys.argv)):  # by which Python shows bytes that are no UTF-8
            raise UserError("an argument is not UTF-8 text", "write it in UTF-8")
        app()
    except (UserError, OSError) as e:
        said = e if isinstance(e, UserError) else path_error(e)
        if said is None:
            raise
        say_error(said, as_json="--json" in sys.argv)
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as e:
        code = 130 if isinstance(e, KeyboardInterrupt) else e.code
        if code == 130:  # Typer makes this of Ctrl-C
            say_stopped()
        sys.exit(code)


def _hide_secrets() -> None:
    """Keep a token given as an option out of what `ps` shows to everyone on the machine."""
    from llmpipe.core.provenance import redact

    shown = redact(sys.argv)
    if shown != sys.argv:
        from setproctitle import setproctitle

        setproctitle(" ".join(shown))
