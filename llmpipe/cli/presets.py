"""Presets of eval: how benchmarks are sampled by those whose figures one compares with."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from llmpipe.core.errors import UserError

_FILE = Path(__file__).with_name("presets.toml")

_NAMES = {"aime24": "aime-2024", "aime25": "aime-2025", "math500": "math-500", "amc23": "amc-23"}
"""Recipes by the names that other harnesses have for them."""


class Preset:
    """The options of one preset, in the order in which a choice is made.

    What is typed wins, then what the preset says, then the settings file and the defaults. A preset
    that the settings file itself names loses to what that says beside it.
    """

    def __init__(self, context: typer.Context, name: str | None) -> None:
        self._context = context
        self._held = load(name) if name else {}

    def for_source(self, source: str) -> Options:
        """Its options for one recipe, file or folder."""
        own = self._held.get("on", {}).get(recipe_name(source), {})
        return Options(self._context, {**self._held, **own})


class Options:
    """What is typed, what a preset says, and what stands in the settings file."""

    def __init__(self, context: typer.Context, held: Mapping[str, Any]) -> None:
        self._context = context
        self._held = held

    def choose(self, option: str, given: Any) -> Any:
        """The value of an option, which is ``given`` unless the preset has a say."""
        return self._held[option] if self.says(option) else given

    def says(self, option: str) -> bool:
        """Whether it is the preset that says an option."""
        return option in self._held and not self.said(option)

    def held(self, option: str) -> dict[str, Any]:
        """What the preset has for an option whose values add up."""
        return dict(self._held.get(option, {}))

    def said(self, option: str) -> bool:
        """Whether the user says an option with more weight than the preset has."""
        weight = {"COMMANDLINE": 2, "DEFAULT_MAP": 1}
        sources = [
            self._context.get_parameter_source(name) for name in (_parameter(option), "preset")
        ]
        option_weight, preset_weight = (weight.get(s.name, 0) if s else 0 for s in sources)
        return option_weight > 0 and option_weight >= preset_weight


def _parameter(option: str) -> str:
    return option.replace("-", "_")


def load(name: str) -> dict[str, Any]:
    """The preset of that name.

    Raises:
        UserError: there is none, with the nearest names.
    """
    known = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3) or list(known)
        raise UserError(
            f"there is no preset {name!r}",
            f"--preset {' or '.join(near)}; llmpipe eval --list-presets says what they are",
        )
    return dict(known[name])


def recipe_name(source: str) -> str:
    """A recipe's own name, for one that goes by another; anything else as it is."""
    word = source.replace("_", "-")
    return _NAMES.get(word.replace("-", ""), word if word in _NAMES.values() else source)


def say_presets(wanted: bool) -> None:
    """Print every preset, its options and its source, and end."""
    if not wanted:
        return
    for name, preset in tomllib.loads(_FILE.read_text(encoding="utf-8")).items():
        typer.echo(f"{name}: {preset.pop('about')}")
        typer.echo(f"    {_line(preset)}")
        for recipe, own in preset.pop("on", {}).items():
            typer.echo(f"    {recipe}: {_line(own)}")
        typer.echo(f"    from {preset['source']}")
    typer.echo("Prompts are the problem and llmpipe's own instruction, without a system message.")
    raise typer.Exit


def _line(options: Mapping[str, Any]) -> str:
    """Options as one would type them."""
    words = []
    for key, value in options.items():
        if isinstance(value, dict) and key != "on":
            words += [f"--{key} {k}={v}" for k, v in value.items()]
        elif key not in ("on", "source"):
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words.append(f"{'-n' if key == 'n' else f'--{key}'} {text}")
    return " ".join(words)
