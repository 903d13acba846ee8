"""``llmpipe.toml``: a table for each command, keys named like its options and arguments.

Flags win over the file. A key or table that no command knows is an error, with the nearest name.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmpipe.core.errors import UserError

FILE = Path("llmpipe.toml")


def load(path: Path, commands: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Defaults by command and parameter, in the form that the parser takes.

    ``commands`` are the parser's own command objects, which know their parameters.

    Raises:
        UserError: no such file, no TOML, or a table, key or value that doesn't fit.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"there is no settings file {path}", "llmpipe init writes one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise UserError(f"{path} is no TOML: {e}", "see https://toml.io") from None
    defaults = {}
    for name, table in tables.items():
        if name in commands and not isinstance(table, dict):
            raise UserError(f"{path} has {name} = ..., which must be a table", f"[{name}]")
        if name not in commands:
            raise UserError(f"{path} has [{name}], which is no command", _near(name, commands))
        defaults[name] = _options(path, name, table, _parameters(commands[name]))
    return defaults


def _parameters(command: Any) -> dict[str, Any]:
    """A command's parameters by the names a user writes: ``max-tokens``, ``n``, ``problems``."""
    found = {}
    for parameter in command.params:
        words = [w for w in parameter.opts if w.startswith("--")] or parameter.opts
        for word in words:
            found[word.lstrip("-").replace("_", "-")] = parameter
    found.pop("help", None)
    return found


def _options(
    path: Path, command: str, table: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in table.items():
        parameter = parameters.get(key.replace("_", "-"))
        if parameter is None:
            raise UserError(
                f"{path} has {key!r} in [{command}], which has no such option",
                _near(key, parameters),
            )
        several = getattr(parameter, "multiple", False) or parameter.nargs != 1
        if isinstance(value, dict):  # --engine-arg and --recipe-arg read better as a table
            value = [f"{k}={v}" for k, v in value.items()]
        if several:
            items = value if isinstance(value, list) else [value]
            values[parameter.name] = [str(item) for item in items]
        elif isinstance(value, list):
            values[parameter.name] = ",".join(str(item) for item in value)
        else:
            flag = isinstance(value, bool) and getattr(parameter, "is_flag", False)
            values[parameter.name] = value if flag else str(value)
    return values


def _near(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name.replace("_", "-"), known, n=3)
    return f"one of: {', '.join(close or sorted(known))}"
