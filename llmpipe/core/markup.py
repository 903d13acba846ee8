"""HTML that is safe by construction: text is escaped wherever it is put, unless it is `Html`."""

from __future__ import annotations

import html
from collections.abc import Iterable

_VOID = frozenset({"input", "link", "meta", "br"})
# Control characters as their pictures; what turns text around or hides in it, by its number.
_CONTROL = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"}
_HIDDEN = (*range(0x7F, 0xA0), 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SHOWN = {**_CONTROL, **{code: f"⟦U+{code:04X}⟧" for code in _HIDDEN}}


class Html(str):
    """Markup that needs no escaping: made by `el`, `text` and `join` only."""

    __slots__ = ()


Child = str | None | Iterable["Child"]


def visible(value: object) -> str:
    """A value as text with nothing hidden in it; escaped it is not."""
    return str(value).replace("\r\n", "\n").translate(_SHOWN)


def text(value: object) -> Html:
    """A value as text, whatever is in it."""
    return Html(html.escape(visible(value)))


def join(*children: Child) -> Html:
    """Children one after the other: `Html` as it is, other strings escaped, None left out."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(text(child))
        elif child is not None:
            parts.append(join(*child))
    return Html("".join(parts))


def el(name: str, /, *children: Child, **attributes: object) -> Html:
    """An element. ``class_`` is class and ``data_n`` data-n; None and False leave one out."""
    start = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        start += f" {key}" if value is True else f' {key}="{html.escape(str(value))}"'
    return Html(f"<{start}>" if name in _VOID else f"<{start}>{join(*children)}</{name}>")
