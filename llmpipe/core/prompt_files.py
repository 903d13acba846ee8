"""Files that a user gives to word prompts: templates and worked examples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from llmpipe.core.errors import UserError
from llmpipe.core.surrogates import has_half


def read_template(given: str | None) -> str | None:
    """The text of a chat template's file; empty for "none", None where none is given.

    Raises:
        UserError: it can't be read, or is empty.
    """
    if given is None or given == "none":
        return None if given is None else ""
    try:
        text = Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(
            f"the chat template {given} can't be read: {e}",
            "--chat-template takes a Jinja file, or none for the bare text",
        ) from None
    if not text.strip():
        raise UserError(f"the chat template {given} is empty", "--chat-template none")
    return text


def read_prompt_template(path: Path | None) -> str | None:
    """The text in which a problem is put, without the file's last line break; None without a file.

    Raises:
        UserError: it can't be read, or has no place for the problem.
    """
    if path is None:
        return None
    try:
        text = path.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(
            f"the prompt template {path} can't be read: {e}",
            "--prompt-template takes a text file with {prompt} and {instruction} in it",
        ) from None
    if "{prompt}" not in text:
        raise UserError(
            f"the prompt template {path} has no {{prompt}}, so all problems would be the same",
            f"printf '%s\\n\\n%s\\n' '{{prompt}}' '{{instruction}}' > {path}",
        )
    return text


def read_few_shot(path: Path) -> Iterator[dict[str, str]]:
    """The worked examples in a JSON Lines file.

    Raises:
        UserError: it can't be read, a line is no example, or there is none at all.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(
            f"the worked examples {path} can't be read: {e}", "--few-shot takes a JSON Lines file"
        ) from None
    count = 0
    example = '{"task": "math", "prompt": "What is 1 + 1?", "response": "It is \\\\boxed{2}."}'
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            shot = json.loads(line)
            good = {"prompt", "response"} <= shot.keys() <= {"task", "prompt", "response"}
        except (ValueError, AttributeError):
            good = False
        if not good or not all(
            isinstance(v, str) and v.strip() and not has_half(v) for v in shot.values()
        ):
            raise UserError(f"{path}:{number} is no worked example", f"a line looks like {example}")
        count += 1
        yield shot
    if not count:
        raise UserError(f"{path} holds no worked example", f"a line looks like {example}")
