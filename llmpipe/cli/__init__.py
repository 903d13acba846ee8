"""The command line: commands, options, output. The only room that knows Typer and Rich."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a command; the one place where an error becomes a message and an exit code.

    0 done or up to date, 1 a bug (traceback), 2 something the user can put right, 3 finished but
    the result wants a look, 130 stopped by Ctrl-C.
    """
    from llmpipe.cli.app import app
    from llmpipe.cli.output import say_error
    from llmpipe.core.errors import UserError

    try:
        app()
    except UserError as e:
        say_error(e, as_json="--json" in sys.argv)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
