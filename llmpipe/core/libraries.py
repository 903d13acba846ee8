"""Heavy libraries that may be missing, or may not fit each other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from llmpipe.core.errors import UserError


@contextlib.contextmanager
def needs(library: str, hint: str) -> Iterator[None]:
    """Around code that imports ``library``: a failure to import becomes a line that helps.

    Libraries import their parts when these are first used, so put the first use inside, too.

    Raises:
        UserError: the library is missing (with ``hint``) or can't be imported.
    """
    try:
        yield
    except (ImportError, RuntimeError) as e:
        if "torchvision" in str(e):
            # torchvision registers its operators with the one torch that it was built for.
            raise UserError(
                "the installed torchvision was built for another torch, and stops its import",
                "pip uninstall -y torchvision torchaudio torchcodec",
            ) from e
        if isinstance(e, ModuleNotFoundError) and e.name == library:
            raise UserError(f"{library} is not installed", hint) from e
        if isinstance(e, ImportError):
            raise UserError(f"{library} can't be imported: {e}", hint) from e
        raise
